//! A stream that breaks off is gone on with by another engine.

use crate::engine::{Does, Engine};
use crate::rig::{Rig, chat, post};
use crate::tale::{PROMPT, Tale};
use flyball_gateway::meter::RequestOutcome;
use serde_json::{Value, json};

const WHOLE: Tale = Tale { words: 40, cut_after: None, id: "whole" };

fn cut(after: usize, id: &'static str) -> Does {
    Does::Plays(Tale { cut_after: Some(after), id, ..WHOLE })
}

fn body(more: Value) -> String {
    let mut body = json!({"model": "m", "stream": true,
        "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": "tell"}]});
    let more = more.as_object().expect("an object").clone();
    body.as_object_mut().expect("an object").extend(more);
    body.to_string()
}

/// A client's view: the events, and the text in them.
fn read(answer: &str) -> (Vec<Value>, String) {
    let data = answer.lines().filter_map(|line| line.strip_prefix("data: "));
    let events: Vec<Value> = data.filter_map(|json| serde_json::from_str(json).ok()).collect();
    let text = |event: &Value| {
        let choice = &event["choices"][0];
        let text = choice["delta"]["content"].as_str().or(choice["text"].as_str());
        text.unwrap_or_default().to_owned()
    };
    let text = events.iter().map(text).collect();
    (events, text)
}

/// One engine that does this and one that tells the whole tale; tried until the first was asked
/// first.
async fn beside_a_whole_one(first: Does, request: &str) -> (String, Rig, Engine, Engine) {
    for _ in 0..20 {
        let bad = Engine::start(first.clone()).await;
        let good = Engine::start(Does::Plays(WHOLE)).await;
        let rig = Rig::start(&[&bad, &good], |_| {});
        let answer = rig.whole(request).await;
        if !bad.requests().is_empty() {
            return (answer, rig, bad, good);
        }
    }
    panic!("the one that breaks was never asked");
}

#[tokio::test]
async fn the_client_gets_the_whole_text_and_one_answer() {
    for (after, seam) in [(1, "after 1 tokens"), (17, "after 17 tokens"), (39, "after 39 tokens")] {
        let request = chat(&body(json!({})));
        let (answer, rig, _bad, _good) = beside_a_whole_one(cut(after, "first"), &request).await;
        let (events, text) = read(&answer);
        assert_eq!(text, WHOLE.whole(), "{answer}");
        assert!(answer.contains("data: [DONE]"), "{answer}");
        assert!(
            answer.contains(": flyball: the engine stopped") && answer.contains(seam),
            "{answer}"
        );
        assert!(events.iter().all(|event| event["id"] == "first"), "{answer}");
        assert!(events.iter().all(|event| event["created"] == 5), "{answer}");
        let roles = events.iter().filter(|e| !e["choices"][0]["delta"]["role"].is_null()).count();
        assert_eq!(roles, 1, "{answer}");
        let usage = &events.last().unwrap()["usage"];
        assert_eq!(usage["prompt_tokens"], PROMPT, "{answer}");
        assert_eq!(usage["completion_tokens"], 40, "{answer}");
        assert_eq!(usage["total_tokens"], PROMPT + 40, "{answer}");
        let line = rig.finished(1).await[0].clone();
        assert_eq!((line.outcome, line.continued, line.output), (RequestOutcome::Answered, 1, 40));
        assert_eq!(line.retries, 0);
        assert_eq!(rig.gateway.recoveries().continued, 1);
        assert_eq!(rig.in_flight(), 0);
        assert_eq!((rig.gateway.inside().requests, rig.gateway.inside().bytes), (0, 0));
    }
}

