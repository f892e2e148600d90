//! OpenAI's chat and completions.

use super::{Answer, Frame, Usage, data};
use serde_json::{Value, json};

pub(super) fn opening(answer: &Answer) -> String {
    let delta = json!({"role": "assistant", "content": ""});
    data(&chunk(answer, &json!([{"index": 0, "delta": delta, "finish_reason": null}])))
}

pub(super) fn frame(answer: &Answer) -> Frame {
    let Answer { id, model, created, .. } = answer;
    let model = Value::from(model.as_str());
    let before = format!(
        "data: {{\"id\":\"chatcmpl-{id}\",\"object\":\"chat.completion.chunk\",\"created\":\
         {created},\"model\":{model},\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\""
    );
    Frame { before, after: "\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n", first: None }
}

pub(super) fn completion_frame(answer: &Answer) -> Frame {
    let Answer { id, model, created, .. } = answer;
    let model = Value::from(model.as_str());
    let before = format!(
        "data: {{\"id\":\"cmpl-{id}\",\"object\":\"text_completion\",\"created\":{created},\
         \"model\":{model},\"choices\":[{{\"index\":0,\"text\":\""
    );
    Frame { before, after: "\",\"logprobs\":null,\"finish_reason\":null}]}\n\n", first: None }
}

pub(super) fn closing(answer: &Answer, sums: Usage) -> String {
    let reason = reason(answer);
    let last = match answer.form {
        super::Form::Chat => json!([{"index": 0, "delta": {}, "finish_reason": reason}]),
        _ => json!([{"index": 0, "text": "", "finish_reason": reason}]),
    };
    let mut text = data(&chunk(answer, &last));
    if answer.include_usage {
        let mut end = chunk(answer, &json!([]));
        end["usage"] = usage(sums);
        text.push_str(&data(&end));
    }
    text.push_str("data: [DONE]\n\n");
    text
}

pub(super) fn whole(answer: &Answer, sums: Usage) -> String {
    let Answer { id, model, created, .. } = answer;
    let message = json!({"role": "assistant", "content": answer.text()});
    json!({
        "id": format!("chatcmpl-{id}"),
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": reason(answer)}],
        "usage": usage(sums),
    })
    .to_string()
}

pub(super) fn completion(answer: &Answer, sums: Usage) -> String {
    let Answer { id, model, created, .. } = answer;
    json!({
        "id": format!("cmpl-{id}"),
        "object": "text_completion",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "text": answer.text(), "logprobs": null, "finish_reason": reason(answer)}],
        "usage": usage(sums),
    })
    .to_string()
}

fn chunk(answer: &Answer, choices: &Value) -> Value {
    let Answer { id, model, created, .. } = answer;
    let (prefix, object) = match answer.form {
        super::Form::Chat => ("chatcmpl", "chat.completion.chunk"),
        _ => ("cmpl", "text_completion"),
    };
    json!({
        "id": format!("{prefix}-{id}"),
        "object": object,
        "created": created,
        "model": model,
        "choices": choices,
    })
}

const fn reason(answer: &Answer) -> &'static str {
    if answer.stops { "stop" } else { "length" }
}

fn usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    })
}
