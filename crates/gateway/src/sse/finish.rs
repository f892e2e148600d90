//! Why an answer ended, read where the word stands and nowhere else.
//!
//! Every event of a chat has the key, nearly always with `null` behind it and nearly always at the
//! same distance from the event's end. So one comparison says "not yet" for most of them, and JSON
//! is not read for this.

use super::event_fields::member;
use crate::surface::Surface;
use memchr::memmem::Finder;
use std::sync::LazyLock;

static FINISH_REASON: LazyLock<Finder<'static>> =
    LazyLock::new(|| Finder::new(br#""finish_reason""#));
static STOP_REASON: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#""stop_reason""#));
static STATUS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#""status""#));
static DETAILS: LazyLock<Finder<'static>> =
    LazyLock::new(|| Finder::new(br#""incomplete_details""#));
static REASON: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#""reason""#));

/// Why an answer ended, in the words of OpenAI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finish {
    /// By itself.
    Stop,
    /// At its limit.
    Length,
    /// With a call of a tool.
    ToolCalls,
    /// Withheld.
    ContentFilter,
    /// For another reason.
    Other,
}

impl Finish {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Stop, Self::Length, Self::ToolCalls, Self::ContentFilter, Self::Other];

    /// Its name in metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
            Self::Other => "other",
        }
    }

    /// From the word of an engine, in any of the dialects.
    pub fn of(word: &str) -> Self {
        match word {
            "stop" | "end_turn" | "stop_sequence" | "completed" => Self::Stop,
            "length" | "max_tokens" | "max_output_tokens" | "incomplete" => Self::Length,
            "tool_calls" | "function_call" | "tool_use" => Self::ToolCalls,
            "content_filter" | "refusal" => Self::ContentFilter,
            _ => Self::Other,
        }
    }
}

/// Why a whole JSON answer ended; `piece` is its end. `None` if it does not tell.
pub fn finish_of(surface: Surface, piece: &[u8]) -> Option<Finish> {
    match surface {
        Surface::Responses => {
            incomplete_reason(piece).or_else(|| last_word(&STATUS, piece)).map(Finish::of)
        }
        _ => last_word(key(surface)?, piece).map(Finish::of),
    }
}

/// Looks for the word in one event after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ending {
    /// Where the key stood last with nothing behind it, from the event's end.
    from_end: usize,
}

impl Ending {
    /// Why the answer ends, if this event says so.
    pub(super) fn read(&mut self, surface: Surface, json: &[u8]) -> Option<Finish> {
        let key = key(surface)?;
        let place = json.len().wrapping_sub(self.from_end);
        if json.get(place..).is_some_and(|rest| rest.starts_with(key.needle()))
            && is_null(json, place, key)
        {
            return None;
        }
        let mut found = None;
        for at in key.find_iter(json) {
            if is_null(json, at, key) {
                self.from_end = json.len() - at;
            } else {
                found = string(json, at, key).map(Finish::of).or(found);
            }
        }
        found
    }
}

/// Why an answer of `Responses` is incomplete, if it says so.
pub(super) fn incomplete_reason(json: &[u8]) -> Option<&str> {
    let at = DETAILS.find(json)?;
    let details = member(json, at, DETAILS.needle())?;
    // `null` in an answer that is whole.
    let object = &details[..=memchr::memchr(b'}', details)?];
    object.starts_with(b"{").then(|| string(object, REASON.find(object)?, &REASON))?
}

/// The key under which an interface says it; `Responses` has none that could be found so simply.
fn key(surface: Surface) -> Option<&'static Finder<'static>> {
    match surface {
        Surface::Chat | Surface::Completions => Some(&FINISH_REASON),
        Surface::Messages => Some(&STOP_REASON),
        Surface::Responses | Surface::Embeddings => None,
    }
}

fn last_word<'a>(key: &Finder<'_>, json: &'a [u8]) -> Option<&'a str> {
    key.find_iter(json).filter_map(|at| string(json, at, key)).last()
}

fn is_null(json: &[u8], at: usize, key: &Finder<'_>) -> bool {
    member(json, at, key.needle()).is_some_and(|value| value.starts_with(b"null"))
}

/// The text behind the key at this place. Words with escapes are nobody's.
fn string<'a>(json: &'a [u8], at: usize, key: &Finder<'_>) -> Option<&'a str> {
    let word = member(json, at, key.needle())?.strip_prefix(b"\"")?;
    std::str::from_utf8(&word[..memchr::memchr(b'"', word)?]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn event(reason: &'static str) -> &'static [u8] {
        reason.as_bytes()
    }

    #[test]
    fn the_word_is_found_wherever_it_moves_to() {
        let mut ending = Ending::default();
        for (json, expected) in [
            (r#"{"choices":[{"delta":{"content":"a"},"finish_reason":null}]}"#, None),
            // At the same place.
            (r#"{"choices":[{"delta":{"content":"bcd"},"finish_reason":null}]}"#, None),
            // At another.
            (r#"{"choices":[{"finish_reason" : null,"delta":{}}],"usage":null}"#, None),
            (r#"{"choices":[],"usage":null}"#, None),
            (r#"{"delta":{"content":"\"finish_reason\":\"length\""}}"#, None),
            (r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#, Some(Finish::Length)),
            (r#"{"finish_reason": "tool_calls","x":"\"finish_reason"}"#, Some(Finish::ToolCalls)),
            (r#"{"finish_reason":"#, None),
            (r#"{"finish_reason":"sto"#, None),
            ("", None),
        ] {
            assert_eq!(ending.read(Surface::Chat, event(json)), expected, "{json}");
        }
    }

    #[test]
    fn whole_answers_tell_in_every_dialect() {
        for (surface, json, expected) in [
            (
                Surface::Chat,
                r#"{"choices":[{"message":{"content":"\"finish_reason\":\"x\""},"finish_reason":"stop"}],"usage":{}}"#,
                Some(Finish::Stop),
            ),
            (
                Surface::Messages,
                r#"_use"}],"stop_reason":"tool_use","stop_sequence":null}"#,
                Some(Finish::ToolCalls),
            ),
            (Surface::Messages, r#"{"stop_reason":null}"#, None),
            (
                Surface::Responses,
                r#"{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}"#,
                Some(Finish::ContentFilter),
            ),
            (
                Surface::Responses,
                r#"{"incomplete_details":null,"reason":"x","status":"completed"}"#,
                Some(Finish::Stop),
            ),
            (Surface::Responses, r#"{"status":"failed"}"#, Some(Finish::Other)),
            (Surface::Embeddings, r#"{"finish_reason":"stop"}"#, None),
        ] {
            assert_eq!(finish_of(surface, json.as_bytes()), expected, "{json}");
        }
    }
}
