//! What may not be: slow, large, unknown, too often.

use crate::engine::{Does, Engine};
use crate::rig::{LONG, PLAIN, Rig, STREAM, chat, post};
use flyball_gateway::settings::Key;
use sha2::{Digest as _, Sha256};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fn key(secret: &str, requests_per_minute: Option<u32>) -> Key {
    let sha256 = Sha256::digest(secret).iter().map(|byte| format!("{byte:02x}")).collect();
    Key { name: "team".into(), sha256, requests_per_minute, ..Key::default() }
}

#[tokio::test]
async fn nobody_comes_in_without_a_key_if_there_are_keys() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let rig = Rig::start(&[&engine], |s| s.keys = vec![key("secret", None)]);
    for wrong in ["", "authorization: Bearer no\r\n", "authorization: Bearer ' OR '1'='1\r\n"] {
        let headers = format!("connection: close\r\n{wrong}");
        let answer = rig.whole(&post("/v1/chat/completions", &headers, PLAIN)).await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    }
    assert!(engine.requests().is_empty());
    let right = "connection: close\r\nauthorization: Bearer secret\r\n";
    let answer = rig.whole(&post("/v1/chat/completions", right, PLAIN)).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn a_rate_is_said_and_held() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let rig = Rig::start(&[&engine], |s| s.keys = vec![key("secret", Some(2))]);
    let request = post("/v1/chat/completions", "connection: close\r\nx-api-key: secret\r\n", PLAIN);
    let first = rig.whole(&request).await;
    assert!(first.contains("x-ratelimit-limit-requests: 2\r\n"), "{first}");
    assert!(first.contains("x-ratelimit-remaining-requests: 1\r\n"), "{first}");
    rig.whole(&request).await;
    let third = rig.whole(&request).await;
    assert!(third.starts_with("HTTP/1.1 429"), "{third}");
    assert!(third.contains("retry-after: "), "{third}");
}

#[tokio::test]
async fn large_encoded_and_unknown_are_refused() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let rig = Rig::start(&[&engine], |s| s.limits.body_bytes = 1_000);
    let long = format!(r#"{{"model":"m","prompt":"{}"}}"#, "x".repeat(1_000));
    assert!(rig.whole(&chat(&long)).await.starts_with("HTTP/1.1 413"));
    let gzip = "connection: close\r\ncontent-encoding: gzip\r\n";
    assert!(rig.whole(&post("/v1/completions", gzip, PLAIN)).await.starts_with("HTTP/1.1 415"));
    let answer = rig.whole(&chat(r#"{"model":"other","messages":[]}"#)).await;
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("model_not_found"), "{answer}");
    let twice = r#"{"model":"m","messages":[],"model":"m"}"#;
    let answer = rig.whole(&chat(twice)).await;
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("more than once"), "{answer}");
    assert!(engine.requests().is_empty());
    let lines = rig.finished(4).await;
    assert!(lines.iter().all(|line| line.model.is_none()), "{lines:?}");
}

#[tokio::test]
async fn who_sends_slowly_is_shown_out() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let rig = Rig::start(&[&engine], |s| {
        s.timeouts.head_ms = 300;
        s.timeouts.body_idle_ms = 300;
        s.timeouts.keep_alive_ms = 600;
    });
    let part_of_head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n";
    let part_of_body = &post("/v1/chat/completions", "", PLAIN)[..120];
    for (start, at_least) in [("", 550), (part_of_head, 250), (part_of_body, 250)] {
        let began = Instant::now();
        let mut stream = rig.connect().await;
        stream.write_all(start.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(LONG, stream.read_to_end(&mut rest)).await;
        let took = began.elapsed().as_millis();
        assert!(ended.is_ok() && took >= at_least, "{start:?}: {ended:?} after {took} ms");
    }
}

#[tokio::test]
async fn a_byte_now_and_then_does_not_keep_a_head_open() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let rig = Rig::start(&[&engine], |s| s.timeouts.head_ms = 400);
    let mut stream = rig.connect().await;
    let writing = async {
        while stream.write_all(b"P").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    assert!(tokio::time::timeout(LONG, writing).await.is_ok(), "it stays open");
}

#[tokio::test]
async fn who_does_not_read_is_cut_off_and_holds_little() {
    let piece: &'static str =
        Box::leak(format!("data: {}\n\n", "x".repeat(60_000)).into_boxed_str());
    let pieces = vec![piece; 400];
    let engine = Engine::start(Does::Streams(pieces, Duration::ZERO)).await;
    let rig = Rig::start(&[&engine], |s| s.timeouts.client_idle_ms = 500);
    let mut stream = rig.connect().await;
    stream.write_all(chat(STREAM).as_bytes()).await.unwrap();
    engine.left(1).await;
    assert_eq!(rig.finished(1).await.len(), 1);
}

#[tokio::test]
async fn requests_beyond_the_room_are_refused_at_once() {
    let engine = Engine::start(Does::Hangs).await;
    let rig = Rig::start(&[&engine], |s| s.limits.in_flight = 1);
    let mut first = rig.connect().await;
    first.write_all(chat(PLAIN).as_bytes()).await.unwrap();
    while engine.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let answer = rig.whole(&chat(PLAIN)).await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("gateway_full"), "{answer}");
}
