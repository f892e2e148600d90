//! A tale that any engine can go on with.

use crate::engine::Does;
use serde_json::{Value, json};
use std::time::Duration;

/// Words by number: whoever knows how many were told can tell the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tale {
    pub(crate) words: usize,
    /// Breaks off after so many.
    pub(crate) cut_after: Option<usize>,
    /// How its answers are called.
    pub(crate) id: &'static str,
}

/// Tokens of every prompt.
pub(crate) const PROMPT: usize = 10;

impl Tale {
    pub(crate) fn word(number: usize) -> String {
        format!(" w{number}")
    }

    /// All of it.
    pub(crate) fn whole(self) -> String {
        (0..self.words).map(Self::word).collect()
    }

    /// What an engine does with a request for it.
    pub(crate) fn played(self, request: &[u8]) -> Does {
        let body = memchr::memmem::find(request, b"\r\n\r\n").map_or(0, |end| end + 4);
        let body: Value = serde_json::from_slice(&request[body..]).expect("JSON");
        let begun = begun(&body);
        let chat = body["messages"].is_array();
        let chunk = |choices: Value| json!({"id": self.id, "object": "chunk", "created": self.id.len(), "choices": choices});
        let mut events = Vec::new();
        if chat {
            let delta = json!({"role": "assistant", "content": ""});
            events.push(chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}])));
        }
        let limit = body["max_tokens"].as_u64().map_or(self.words - begun, |most| most as usize);
        let until = self.words.min(begun + limit);
        for word in (begun..until).take(self.cut_after.unwrap_or(usize::MAX)).map(Self::word) {
            let choice = match chat {
                true => json!({"index": 0, "delta": {"content": word}, "finish_reason": null}),
                false => json!({"index": 0, "text": word, "finish_reason": null}),
            };
            events.push(chunk(json!([choice])));
        }
        let mut pieces: Vec<&'static str> =
            events.iter().map(|event| &*format!("data: {event}\n\n").leak()).collect();
        if self.cut_after.is_some() {
            return Does::Cuts(pieces);
        }
        let end = json!([{"index": 0, "delta": {}, "text": "", "finish_reason": "stop"}]);
        let mut end = format!("data: {}\n\n", chunk(end));
        if body["stream_options"]["include_usage"] == true {
            let mut usage = chunk(json!([]));
            let (input, output) = (PROMPT + begun, until - begun);
            usage["usage"] = json!({"prompt_tokens": input, "completion_tokens": output,
                "total_tokens": input + output});
            end += &format!("data: {usage}\n\n");
        }
        end += "data: [DONE]\n\n";
        pieces.push(end.leak());
        Does::Streams(pieces, Duration::ZERO)
    }
}

/// Words that the request says were told.
fn begun(body: &Value) -> usize {
    let text = if let Some(prompt) = body["prompt"].as_str() {
        prompt
    } else if body["continue_final_message"] == true {
        assert_eq!(body["add_generation_prompt"], false);
        let last = body["messages"].as_array().and_then(|messages| messages.last());
        let last = last.expect("a message");
        assert_eq!(last["role"], "assistant");
        last["content"].as_str().expect("text")
    } else {
        ""
    };
    text.matches(" w").count()
}
