//! A gateway that goes away finishes what it has.

use crate::engine::{Does, Engine};
use crate::rig::{LONG, PLAIN, Rig, STREAM, chat, post};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[tokio::test]
async fn a_stream_under_way_is_finished_and_new_connections_are_not_taken() {
    let pieces = vec!["data: {\"a\":1}\n\n", "data: {\"a\":2}\n\n", "data: [DONE]\n\n"];
    let engine = Engine::start(Does::Streams(pieces, Duration::from_millis(200))).await;
    let rig = Rig::start(&[&engine], |_| {});
    let address = rig.gateway.address();
    let mut stream = rig.connect().await;
    stream.write_all(post("/v1/chat/completions", "", STREAM).as_bytes()).await.unwrap();
    let mut first = [0; 512];
    assert!(stream.read(&mut first).await.unwrap() > 0);
    let gateway = rig.gateway;
    let draining = tokio::task::spawn_blocking(move || gateway.drain(LONG));
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    assert!(rest.contains("[DONE]"), "{rest}");
    draining.await.unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_stream_of_a_model_that_is_not_served_any_more_is_finished() {
    let pieces = vec!["data: {\"a\":1}\n\n", "data: {\"a\":2}\n\n", "data: [DONE]\n\n"];
    let engine = Engine::start(Does::Streams(pieces, Duration::from_millis(200))).await;
    let rig = Rig::start(&[&engine], |_| {});
    let mut stream = rig.connect().await;
    stream.write_all(chat(STREAM).as_bytes()).await.unwrap();
    let mut first = [0; 512];
    assert!(stream.read(&mut first).await.unwrap() > 0);
    rig.gateway.list(&flyball_fleet::Listing::default());
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    assert!(rest.contains("[DONE]"), "{rest}");
    let answer = rig.whole(&chat(PLAIN)).await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
}

#[tokio::test]
async fn what_does_not_finish_in_time_is_told_so() {
    let engine = Engine::start(Does::Stalls(vec!["data: {\"a\":1}\n\n"])).await;
    let rig = Rig::start(&[&engine], |_| {});
    let mut stream = rig.connect().await;
    stream.write_all(chat(STREAM).as_bytes()).await.unwrap();
    let mut first = [0; 512];
    assert!(stream.read(&mut first).await.unwrap() > 0);
    let gateway = rig.gateway;
    tokio::task::spawn_blocking(move || gateway.drain(Duration::from_millis(100)));
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    assert!(rest.contains(r#""code":"draining""#), "{rest}");
    engine.left(1).await;
}

#[tokio::test]
async fn whoever_has_no_byte_yet_when_time_is_over_is_told_so() {
    let engine = Engine::start(Does::Hangs).await;
    let rig = Rig::start(&[&engine], |_| {});
    let half = chat(PLAIN).replace("\"}]}", "");
    let mut streams = Vec::new();
    for request in [chat(PLAIN), chat(STREAM), half] {
        let mut stream = rig.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    while engine.requests().len() < 2 || rig.gateway.inside().requests < 3 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let gateway = Arc::new(rig.gateway);
    let ends = Arc::clone(&gateway);
    tokio::task::spawn_blocking(move || ends.drain(Duration::ZERO));
    for mut stream in streams {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(answer.contains("x-flyball-reason: draining\r\n"), "{answer}");
        assert!(answer.contains("retry-after: 1\r\n"), "{answer}");
    }
    engine.left(2).await;
    let in_flight = || gateway.fleet().endpoints().map(|e| e.in_flight()).sum::<u32>();
    assert_eq!((gateway.inside().requests, in_flight()), (0, 0));
}
