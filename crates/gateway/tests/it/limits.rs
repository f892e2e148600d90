//! What may not be: slow, large, unknown, too often.

use crate::engine::{Does, Engine};
use crate::rig::{LONG, PLAIN, Rig, STREAM, chat, chat_of, post};
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
    // It is not what the settings of several gateways might seem to promise.
    for answer in [&first, &third] {
        assert!(answer.contains("x-ratelimit-scope: gateway-replica\r\n"), "{answer}");
    }
    assert!(third.contains("at this gateway") && third.contains("each replica"), "{third}");
}

#[tokio::test]
async fn a_caller_that_fills_its_share_does_not_keep_out_another() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let keys = ["greedy", "other"].map(|name| crate::rig::key(name, None));
    let rig = Rig::start(&[&engine], |s| {
        s.keys = keys.to_vec();
        s.limits.in_flight = 8;
    });
    // Half of a body each: they are inside, and no engine hears of them.
    let whole = chat_of("greedy", "", PLAIN);
    let half = &whole[..whole.len() - 10];
    let mut held = Vec::new();
    for _ in 0..4 {
        let mut stream = rig.connect().await;
        stream.write_all(half.as_bytes()).await.unwrap();
        held.push(stream);
    }
    while rig.gateway.inside().requests < 4 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    for _ in 0..10 {
        let refused = rig.whole(&whole).await;
        assert!(
            refused.starts_with("HTTP/1.1 429") && refused.contains("caller_full"),
            "{refused}"
        );
        let answer = rig.whole(&chat_of("other", "", PLAIN)).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    drop(held);
    while rig.gateway.inside().requests > 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(rig.whole(&whole).await.starts_with("HTTP/1.1 200"), "what was given back is there");
}

#[tokio::test]
async fn bytes_of_one_caller_do_not_keep_out_those_of_another() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let keys = ["greedy", "other"].map(|name| crate::rig::key(name, None));
    let rig = Rig::start(&[&engine], |s| {
        s.keys = keys.to_vec();
        s.limits.body_bytes = 10_000;
        s.limits.held_bytes = 100_000;
    });
    let body = format!(r#"{{"model":"m","messages":["{}"]}}"#, "x".repeat(9_900));
    let whole = chat_of("greedy", "", &body);
    let mut held = Vec::new();
    for number in 1..=5 {
        let mut stream = rig.connect().await;
        stream.write_all(&whole.as_bytes()[..whole.len() - 10]).await.unwrap();
        held.push(stream);
        while rig.gateway.inside().bytes < number * 9_900 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    let refused = rig.whole(&whole).await;
    assert!(refused.starts_with("HTTP/1.1 429") && refused.contains("caller_full"), "{refused}");
    let answer = rig.whole(&chat_of("other", "", &body)).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    drop(held);
}

#[tokio::test]
async fn a_byte_now_and_then_does_not_keep_a_body_open() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    // Each byte comes in time, all of them do not.
    let rig = Rig::start(&[&engine], |s| s.timeouts.body_ms = 200);
    let mut stream = rig.connect().await;
    let (mut reading, mut writing) = stream.split();
    let request = chat(PLAIN);
    let (head, body) = request.split_at(request.len() - PLAIN.len());
    let trickle = async {
        writing.write_all(head.as_bytes()).await.unwrap();
        for byte in body.as_bytes().chunks(1) {
            if writing.write_all(byte).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        std::future::pending::<()>().await;
    };
    let mut answer = String::new();
    tokio::select! {
        read = reading.read_to_string(&mut answer) => drop(read),
        () = trickle => {}
    }
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("body_timeout"), "{answer}");
    assert!(engine.requests().is_empty());
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
