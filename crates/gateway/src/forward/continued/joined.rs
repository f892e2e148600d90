//! Makes the events of a second engine those of the answer that the first had begun.

use super::so_far::SoFar;
use crate::sse::{Usage, data_of, write_event};
use bytes::{Bytes, BytesMut};
use serde_json::Value;

/// How the events of a second engine are changed.
#[derive(Debug)]
pub(in crate::forward) struct Joined {
    id: Option<Value>,
    created: Option<Value>,
    /// Tokens that came before.
    tokens: u64,
    /// Whether the first engine was told to stop.
    made_room: bool,
}

impl Joined {
    /// Behind what came so far, so many tokens of it.
    pub(in crate::forward) fn behind(so_far: &SoFar, tokens: u64, made_room: bool) -> Self {
        let (id, created) = so_far.names();
        Self { id: id.map(Value::from), created: created.map(Value::from), tokens, made_room }
    }

    /// Says to whoever reads along where the seam is.
    pub(in crate::forward) fn seam(&self) -> Bytes {
        let tokens = self.tokens;
        let text = match self.made_room {
            true => format!("made room for others after {tokens} tokens; continues from here"),
            false => {
                format!("the engine stopped after {tokens} tokens; another one continues from here")
            }
        };
        format!(": flyball: {text}\n\n").into()
    }

    /// Whole events of the second engine, as the client gets them. Comments go: they said that the
    /// second engine is busy, which nobody asked.
    pub(in crate::forward) fn events(&self, piece: &[u8]) -> Bytes {
        let mut out = BytesMut::with_capacity(piece.len() + 64);
        for (_, data) in data_of(piece) {
            let Ok(mut chunk) = serde_json::from_slice::<Value>(data) else {
                let data = String::from_utf8_lossy(data);
                out.extend_from_slice(&write_event(None, &data));
                continue;
            };
            if self.change(&mut chunk) {
                out.extend_from_slice(&write_event(None, &chunk.to_string()));
            }
        }
        out.freeze()
    }

    /// Tokens of the whole answer, from what the second engine says of its part. Its prompt ended
    /// with what came before.
    pub(in crate::forward) fn usage(&self, of_rest: Usage) -> Usage {
        let input = of_rest.input.saturating_sub(self.tokens);
        let output = of_rest.output.saturating_add(self.tokens);
        Usage { input, cached: of_rest.cached.map(|cached| cached.min(input)), output }
    }

    /// Whether something is left to say.
    fn change(&self, chunk: &mut Value) -> bool {
        let Some(fields) = chunk.as_object_mut() else { return true };
        for (name, value) in [("id", &self.id), ("created", &self.created)] {
            if let (Some(value), Some(field)) = (value, fields.get_mut(name)) {
                *field = value.clone();
            }
        }
        let has_usage = fields.get("usage").is_some_and(Value::is_object);
        if let Some(usage) = fields.get_mut("usage").filter(|usage| usage.is_object()) {
            self.add_up(usage);
        }
        let Some(choice) = fields.get_mut("choices").and_then(|choices| choices.get_mut(0)) else {
            return true;
        };
        let finished = choice.get("finish_reason").is_some_and(|reason| !reason.is_null());
        let Some(delta) = choice.get_mut("delta").and_then(Value::as_object_mut) else {
            return true;
        };
        // The first engine has said whose words these are.
        let begins = delta.remove("role").is_some();
        let content = delta.get("content").and_then(Value::as_str).unwrap_or_default();
        !begins || !content.is_empty() || finished || has_usage
    }

    fn add_up(&self, usage: &mut Value) {
        let of = |name: &str| usage[name].as_u64().unwrap_or(0);
        let cached = usage["prompt_tokens_details"]["cached_tokens"].as_u64();
        let (input, output) = (of("prompt_tokens"), of("completion_tokens"));
        let sum = self.usage(Usage { input, cached, output });
        usage["prompt_tokens"] = sum.input.into();
        usage["completion_tokens"] = sum.output.into();
        usage["total_tokens"] = (sum.input + sum.output).into();
        if let Some(cached) = sum.cached {
            usage["prompt_tokens_details"]["cached_tokens"] = cached.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn joined() -> Joined {
        let mut so_far = SoFar::default();
        let first = json!({"id": "first", "created": 7, "choices": []});
        so_far.take(format!("data: {first}\n\n").as_bytes());
        Joined::behind(&so_far, 4, false)
    }

    fn through(event: &Value) -> Option<Value> {
        let out = joined().events(format!(": busy\n\ndata: {event}\n\n").as_bytes());
        let text = String::from_utf8(out.to_vec()).unwrap();
        text.strip_prefix("data: ").map(|json| serde_json::from_str(json).unwrap())
    }

    #[test]
    fn events_get_the_first_names_and_no_second_role() {
        let chunk = |delta: Value| json!({"id": "second", "created": 9, "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
        for empty in [json!(""), Value::Null] {
            assert_eq!(through(&chunk(json!({"role": "assistant", "content": empty}))), None);
        }
        let passed = through(&chunk(json!({"role": "assistant", "content": " on"}))).unwrap();
        assert_eq!((&passed["id"], &passed["created"]), (&json!("first"), &json!(7)));
        assert_eq!(passed["choices"][0]["delta"], json!({"content": " on"}));
        let end = json!({"id": "x", "choices": [{"delta": {}, "finish_reason": "stop"}]});
        assert_eq!(through(&end).unwrap()["choices"], end["choices"]);
        let done = joined().events(b"data: [DONE]\n\n");
        assert_eq!(&done[..], b"data: [DONE]\n\n");
    }

    #[test]
    fn usage_is_that_of_one_answer() {
        // The second engine read 10 tokens of prompt and 4 that had come, and wrote 6.
        let usage = json!({"prompt_tokens": 14, "completion_tokens": 6, "total_tokens": 20,
            "prompt_tokens_details": {"cached_tokens": 12}});
        let sum = &through(&json!({"id": "x", "choices": [], "usage": usage})).unwrap()["usage"];
        assert_eq!(
            *sum,
            json!({"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20,
                "prompt_tokens_details": {"cached_tokens": 10}})
        );
    }
}
