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
    /// What was around the text of the last event that was read.
    around: Around,
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
            if let Some(text) = self.around.text_in(data) {
                self.add(text);
                continue;
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
            self.around.learn(data, &chunk);
        }
        Came::More
    }

    fn add(&mut self, text: &str) {
        self.tokens += u64::from(!text.is_empty());
        self.text.push_str(text);
        if self.cannot || self.text.len() > TEXT_BYTES {
            self.cannot = true;
            self.text = String::new();
        }
    }

    fn chunk(&mut self, chunk: &Chunk<'_>) {
        if self.id.is_none() {
            self.id = chunk.id.as_ref().map(|id| id.0.to_string());
            self.created = chunk.created;
        }
        for choice in &chunk.choices {
            self.cannot |= choice.finish_reason.is_some()
                || choice.index != 0
                || choice.delta.as_ref().is_some_and(Delta::is_more_than_text);
            self.add(choice.content().map_or("", |text| &text.0));
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

/// What is around the text in an event. Engines write all events of an answer alike, so that most
/// need not be read: with the same bytes before and behind, and nothing between that ends a text or
/// begins an escape, only the text differs.
#[derive(Debug, Default)]
struct Around {
    before: Vec<u8>,
    behind: Vec<u8>,
}

/// Bytes around a text that are kept; a usual event has 200.
const AROUND_BYTES: usize = 1 << 10;

impl Around {
    fn text_in<'a>(&self, data: &'a [u8]) -> Option<&'a str> {
        if self.before.is_empty() {
            return None;
        }
        let text = data.strip_prefix(&*self.before)?.strip_suffix(&*self.behind)?;
        // Below a blank nothing may stand in a text as it is.
        let plain = memchr::memchr2(b'"', b'\\', text).is_none() && text.iter().all(|b| *b >= b' ');
        plain.then(|| str::from_utf8(text).ok()).flatten()
    }

    fn learn(&mut self, data: &[u8], chunk: &Chunk<'_>) {
        let [choice] = &*chunk.choices else { return };
        // Borrowed, it has no escapes and stands in the data as it is.
        let Some(Text(Cow::Borrowed(text))) = choice.content() else { return };
        let at = (text.as_ptr() as usize).wrapping_sub(data.as_ptr() as usize);
        let Some((before, rest)) = data.split_at_checked(at) else { return };
        let Some(behind) = rest.get(text.len()..) else { return };
        if before.len() + behind.len() <= AROUND_BYTES {
            before.clone_into(&mut self.before);
            behind.clone_into(&mut self.behind);
        }
    }
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
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
    text: Option<Text<'a>>,
    #[serde(default)]
    finish_reason: Option<IgnoredAny>,
}

impl<'a> Choice<'a> {
    fn content(&self) -> Option<&Text<'a>> {
        self.delta.as_ref().and_then(|delta| delta.content.as_ref()).or(self.text.as_ref())
    }
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Option<Text<'a>>,
    #[serde(borrow, default)]
    reasoning_content: Option<Text<'a>>,
    #[serde(borrow, default)]
    reasoning: Option<Text<'a>>,
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
        let has_text = |text: &Option<Text<'_>>| text.as_ref().is_some_and(|t| !t.0.is_empty());
        has_text(&self.reasoning_content)
            || has_text(&self.reasoning)
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

/// A text as it stands in the data, if it has no escapes. Without a type of its own, serde would copy
/// it each time.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    proptest! {
        /// Read one by one by somebody who learns nothing, or all by one who does.
        #[test]
        fn what_is_learned_changes_nothing(texts in prop::collection::vec(".{0,8}", 1..30)) {
            let mut learned = SoFar::default();
            let mut plainly = String::new();
            for (number, text) in texts.iter().enumerate() {
                let mut chunk = serde_json::json!({"id": "a", "choices": [{"index": 0,
                    "delta": {"content": text}, "finish_reason": null}]});
                if number % 7 == 6 {
                    chunk["created"] = number.into();
                }
                let event = format!("data: {chunk}\n\n");
                learned.take(event.as_bytes());
                let mut alone = SoFar::default();
                alone.take(event.as_bytes());
                plainly.push_str(alone.text().unwrap());
            }
            prop_assert_eq!(learned.text(), Some(&*plainly));
            prop_assert_eq!(&plainly, &texts.concat());
            let tokens = texts.iter().filter(|text| !text.is_empty()).count();
            prop_assert_eq!(learned.tokens(), tokens as u64);
        }
    }

    #[test]
    fn an_end_is_seen_also_after_much_was_learned() {
        let event = |text: &str, end: &str| {
            format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}},"finish_reason":{end}}}]}}"#)
        };
        let events: Vec<String> = ["a", "b", "c"].iter().map(|text| event(text, "null")).collect();
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let learned = after(&events);
        assert_eq!(learned.text(), Some("abc"));
        let next = event("what comes", "null");
        assert_eq!(learned.around.text_in(next.as_bytes()), Some("what comes"));
        let smuggled = event(r#"","tool_calls":[1],"x":""#, "null");
        for last in [event("d", "\"stop\""), smuggled] {
            assert_eq!(after(&[&events[..], &[&last]].concat()).text(), None, "{last}");
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
