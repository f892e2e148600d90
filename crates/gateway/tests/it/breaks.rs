//! Engines that break: tried again where nobody has seen anything, said where somebody has.

use crate::engine::{Does, Engine};
use crate::rig::{PLAIN, Rig, STREAM, chat, post};
use flyball_gateway::meter::RequestOutcome;
use std::time::{Duration, Instant};

/// Two engines: `bad` does this, the other answers. Which one is asked first follows from names, so
/// both ways are tried until the bad one was.
async fn beside_a_good_one(bad: Does, body: &str) -> (String, Rig) {
    let good_does =
        Does::Streams(vec!["data: {\"good\":1}\n\n", "data: [DONE]\n\n"], Duration::ZERO);
    for _ in 0..20 {
        let (bad, good) =
            (Engine::start(bad.clone()).await, Engine::start(good_does.clone()).await);
        let rig = Rig::start(&[&bad, &good], |s| s.timeouts.first_byte_ms = 3_000);
        let answer = rig.whole(&chat(body)).await;
        if !bad.requests().is_empty() {
            return (answer, rig);
        }
    }
    panic!("the bad engine was never asked");
}

#[tokio::test]
async fn what_breaks_before_the_first_event_is_tried_elsewhere() {
    for bad in [
        Does::Closes,
        Does::Answers(500, "cannot schedule new futures after shutdown"),
        Does::Answers(503, ""),
        Does::Answers(429, ""),
        Does::Cuts(vec![]),
        Does::Cuts(vec![": only a comment\n\n"]),
        Does::Cuts(vec!["data: {\"half\":"]),
        Does::Hangs,
    ] {
        let (answer, rig) = beside_a_good_one(bad.clone(), STREAM).await;
        assert!(answer.contains("good") && answer.contains("[DONE]"), "{bad:?}: {answer}");
        assert!(!answer.contains("half"), "{bad:?}: {answer}");
        let line = &rig.finished(1).await[0];
        assert_eq!((line.outcome, line.retries), (RequestOutcome::Answered, 1), "{bad:?}");
    }
}

#[tokio::test]
async fn a_closed_port_is_tried_elsewhere_and_left_alone() {
    let good = Engine::start(Does::Answers(200, "{}")).await;
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let rig = Rig::on(&[closed, good.address], |_| {});
    let began = Instant::now();
    for _ in 0..20 {
        assert!(rig.whole(&chat(PLAIN)).await.starts_with("HTTP/1.1 200"));
    }
    let retries: u32 = rig.finished(20).await.iter().map(|line| line.retries).sum();
    let seconds = began.elapsed().as_secs();
    assert!(u64::from(retries) <= 1 + seconds, "{retries} tries at a closed port in {seconds} s");
}

#[tokio::test]
async fn a_stream_that_breaks_ends_with_an_error_that_can_be_retried() {
    for pieces in [
        vec!["data: {\"a\":1}\n\n"],
        vec!["data: {\"a\":1}\n\ndata: {\"hal"],
        vec!["data: {\"a\":1}\n\n", "data: {\"hal"],
    ] {
        let engine = Engine::start(Does::Cuts(pieces.clone())).await;
        let rig = Rig::start(&[&engine], |_| {});
        let answer = rig.whole(&chat(STREAM)).await;
        assert!(answer.contains("{\"a\":1}\n\n"), "{pieces:?}: {answer}");
        assert!(!answer.contains("hal"), "{pieces:?}: {answer}");
        assert!(answer.contains(r#""code":"stream_broken""#), "{pieces:?}: {answer}");
        assert!(answer.contains(r#""type":"server_error""#), "{pieces:?}: {answer}");
        assert!(!answer.contains("[DONE]"), "{pieces:?}: {answer}");
        assert_eq!(rig.finished(1).await[0].outcome, RequestOutcome::Broken);
    }
}

#[tokio::test]
async fn an_anthropic_stream_breaks_in_its_own_words() {
    let engine = Engine::start(Does::Cuts(vec![
        "event: message_start\ndata: {\"type\":\"message_start\"}\n\n",
    ]))
    .await;
    let rig = Rig::start(&[&engine], |_| {});
    let answer = rig.whole(&post("/v1/messages", "connection: close\r\n", STREAM)).await;
    assert!(answer.contains("event: error\ndata: {"), "{answer}");
    assert!(answer.contains(r#""type":"api_error""#), "{answer}");
}

#[tokio::test]
async fn a_stream_without_its_end_mark_is_broken() {
    let engine =
        Engine::start(Does::Streams(vec!["data: {\"a\":1}\n\n"], Duration::from_millis(1))).await;
    let rig = Rig::start(&[&engine], |_| {});
    assert!(rig.whole(&chat(STREAM)).await.contains("stream_broken"));
}

#[tokio::test]
async fn a_stream_of_comments_only_is_given_up() {
    let mut comments = vec![":\n\n"; 200];
    comments[0] = "data: {\"a\":1}\n\n";
    let engine = Engine::start(Does::Streams(comments, Duration::from_millis(300))).await;
    let rig = Rig::start(&[&engine], |s| s.timeouts.answer_idle_ms = 1_000);
    let answer = rig.whole(&chat(STREAM)).await;
    assert!(answer.contains("stream_broken"), "{answer}");
    engine.left(1).await;
}

#[tokio::test]
async fn an_engine_that_hangs_ends_at_its_deadline() {
    let engine = Engine::start(Does::Hangs).await;
    let rig = Rig::start(&[&engine], |s| s.timeouts.first_byte_ms = 600);
    let answer = rig.whole(&chat(PLAIN)).await;
    assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
    assert!(answer.contains("engine_timeout"), "{answer}");
    engine.left(1).await;
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_costs_nothing() {
    let engine = Engine::start(Does::Cuts(vec!["data: {\"a\":1}\n\ndata: [DONE]\n\n"])).await;
    let rig = Rig::start(&[&engine], |_| {});
    for _ in 0..4 {
        engine.now(Does::Answers(200, "{}"));
        assert!(rig.whole(&chat(PLAIN)).await.starts_with("HTTP/1.1 200"));
        engine.now(Does::Closes);
        assert!(rig.whole(&chat(PLAIN)).await.starts_with("HTTP/1.1 502"));
    }
}

#[tokio::test]
async fn nobody_there_is_said_at_once() {
    let rig = Rig::on(&[], |_| {});
    let answer = rig.whole(&chat(PLAIN)).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("retry-after: 1\r\n"), "{answer}");
    assert!(answer.contains("x-flyball-reason: no_engine\r\n"), "{answer}");
}
