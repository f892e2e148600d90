//! The guarded keys and what their values must be.

use super::{Marks, ScanError, Scanned, Steers};
use crate::surface::Surface;
use serde::Deserialize;
use serde::de::{self, Deserializer as _, IgnoredAny, MapAccess, Visitor};
use std::fmt;
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// A key that may stand once: the gateway acts on it, or an engine does in a way that matters to
/// others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guarded {
    Model,
    Stream,
    StreamOptions,
    MaxTokens,
    MaxCompletionTokens,
    MaxOutputTokens,
    N,
    BestOf,
    CacheSalt,
    User,
    PromptCacheKey,
    Temperature,
    Seed,
    ServiceTier,
}

/// A value that is read, as it stands in the body.
#[derive(Debug, Default)]
pub(super) struct BodyFields {
    pub model: Option<String>,
    pub stream: bool,
    pub include_usage: bool,
    /// Keys that bound an answer in some interface, with what they say and where; `None` for `null`.
    pub bounds: Vec<(Guarded, Option<u64>, Range<usize>)>,
    pub answers: Option<u64>,
    pub cache_salt: Option<String>,
    pub greedy: bool,
    pub seeded: bool,
    pub user: Option<u64>,
    pub prompt_cache_key: Option<u64>,
    pub flex: bool,
    pub steers: Steers,
    pub model_at: Range<usize>,
    pub cache_salt_at: Option<Range<usize>>,
    /// The value of `stream_options`, and what it says if usage is asked for too.
    pub stream_options: Option<(Range<usize>, String)>,
}

impl Guarded {
    const ALL: [Self; 14] = [
        Self::Model,
        Self::Stream,
        Self::StreamOptions,
        Self::MaxTokens,
        Self::MaxCompletionTokens,
        Self::MaxOutputTokens,
        Self::N,
        Self::BestOf,
        Self::CacheSalt,
        Self::User,
        Self::PromptCacheKey,
        Self::Temperature,
        Self::Seed,
        Self::ServiceTier,
    ];

    /// The longest name has 21 bytes.
    pub(super) fn named(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name().as_bytes() == name)
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Stream => "stream",
            Self::StreamOptions => "stream_options",
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
            Self::MaxOutputTokens => "max_output_tokens",
            Self::N => "n",
            Self::BestOf => "best_of",
            Self::CacheSalt => "cache_salt",
            Self::User => "user",
            Self::PromptCacheKey => "prompt_cache_key",
            Self::Temperature => "temperature",
            Self::Seed => "seed",
            Self::ServiceTier => "service_tier",
        }
    }

    /// Whether engines of this interface end an answer by it. What they do not know they pass over.
    const fn bounds(self, surface: Surface) -> bool {
        match self {
            Self::MaxTokens => {
                matches!(surface, Surface::Chat | Surface::Completions | Surface::Messages)
            }
            Self::MaxCompletionTokens => matches!(surface, Surface::Chat),
            Self::MaxOutputTokens => matches!(surface, Surface::Responses),
            _ => false,
        }
    }

    /// The refusal of a value that is none of its kind.
    pub(super) const fn wrong(self) -> ScanError {
        let expected = match self {
            Self::Model => "a string that is neither empty nor overlong",
            Self::Stream => "true or false",
            Self::StreamOptions => "a short object whose `include_usage` is true or false",
            Self::CacheSalt => "a string that is not overlong",
            _ => "a whole number, 0 or greater, written in digits",
        };
        ScanError::Wrong { key: self.name(), expected }
    }
}

