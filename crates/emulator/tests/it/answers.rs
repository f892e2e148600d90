//! Answers in each form, whole and streamed.

use crate::client::{get, post};
use flyball_emulator::{Emulator, EmulatorSettings};
use serde_json::{Value, json};

fn chat(text: &str, more: Value) -> Value {
    let mut body = json!({
        "model": "emulated",
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 5,
    });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

#[tokio::test]
async fn a_streamed_chat_says_the_same_as_a_whole_one() {
    let running = Emulator::start(EmulatorSettings::quick()).unwrap();
    let to = running.address;
    let whole = post(to, "/v1/chat/completions", &chat("hello", json!({}))).await;
    assert_eq!(whole.status, 200);
    assert!(whole.head.contains("x-request-id: the-one"));
    let whole = whole.json();
    let text = whole["choices"][0]["message"]["content"].as_str().unwrap();
    assert_eq!(text.split_whitespace().count(), 5);
    assert_eq!(whole["usage"]["prompt_tokens"], 2);
    assert_eq!(whole["usage"]["completion_tokens"], 5);

    let more = json!({"stream": true, "stream_options": {"include_usage": true}});
    let streamed = post(to, "/v1/chat/completions", &chat("hello", more)).await;
    assert!(streamed.whole);
    let events = streamed.events();
    // The role, five tokens, the reason, the usage.
    assert_eq!(events.len(), 9);
    assert_eq!(events[8], "[DONE]");
    let values: Vec<Value> = events[..8].iter().map(|e| serde_json::from_str(e).unwrap()).collect();
    let answered: String =
        values.iter().filter_map(|v| v["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(answered, text);
    assert_eq!(values[6]["choices"][0]["finish_reason"], "length");
    assert_eq!(values[7]["usage"]["total_tokens"], 7);
    assert_eq!(values[7]["choices"], json!([]));
    running.stop().await;
}

#[tokio::test]
async fn every_other_form_is_answered_too() {
    let running = Emulator::start(EmulatorSettings::quick()).unwrap();
    let to = running.address;
    let body = json!({"model": "emulated", "prompt": "hello", "max_tokens": 3});
    let answer = post(to, "/v1/completions", &body).await.json();
    let text = answer["choices"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(text.split_whitespace().count(), 3);

    let body = json!({"model": "emulated", "input": "hello", "max_output_tokens": 3});
    let answer = post(to, "/v1/responses", &body).await.json();
    assert_eq!(answer["output"][0]["content"][0]["text"], text.as_str());
    let mut streamed = body;
    streamed["stream"] = json!(true);
    let events = post(to, "/v1/responses", &streamed).await.events();
    let events: Vec<Value> = events.iter().map(|e| serde_json::from_str(e).unwrap()).collect();
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number, "{event}");
    }
    assert_eq!(events.last().unwrap()["response"]["usage"]["output_tokens"], 3);
    let answered: String = events.iter().filter_map(|event| event["delta"].as_str()).collect();
    assert_eq!(answered, text);

    let body = json!({"model": "emulated", "max_tokens": 3, "stream": true,
                      "messages": [{"role": "user", "content": "hello"}]});
    let streamed = post(to, "/v1/messages", &body).await;
    assert!(streamed.text().contains("event: message_stop"));
    let events = streamed.events();
    let events: Vec<Value> = events.iter().map(|e| serde_json::from_str(e).unwrap()).collect();
    let answered: String =
        events.iter().filter_map(|event| event["delta"]["text"].as_str()).collect();
    assert_eq!(answered, text);

    let body = json!({"model": "emulated", "input": ["hello", "you"], "dimensions": 8});
    let answer = post(to, "/v1/embeddings", &body).await.json();
    assert_eq!(answer["data"][1]["embedding"].as_array().unwrap().len(), 8);
    running.stop().await;
}

#[tokio::test]
async fn what_is_not_there_is_refused_in_the_form_of_its_clients() {
    let running = Emulator::start(EmulatorSettings::quick()).unwrap();
    let to = running.address;
    let answer = post(to, "/v1/chat/completions", &chat("x", json!({"model": "other"}))).await;
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (404, &json!("model_not_found")));
    let answer =
        post(to, "/v1/chat/completions", &chat("x", json!({"max_tokens": 1_000_000}))).await;
    let code = json!("context_length_exceeded");
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &code));
    let answer = post(to, "/v1/messages", &chat("x", json!({"max_tokens": 0}))).await;
    assert_eq!((answer.status, &answer.json()["type"]), (400, &json!("error")));
    assert_eq!(post(to, "/v1/nothing", &json!({})).await.status, 404);
    assert_eq!(get(to, "/v1/models").await.json()["data"][0]["id"], "emulated");
    assert_eq!(get(to, "/health").await.status, 200);
    running.stop().await;
}