#[tokio::test]
async fn completions_go_on_behind_their_prompt_and_limits_shrink() {
    let body = json!({"model": "m", "stream": true, "prompt": "tell", "max_tokens": 20, "seed": 3});
    let request = post("/v1/completions", "connection: close\r\n", &body.to_string());
    let (answer, rig, _bad, good) = beside_a_whole_one(cut(8, "first"), &request).await;
    let first: String = (0..20).map(Tale::word).collect();
    assert_eq!(read(&answer).1, first, "{answer}");
    let sent = good.requests().pop().unwrap();
    let sent: Value = serde_json::from_str(sent.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let begun: String = (0..8).map(Tale::word).collect();
    assert_eq!(sent["prompt"], format!("tell{begun}"));
    assert_eq!((&sent["max_tokens"], &sent["seed"]), (&json!(12), &json!(3)));
    let line = rig.finished(1).await[0].clone();
    // Nobody told the tokens: 8 events, and 12 with the one that ends it.
    assert_eq!((line.outcome, line.output), (RequestOutcome::Answered, 8 + 13));
}

#[tokio::test]
async fn whoever_sends_garbage_or_says_that_it_failed_has_broken_off_too() {
    let text =
        "data: {\"id\":\"first\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" w0\"}}]}\n\n";
    let failed = "data: {\"error\":{\"code\":500}}\n\ndata: [DONE]\n\n";
    let together: &'static str = format!("{text}{failed}").leak();
    for first in
        [vec![together], vec![text, failed], vec![text, "\0 is no event\n\n"]].map(Does::Cuts)
    {
        let request = chat(&body(json!({})));
        let (answer, rig, _bad, _good) = beside_a_whole_one(first, &request).await;
        assert_eq!(read(&answer).1, WHOLE.whole(), "{answer}");
        assert!(!answer.contains("error"), "{answer}");
        assert_eq!(rig.finished(1).await[0].continued, 1);
    }
}

#[tokio::test]
async fn what_cannot_be_continued_ends_with_the_error_of_before() {
    let tools = json!([{"type": "function", "function": {"name": "f"}}]);
    for more in [
        json!({"tools": tools}),
        json!({"response_format": {"type": "json_object"}}),
        json!({"logprobs": true}),
        json!({"presence_penalty": 1}),
        json!({"stop": [" w2, the end"]}),
        json!({"max_tokens": 3}),
    ] {
        let request = chat(&body(more.clone()));
        let (answer, rig, _bad, good) = beside_a_whole_one(cut(3, "first"), &request).await;
        assert!(answer.contains(r#""code":"stream_broken""#), "{more}: {answer}");
        assert!(!answer.contains("[DONE]"), "{more}: {answer}");
        let line = rig.finished(1).await[0].clone();
        assert_eq!((line.outcome, line.continued), (RequestOutcome::Broken, 0), "{more}");
        assert!(good.requests().is_empty(), "{more}");
        assert_eq!(rig.in_flight(), 0);
    }
}

#[tokio::test]
async fn it_is_done_once_where_engines_die_and_not_twice() {
    let engines = [cut(5, "a"), cut(5, "b"), cut(5, "c"), cut(5, "d")].map(Engine::start);
    let engines = futures::future::join_all(engines).await;
    let rig = Rig::start(&engines.iter().collect::<Vec<_>>(), |_| {});
    let answer = rig.whole(&chat(&body(json!({})))).await;
    assert_eq!(read(&answer).1, (0..10).map(Tale::word).collect::<String>(), "{answer}");
    assert!(answer.contains("after 5 tokens"), "{answer}");
    assert!(answer.contains("prompt_kills_engines"), "{answer}");
    let line = rig.finished(1).await[0].clone();
    assert_eq!((line.outcome, line.continued, line.output), (RequestOutcome::Broken, 1, 11));
    assert_eq!((rig.in_flight(), rig.gateway.inside().bytes), (0, 0));
}

#[tokio::test]
async fn nothing_is_continued_where_nobody_wants_it_or_nobody_can() {
    let request = chat(&body(json!({})));
    let engine = Engine::start(cut(3, "first")).await;
    let alone = Rig::start(&[&engine], |_| {});
    assert!(alone.whole(&request).await.contains("stream_broken"));
    let other = Engine::start(cut(3, "first")).await;
    let off = Rig::start(&[&engine, &other], |s| s.recovery.continue_streams = false);
    assert!(off.whole(&request).await.contains("stream_broken"));
    assert_eq!(off.finished(1).await[0].continued, 0);
}

#[tokio::test]
async fn an_engine_that_keeps_breaking_off_is_left_alone() {
    let bad = Engine::start(cut(3, "first")).await;
    let good = Engine::start(Does::Plays(WHOLE)).await;
    let rig = Rig::start(&[&bad, &good], |_| {});
    for _ in 0..30 {
        assert_eq!(read(&rig.whole(&chat(&body(json!({})))).await).1, WHOLE.whole());
    }
    // Three failures in a row open the breaker for a second.
    assert!(bad.requests().len() <= 5, "{}", bad.requests().len());
}