impl BodyFields {
    /// Takes a value as it stands in the body. `null` says nothing.
    pub(super) fn take(
        &mut self,
        key: Guarded,
        raw: &[u8],
        at: Range<usize>,
    ) -> Result<(), ScanError> {
        match key {
            Guarded::Model => self.model_at = at,
            Guarded::CacheSalt => self.cache_salt_at = Some(at),
            Guarded::StreamOptions => {
                self.include_usage = raw != b"null" && include_usage(raw)?;
                self.stream_options = (!self.include_usage).then(|| (at, with_usage(raw)));
                return Ok(());
            }
            Guarded::MaxTokens | Guarded::MaxCompletionTokens | Guarded::MaxOutputTokens => {
                let most = digits(raw);
                if most.is_none() && raw != b"null" {
                    return Err(key.wrong());
                }
                self.bounds.push((key, most, at));
                return Ok(());
            }
            _ => {}
        }
        if raw == b"null" {
            return Ok(());
        }
        let wrong = |_| key.wrong();
        match key {
            Guarded::Model => {
                let model: String = serde_json::from_slice(raw).map_err(wrong)?;
                if model.is_empty() {
                    return Err(key.wrong());
                }
                self.model = Some(model);
            }
            Guarded::Stream => self.stream = serde_json::from_slice(raw).map_err(wrong)?,
            Guarded::CacheSalt => self.cache_salt = serde_json::from_slice(raw).map_err(wrong)?,
            Guarded::N | Guarded::BestOf => {
                let answers = digits(raw).ok_or_else(|| key.wrong())?;
                self.answers = Some(self.answers.map_or(answers, |before| before.max(answers)));
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes a value that engines judge and not we, or the beginning of one. `null` says nothing.
    pub(super) fn take_loosely(&mut self, key: Guarded, raw: &[u8], whole: bool) {
        if raw == b"null" {
            return;
        }
        match key {
            Guarded::User => self.user = Some(xxh3_64(raw)),
            Guarded::PromptCacheKey => self.prompt_cache_key = Some(xxh3_64(raw)),
            // What is no number says nothing here: some engines take it, and none takes it for 0.
            Guarded::Temperature => {
                let number = serde_json::from_slice(raw);
                self.greedy = whole && number.is_ok_and(|value: f64| value == 0.0);
            }
            Guarded::Seed => self.seeded = true,
            Guarded::ServiceTier => {
                let tier = serde_json::from_slice::<std::borrow::Cow<'_, str>>(raw);
                self.flex = whole && tier.is_ok_and(|tier| tier == "flex");
            }
            _ => {}
        }
    }

    /// All of it, without prefixes.
    pub(super) fn into_scanned(
        self,
        surface: Surface,
        open: usize,
        prompt_bytes: u64,
        plain: bool,
    ) -> Result<Scanned, ScanError> {
        // Of two that an engine knows it takes one, and which one differs.
        let known = self.bounds.iter().filter(|(key, ..)| key.bounds(surface));
        let most_output = known.filter_map(|(_, most, _)| *most).max();
        let own = |key: Guarded| Some(key.name()) == surface.output_key();
        let null = self.bounds.iter().find(|(key, most, _)| own(*key) && most.is_none());
        let no_output = null.map(|(.., at)| at.clone());
        Ok(Scanned {
            model: self.model.ok_or(ScanError::NoModel)?,
            stream: self.stream,
            include_usage: self.include_usage,
            max_tokens: self.bounds.iter().filter_map(|(_, most, _)| *most).min(),
            most_output,
            answers: self.answers,
            cache_salt: self.cache_salt,
            greedy: self.greedy,
            seeded: self.seeded,
            session: self.user.or(self.prompt_cache_key),
            flex: self.flex,
            steers: self.steers,
            marks: Marks {
                open,
                model: self.model_at,
                cache_salt: self.cache_salt_at,
                no_output,
                stream_options: self.stream_options,
            },
            plain,
            prompts: 0,
            prompt_bytes,
            media: 0,
            media_bytes: 0,
            prefixes: Vec::new(),
            whole: 0,
        })
    }
}

/// Engines read `1e2`, `1.0` and `-0` in ways that differ, so only digits pass.
fn digits(raw: &[u8]) -> Option<u64> {
    raw.iter().all(u8::is_ascii_digit).then(|| serde_json::from_slice(raw).ok()).flatten()
}

fn include_usage(raw: &[u8]) -> Result<bool, ScanError> {
    let key = Guarded::StreamOptions;
    let mut json = serde_json::Deserializer::from_slice(raw);
    // A struct would be read from an array too, and would not tell a second key from a bad value.
    let seen = json.deserialize_map(Options::default()).map_err(|_| key.wrong())?;
    json.end().map_err(|_| key.wrong())?;
    match seen.times {
        0 | 1 => Ok(seen.include_usage),
        _ => Err(ScanError::Twice { key: "include_usage" }),
    }
}

/// These options, and usage asked for.
fn with_usage(raw: &[u8]) -> String {
    let mut options: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(raw).unwrap_or_default();
    options.insert("include_usage".to_owned(), true.into());
    serde_json::Value::Object(options).to_string()
}

#[derive(Default)]
struct Options {
    include_usage: bool,
    times: u32,
}

impl<'de> Visitor<'de> for Options {
    type Value = Self;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        while let Some(OptionName { include_usage }) = map.next_key()? {
            if include_usage {
                self.include_usage = map.next_value::<Option<bool>>()?.unwrap_or(false);
                self.times += 1;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(self)
    }
}

/// A key of `stream_options`, in whatever spelling.
struct OptionName {
    include_usage: bool,
}

impl<'de> Deserialize<'de> for OptionName {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Ok(Self { include_usage: name == "include_usage" })
    }
}
