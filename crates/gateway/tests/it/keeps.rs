//! Answers that are kept and given again.

use crate::engine::{Does, Engine};
use crate::rig::{Rig, body_of, chat, chat_of, key};
use flyball_gateway::settings::{GatewaySettingsFile, ModelSettings};
use std::time::Duration;

const ASK: &str = r#"{"model":"m","temperature":0,"messages":[{"role":"user","content":"hi"}]}"#;
const STREAM: &str = r#"{"model":"m","temperature":0,"seed":7,"stream":true,"messages":[]}"#;

fn keeping(settings: &mut GatewaySettingsFile) {
    settings.models = vec![ModelSettings {
        name: "m".to_owned(),
        cache_responses: true,
        ..ModelSettings::default()
    }];
}

fn is_hit(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 200") && answer.contains("x-flyball-cache: hit\r\n")
}

#[tokio::test]
async fn the_same_request_is_answered_without_an_engine() {
    let answers = r#"{"usage":{"completion_tokens":7}}"#;
    let engine = Engine::start(Does::Answers(200, answers)).await;
    let rig = Rig::start(&[&engine], keeping);
    let first = rig.whole(&chat(ASK)).await;
    assert!(first.starts_with("HTTP/1.1 200") && !is_hit(&first), "{first}");
    let second = rig.whole(&chat(ASK)).await;
    assert!(is_hit(&second), "{second}");
    assert_eq!(body_of(&second), answers);
    assert!(second.contains("content-type: application/json\r\n"), "{second}");
    assert!(second.contains("x-request-id: "), "{second}");
    assert_eq!(engine.requests().len(), 1);
    let lines = rig.finished(2).await;
    let logged: Vec<_> = lines.iter().map(|l| (l.cached, l.status, l.output)).collect();
    assert_eq!(logged, [(false, 200, 7), (true, 200, 0)]);
    assert!(rig.gateway.inside().cached_bytes > answers.len());
    assert_eq!(rig.gateway.inside().requests, 0);
}

#[tokio::test]
async fn a_stream_is_given_again_as_a_stream() {
    let pieces = vec!["data: {\"a\":1}\n\nda", "ta: {\"a\":2}\n\n", "data: [DONE]\n\n"];
    let engine = Engine::start(Does::Streams(pieces.clone(), Duration::from_millis(5))).await;
    let rig = Rig::start(&[&engine], keeping);
    rig.whole(&chat(STREAM)).await;
    let again = rig.whole(&chat(STREAM)).await;
    assert!(is_hit(&again) && again.contains("content-type: text/event-stream"), "{again}");
    assert_eq!(body_of(&again), pieces.concat());
    assert_eq!(engine.requests().len(), 1);
}

#[tokio::test]
async fn whatever_might_differ_is_asked_again() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let rig = Rig::start(&[&engine], keeping);
    rig.whole(&chat(ASK)).await;
    let warm = ASK.replace(":0,", ":0.1,");
    let none = ASK.replace(r#""temperature":0,"#, "");
    let two = ASK.replace(":0,", ":0,\"n\":2,");
    let spaced = ASK.replace(":0,", ": 0,");
    for body in [&warm, &warm, &none, &none, &two, &two, &spaced] {
        assert!(!is_hit(&rig.whole(&chat(body)).await), "{body}");
    }
    assert_eq!(engine.requests().len(), 8);
    assert!(is_hit(&rig.whole(&chat(&spaced)).await));
    let other = Rig::start(&[&engine], |_| {});
    other.whole(&chat(ASK)).await;
    assert!(!is_hit(&other.whole(&chat(ASK)).await), "the model did not opt in");
}

#[tokio::test]
async fn a_client_may_forbid_it() {
    let engine = Engine::start(Does::Answers(200, r#"{"v":1}"#)).await;
    let rig = Rig::start(&[&engine], |s| {
        keeping(s);
        s.keys = vec![key("ann", None)];
    });
    let ask = |headers: &str| chat_of("ann", headers, ASK);
    rig.whole(&ask("cache-control: no-store\r\n")).await;
    assert!(!is_hit(&rig.whole(&ask("")).await), "no-store was kept");
    engine.now(Does::Answers(200, r#"{"v":2}"#));
    assert!(body_of(&rig.whole(&ask("")).await).contains("1"));
    // Asked anew, the new one is kept.
    assert!(body_of(&rig.whole(&ask("cache-control: no-cache\r\n")).await).contains("2"));
    let again = rig.whole(&ask("")).await;
    assert!(is_hit(&again) && body_of(&again).contains("2"), "{again}");
}

#[tokio::test]
async fn nobody_gets_what_was_kept_for_another() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let rig = Rig::start(&[&engine], |s| {
        keeping(s);
        s.keys = vec![
            key("ann", None),
            key("ben", None),
            key("cat", Some("pets")),
            key("dog", Some("pets")),
        ];
    });
    for (secret, hit) in
        [("ann", false), ("ben", false), ("ann", true), ("cat", false), ("dog", true), ("x", false)]
    {
        assert_eq!(is_hit(&rig.whole(&chat_of(secret, "", ASK)).await), hit, "{secret}");
    }
}

#[tokio::test]
async fn only_whole_and_good_answers_are_kept() {
    let long: &'static str = Box::leak(format!("\"{}\"", "x".repeat(1 << 20)).into_boxed_str());
    let engine = Engine::start(Does::Answers(400, "{}")).await;
    let rig = Rig::start(&[&engine], keeping);
    let bad = [
        Does::Answers(400, "{}"),
        Does::Answers(404, "{}"),
        Does::Answers(200, long),
        Does::Cuts(vec!["data: {\"a\":1}\n\n"]),
        Does::Streams(vec!["data: {\"a\":1}\n\n"], Duration::ZERO),
        Does::Streams(
            vec!["data: {\"error\":{\"message\":\"no\"}}\n\n", "data: [DONE]\n\n"],
            Duration::ZERO,
        ),
    ];
    for does in bad {
        engine.now(does.clone());
        let before = engine.requests().len();
        rig.whole(&chat(STREAM)).await;
        assert!(!is_hit(&rig.whole(&chat(STREAM)).await), "{does:?}");
        assert!(engine.requests().len() >= before + 2, "{does:?}");
    }
    assert_eq!(rig.gateway.inside().cached_bytes, 0);
}

#[tokio::test]
async fn an_answer_is_kept_for_its_time_only() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let rig = Rig::start(&[&engine], |s| {
        keeping(s);
        s.response_cache.ttl_s = 1;
    });
    // A machine may be so slow that the time is over before it is asked again.
    while !is_hit(&rig.whole(&chat(ASK)).await) {}
    tokio::time::sleep(Duration::from_millis(1_050)).await;
    assert!(!is_hit(&rig.whole(&chat(ASK)).await));
}
