//! Anthropic's messages.

use super::{Answer, Frame, Usage, event};
use serde_json::{Value, json};

pub(super) fn opening(answer: &Answer, sums: Usage) -> String {
    let message = message(answer, &json!([]), &Value::Null, &usage(Usage { output: 1, ..sums }));
    let block = json!({"type": "text", "text": ""});
    event(&json!({"type": "message_start", "message": message}))
        + &event(&json!({"type": "content_block_start", "index": 0, "content_block": block}))
}

pub(super) fn frame() -> Frame {
    let before = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\
                  \"delta\":{\"type\":\"text_delta\",\"text\":\"";
    Frame { before: before.to_owned(), after: "\"}}\n\n", first: None }
}

pub(super) fn closing(answer: &Answer, sums: Usage) -> String {
    let delta = json!({"stop_reason": reason(answer), "stop_sequence": null});
    event(&json!({"type": "content_block_stop", "index": 0}))
        + &event(&json!({"type": "message_delta", "delta": delta, "usage": usage(sums)}))
        + &event(&json!({"type": "message_stop"}))
}

pub(super) fn whole(answer: &Answer, sums: Usage) -> String {
    let content = json!([{"type": "text", "text": answer.text()}]);
    message(answer, &content, &json!(reason(answer)), &usage(sums)).to_string()
}

fn message(answer: &Answer, content: &Value, reason: &Value, usage: &Value) -> Value {
    json!({
        "id": format!("msg_{}", answer.id),
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": null,
        "usage": usage,
    })
}

const fn reason(answer: &Answer) -> &'static str {
    if answer.stops { "end_turn" } else { "max_tokens" }
}

/// Here `input_tokens` are those that were not in the cache.
fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.prompt.saturating_sub(usage.cached),
        "cache_read_input_tokens": usage.cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": usage.output,
    })
}
