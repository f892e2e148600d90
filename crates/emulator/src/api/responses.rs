//! OpenAI's responses.

use super::{Answer, Frame, Usage, event};
use serde_json::{Value, json};

/// Events before the first token.
const OPENING: u32 = 4;

pub(super) fn opening(answer: &Answer) -> String {
    let begun = response(answer, "in_progress", &json!([]), &Value::Null);
    let item = item(answer, "in_progress", &json!([]));
    let events = [
        json!({"type": "response.created", "response": begun}),
        json!({"type": "response.in_progress", "response": begun}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        part(answer, "response.content_part.added", ""),
    ];
    numbered(events, 0)
}

pub(super) fn frame(answer: &Answer) -> Frame {
    let before = format!(
        "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\
         \"item_id\":\"msg_{}\",\"output_index\":0,\"content_index\":0,\"logprobs\":[],\
         \"delta\":\"",
        answer.id
    );
    Frame { before, after: "\",\"sequence_number\":", first: Some(OPENING) }
}

pub(super) fn closing(answer: &Answer, sums: Usage) -> String {
    let text = answer.text();
    let id = format!("msg_{}", answer.id);
    let content = json!([{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]);
    let item = item(answer, "completed", &content);
    let status = status(answer);
    let ended = response(answer, status, &json!([item]), &usage(sums));
    let events = [
        json!({"type": "response.output_text.done", "item_id": id, "output_index": 0,
               "content_index": 0, "text": text, "logprobs": []}),
        part(answer, "response.content_part.done", &text),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": format!("response.{status}"), "response": ended}),
    ];
    numbered(events, OPENING + answer.output)
}

pub(super) fn whole(answer: &Answer, sums: Usage) -> String {
    let text = answer.text();
    let content = json!([{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]);
    let item = item(answer, "completed", &content);
    response(answer, status(answer), &json!([item]), &usage(sums)).to_string()
}

/// An answer that reached its limit is not complete.
const fn status(answer: &Answer) -> &'static str {
    if answer.stops { "completed" } else { "incomplete" }
}

fn response(answer: &Answer, status: &str, output: &Value, usage: &Value) -> Value {
    let details = match status {
        "incomplete" => json!({"reason": "max_output_tokens"}),
        _ => Value::Null,
    };
    json!({
        "id": format!("resp_{}", answer.id),
        "object": "response",
        "created_at": answer.created,
        "status": status,
        "error": null,
        "incomplete_details": details,
        "instructions": null,
        "metadata": {},
        "model": answer.model,
        "output": output,
        "parallel_tool_calls": true,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": usage,
    })
}

fn item(answer: &Answer, status: &str, content: &Value) -> Value {
    json!({
        "id": format!("msg_{}", answer.id),
        "type": "message",
        "status": status,
        "role": "assistant",
        "content": content,
    })
}

fn part(answer: &Answer, kind: &str, text: &str) -> Value {
    json!({
        "type": kind,
        "item_id": format!("msg_{}", answer.id),
        "output_index": 0,
        "content_index": 0,
        "part": {"type": "output_text", "text": text, "annotations": [], "logprobs": []},
    })
}

fn numbered<const N: usize>(events: [Value; N], from: u32) -> String {
    let mut text = String::new();
    for (number, mut one) in (from..).zip(events) {
        one["sequence_number"] = json!(number);
        text.push_str(&event(&one));
    }
    text
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt + usage.output,
    })
}
