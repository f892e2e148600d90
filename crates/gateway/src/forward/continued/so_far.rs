//! The text of an answer, as far as the client has it.

use crate::sse::data_of;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::borrow::Cow;

/// The most text that is kept: 64,000 tokens of English, longer than nearly all answers. With more,
/// a stream is not continued.
const TEXT_BYTES: usize = 256 << 10;

/// The text so far, and what names the answer.
#[derive(Debug, Default)]
pub(in crate::forward) struct SoFar {
    text: String,
    /// Events with text. An engine sends one per token, unless it is far behind.
    tokens: u64,
    id: Option<String>,
    created: Option<u64>,
    /// Something came that no other engine could go on with.
    cannot: bool,
}

/// What came with a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::forward) enum Came {
    /// More of the answer, or nothing.
    More,
    /// At this byte begins an event that says that the engine cannot go on.
    Failure(usize),
}

impl SoFar {
    /// Reads whole events on their way to the client.
    pub(in crate::forward) fn take(&mut self, piece: &[u8]) -> Came {
        if self.cannot {
            return Came::More;
        }
        for (at, data) in data_of(piece) {
            if data == b"[DONE]" {
                self.cannot = true;
                return Came::More;
            }
            let Ok(chunk) = serde_json::from_slice::<Chunk<'_>>(data) else {
                self.cannot = true;
                return Came::More;
            };
            if let Some(error) = &chunk.error {
                let is_ours = error.code.as_ref().is_some_and(|code| code.is_client_error());
                self.cannot |= is_ours;
                return if is_ours { Came::More } else { Came::Failure(at) };
            }
            self.chunk(&chunk);
        }
        Came::More
    }

    fn chunk(&mut self, chunk: &Chunk<'_>) {
        if self.id.is_none() {
            self.id = chunk.id.as_deref().map(str::to_owned);
            self.created = chunk.created;
        }
        for choice in &chunk.choices {
            let delta = choice.delta.as_ref();
            let text = delta.and_then(|delta| delta.content.as_deref()).or(choice.text.as_deref());
            let text = text.unwrap_or_default();
            self.tokens += u64::from(!text.is_empty());
            self.text.push_str(text);
            self.cannot |= choice.finish_reason.is_some()
                || choice.index != 0
                || delta.is_some_and(Delta::is_more_than_text);
        }
        self.cannot |= self.text.len() > TEXT_BYTES;
        if self.cannot {
            self.text = String::new();
        }
    }

    /// The text, unless nobody could go on with it.
    pub(in crate::forward) fn text(&self) -> Option<&str> {
        (!self.cannot).then_some(&*self.text)
    }

    /// Its tokens.
    pub(in crate::forward) const fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The answer's `id` and `created`.
    pub(in crate::forward) fn names(&self) -> (Option<&str>, Option<u64>) {
        (self.id.as_deref(), self.created)
    }
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(default)]
    created: Option<u64>,
    #[serde(borrow, default)]
    choices: Vec<Choice<'a>>,
    #[serde(default)]
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: u64,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(default)]
    finish_reason: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    reasoning_content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    reasoning: Option<Cow<'a, str>>,
    #[serde(default)]
    tool_calls: Option<Vec<IgnoredAny>>,
    #[serde(default)]
    function_call: Option<IgnoredAny>,
    #[serde(default)]
    refusal: Option<IgnoredAny>,
    #[serde(default)]
    audio: Option<IgnoredAny>,
}

impl Delta<'_> {
    /// Thoughts, calls and sounds are not text that could be given back as an answer.
    fn is_more_than_text(&self) -> bool {
        let says = |text: &Option<Cow<'_, str>>| text.as_ref().is_some_and(|t| !t.is_empty());
        says(&self.reasoning_content)
            || says(&self.reasoning)
            || self.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty())
            || self.function_call.is_some()
            || self.refusal.is_some()
            || self.audio.is_some()
    }
}

/// vLLM's and SGLang's errors carry the status as `code`.
#[derive(Deserialize)]
struct Failure {
    #[serde(default)]
    code: Option<Code>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Code {
    Number(u64),
    Other(IgnoredAny),
}

impl Code {
    const fn is_client_error(&self) -> bool {
        matches!(self, Self::Number(400..500))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(events: &[&str]) -> SoFar {
        let mut so_far = SoFar::default();
        events.iter().for_each(|event| {
            so_far.take(format!("data: {event}\n\n").as_bytes());
        });
        so_far
    }

    const ROLE: &str = r#"{"id":"a","created":7,"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;

    #[test]
    fn text_is_gathered_in_both_forms() {
        let chat = after(&[
            ROLE,
            r#"{"id":"a","choices":[{"index":0,"delta":{"content":"h\u00e9\n"},"finish_reason":null}]}"#,
            r#"{"id":"a","choices":[{"index":0,"delta":{"content":" you","tool_calls":[]}}]}"#,
        ]);
        assert_eq!((chat.text(), chat.tokens()), (Some("hé\n you"), 2));
        assert_eq!(chat.names(), (Some("a"), Some(7)));
        let completion = after(&[r#"{"id":"c","choices":[{"text":"one"}]}"#, r#"{"choices":[]}"#]);
        assert_eq!((completion.text(), completion.tokens()), (Some("one"), 1));
    }

    #[test]
    fn what_nobody_could_go_on_with_ends_it() {
        for event in [
            r#"{"choices":[{"delta":{"reasoning_content":"hm"}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}"#,
            r#"{"choices":[{"index":1,"delta":{"content":"x"}}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
            r#"{"error":{"code":400}}"#,
            "not json",
            "[DONE]",
        ] {
            assert_eq!(after(&[ROLE, event]).text(), None, "{event}");
        }
        let long = format!(r#"{{"choices":[{{"text":"{}"}}]}}"#, "x".repeat(TEXT_BYTES + 1));
        assert_eq!(after(&[&long]).text(), None);
    }

    #[test]
    fn an_error_of_the_engine_is_found_where_it_begins() {
        let before = format!(": hm\n\ndata: {ROLE}\n\n");
        for error in [r#"{"error":{"code":500}}"#, r#"{"error":{"message":"x"}}"#] {
            let mut so_far = SoFar::default();
            let piece = format!("{before}data: {error}\n\ndata: [DONE]\n\n");
            assert_eq!(so_far.take(piece.as_bytes()), Came::Failure(before.len()), "{error}");
            assert_eq!(so_far.text(), Some(""));
        }
    }

    /// So that nobody pays much for what is needed once in a thousand streams.
    #[test]
    #[ignore = "it measures; run it with --release --nocapture"]
    #[expect(clippy::print_stdout, reason = "the figure is what it is for")]
    fn an_event_costs_less_than_a_microsecond() {
        let event = br#"data: {"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1730000000,"model":"Qwen/Qwen3-32B","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}]}

"#;
        let (mut so_far, began, rounds) = (SoFar::default(), std::time::Instant::now(), 50_000);
        for _ in 0..rounds {
            so_far.take(event);
        }
        println!("{} ns per event", began.elapsed().as_nanos() / rounds);
        assert_eq!(so_far.tokens(), 50_000);
    }
}
