//! What an event's JSON tells: tokens used, its type, an error.

use super::Usage;
use memchr::memmem::Finder;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::LazyLock;

/// The tokens used that a whole JSON answer tells; `piece` is its end, where `usage` stands in
/// every engine that is known. `None` if it does not tell.
pub fn usage_of(piece: &[u8]) -> Option<Usage> {
    let may_be_whole = piece.trim_ascii_start().starts_with(b"{");
    if let Some(usage) = may_be_whole.then(|| outermost(piece)).flatten() {
        return Some(usage);
    }
    // The whole answer says which `usage` is its own; of a mere end the last one is taken.
    let whole = may_be_whole.then(|| EventFields::read(piece)).flatten();
    let mut counts = Counts::default();
    match whole {
        Some(fields) => counts.add(fields.counts()?),
        None => counts.add(last_usage(piece)?),
    }
    counts.usage()
}

/// The tokens used, of an answer that tells them near its end, as engines do. What follows is plain
/// values and one bracket, so they are those of the whole, and what stands before need not be read:
/// that is most of what an answer costs here.
fn outermost(whole: &[u8]) -> Option<Usage> {
    let at = USAGE.find_iter(whole).last()?;
    let value = member(whole, at, USAGE.needle()).filter(|value| value.starts_with(b"{"))?;
    let mut values = serde_json::Deserializer::from_slice(value).into_iter::<Counts>();
    let counts = values.next()?.ok()?;
    let behind = value[values.byte_offset()..].trim_ascii_end().strip_suffix(b"}")?;
    let is_plain = !behind.iter().any(|byte| b"{}[]".contains(byte));
    is_plain.then(|| counts.usage()).flatten()
}

/// What matters of an event's JSON. Whatever else stands there is passed over.
#[derive(Debug, Deserialize)]
pub(super) struct EventFields<'a> {
    #[serde(borrow, default, rename = "type")]
    pub kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    object: Option<Cow<'a, str>>,
    #[serde(default)]
    usage: Lenient<Counts>,
    /// Where Responses has it.
    #[serde(default)]
    response: Lenient<Inner>,
    /// Where Messages has it.
    #[serde(default)]
    message: Lenient<Inner>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

impl<'a> EventFields<'a> {
    pub(super) fn read(json: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }

    /// The tokens it tells of.
    pub(super) fn counts(&self) -> Option<Counts> {
        self.usage.0.or_else(|| self.response.0.or(self.message.0)?.usage.0)
    }

    pub(super) fn is_error(&self) -> bool {
        let is_error = |text: &Option<Cow<'_, str>>| text.as_deref() == Some("error");
        self.error.is_some() || is_error(&self.kind) || is_error(&self.object)
    }
}

/// Tokens in the words of OpenAI (older and newer) and of Anthropic. Some engines say them twice.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Counts {
    prompt_tokens: Option<u64>,
    input_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    output_tokens: Option<u64>,
    /// Part of the prompt's.
    prompt_tokens_details: Option<Details>,
    input_tokens_details: Option<Details>,
    /// Anthropic's: beside the prompt's, not part of them.
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
}

impl Counts {
    /// Later words replace earlier ones: Anthropic tells the prompt first and the answer last, and
    /// engines that tell with every event count up.
    pub(super) fn add(&mut self, later: Self) {
        *self = Self {
            prompt_tokens: later.prompt_tokens.or(self.prompt_tokens),
            input_tokens: later.input_tokens.or(self.input_tokens),
            completion_tokens: later.completion_tokens.or(self.completion_tokens),
            output_tokens: later.output_tokens.or(self.output_tokens),
            prompt_tokens_details: later.prompt_tokens_details.or(self.prompt_tokens_details),
            input_tokens_details: later.input_tokens_details.or(self.input_tokens_details),
            cache_read_input_tokens: later.cache_read_input_tokens.or(self.cache_read_input_tokens),
            cache_creation_input_tokens: later
                .cache_creation_input_tokens
                .or(self.cache_creation_input_tokens),
        };
    }

    /// `None` if nothing was told.
    pub(super) fn usage(&self) -> Option<Usage> {
        let input = self.prompt_tokens.or(self.input_tokens);
        let output = self.completion_tokens.or(self.output_tokens);
        if input.is_none() && output.is_none() {
            return None;
        }
        let read = self.cache_read_input_tokens;
        let created = self.cache_creation_input_tokens.unwrap_or(0);
        let details = self.prompt_tokens_details.or(self.input_tokens_details).unwrap_or_default();
        Some(Usage {
            input: input.unwrap_or(0).saturating_add(read.unwrap_or(0)).saturating_add(created),
            cached: match (details.cached_tokens, read) {
                (None, None) => None,
                (part, beside) => Some(part.unwrap_or(0).saturating_add(beside.unwrap_or(0))),
            },
            output: output.unwrap_or(0),
        })
    }
}

/// Whether the JSON may tell of tokens used. Inside a string the quotes would have backslashes.
pub(super) fn mentions_usage(json: &[u8]) -> bool {
    // OpenAI writes `"usage":null` into every event but the last.
    USAGE
        .find_iter(json)
        .any(|at| member(json, at, USAGE.needle()).is_some_and(|value| value.starts_with(b"{")))
}

/// Whether the JSON may be an error.
pub(super) fn mentions_error(json: &[u8]) -> bool {
    ERROR.find(json).is_some()
}

/// The last `usage` of a text that is only the end of a JSON document.
pub(super) fn last_usage(text: &[u8]) -> Option<Counts> {
    let read = |at| {
        let value = member(text, at, USAGE.needle())?;
        Counts::deserialize(&mut serde_json::Deserializer::from_slice(value)).ok()
    };
    let mut places: Vec<usize> = Vec::new();
    for at in USAGE.find_iter(text) {
        // Nobody says it this often but to make us look.
        if places.len() == 16 {
            places.remove(0);
        }
        places.push(at);
    }
    let has_usage = |counts: &Counts| counts.usage().is_some();
    places.into_iter().rev().filter_map(read).find(has_usage)
}

static USAGE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#""usage""#));
static ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#""error""#));

/// What follows the colon behind the key, quotes and all, at this place.
pub(super) fn member<'a>(json: &'a [u8], at: usize, key: &[u8]) -> Option<&'a [u8]> {
    let behind = json.get(at + key.len()..)?.trim_ascii_start();
    Some(behind.strip_prefix(b":")?.trim_ascii_start())
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Inner {
    #[serde(default)]
    usage: Lenient<Counts>,
}

/// An object, or nothing where something else stands: OpenAI's errors have a `message` that is text.
#[derive(Clone, Copy, Debug)]
struct Lenient<T>(Option<T>);

impl<T> Default for Lenient<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ObjectOrNothing(PhantomData))
    }
}

struct ObjectOrNothing<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectOrNothing<T> {
    type Value = Lenient<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("anything")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(|value| Lenient(Some(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Lenient(None))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Lenient(None))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Lenient(None))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Lenient(None))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Lenient(None))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Lenient(None))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Lenient(None))
    }
}
