//! A client that hangs up reaches the engine.

use crate::engine::{Does, Engine};
use crate::rig::{PLAIN, Rig, STREAM, chat};
use flyball_gateway::meter::RequestOutcome;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[tokio::test]
async fn while_it_waits_for_the_first_byte() {
    let engine = Engine::start(Does::Hangs).await;
    let rig = Rig::start(&[&engine], |_| {});
    for (many, body) in [(1, PLAIN), (2, STREAM)] {
        let mut stream = rig.connect().await;
        stream.write_all(chat(body).as_bytes()).await.unwrap();
        while engine.requests().len() < many as usize {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        drop(stream);
        engine.left(many).await;
        assert_eq!(
            rig.finished(many as usize).await[many as usize - 1].outcome,
            RequestOutcome::Cancelled
        );
        assert_eq!(rig.cancelled(), many);
    }
    assert_eq!(rig.gateway.fleet().endpoints().map(|e| e.in_flight()).sum::<u32>(), 0);
}

#[tokio::test]
async fn while_a_stream_is_quiet() {
    let engine = Engine::start(Does::Stalls(vec!["data: {\"a\":1}\n\n"])).await;
    let rig = Rig::start(&[&engine], |_| {});
    let mut stream = rig.connect().await;
    stream.write_all(chat(STREAM).as_bytes()).await.unwrap();
    let mut buffer = [0; 512];
    assert!(stream.read(&mut buffer).await.unwrap() > 0);
    drop(stream);
    engine.left(1).await;
    let line = &rig.finished(1).await[0];
    assert_eq!((line.outcome, line.output), (RequestOutcome::Cancelled, 1));
    assert_eq!(rig.cancelled(), 1);
    let inside = rig.gateway.inside();
    assert_eq!((inside.requests, inside.bytes), (0, 0));
}
