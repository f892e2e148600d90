//! A model without engines: requests wait, somebody is called once, and all are answered.

use crate::engine::{Does, Engine};
use crate::rig::{PLAIN, Rig, STREAM, chat, post};
use flyball_gateway::meter::RequestOutcome;
use flyball_gateway::settings::{GatewaySettingsFile, WakerSettings};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const EVENTS: [&str; 2] =
    ["data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n", "data: [DONE]\n\n"];

fn wakes(settings: &mut GatewaySettingsFile) {
    settings.waker =
        Some(WakerSettings { url: Some("http://127.0.0.1:1".into()), ..WakerSettings::default() });
}

#[tokio::test]
async fn streams_hear_comments_and_all_are_answered_after_one_call() {
    let rig = Rig::on(&[], wakes);
    let mut stream = rig.connect().await;
    stream.write_all(chat(STREAM).as_bytes()).await.unwrap();
    let mut seen = vec![0; 4_096];
    let length = stream.read(&mut seen).await.unwrap();
    let mut head = String::from_utf8_lossy(&seen[..length]).into_owned();
    while !head.contains("waking up") {
        let length = stream.read(&mut seen).await.unwrap();
        head += &String::from_utf8_lossy(&seen[..length]);
    }
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains("x-flyball-held: true"), "{head}");
    let request = chat(PLAIN);
    let whole = rig.whole(&request);
    let comes = async {
        while rig.gateway.demand()[0].waiting < 2 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let demand = &rig.gateway.demand()[0];
        assert_eq!((demand.held, demand.wake_calls), (2, 1));
        let engine = Engine::start(Does::Streams(EVENTS.to_vec(), Duration::ZERO)).await;
        rig.list(&[engine.address]);
        engine
    };
    let (whole, _engine) = tokio::join!(whole, comes);
    assert!(whole.starts_with("HTTP/1.1 200"), "{whole}");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    assert!(rest.contains("\"content\":\"hi\"") && rest.contains("[DONE]"), "{rest}");
    let finished = rig.finished(2).await;
    assert!(finished.iter().all(|line| line.outcome == RequestOutcome::Answered && line.held));
    assert_eq!(rig.woken(), ["m"]);
}

#[tokio::test]
async fn an_error_after_the_wait_is_an_event_of_the_stream() {
    let rig = Rig::on(&[], wakes);
    let request = chat(STREAM);
    let answer = rig.whole(&request);
    let comes = async {
        while rig.gateway.demand()[0].waiting == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let engine = Engine::start(Does::Answers(400, "{\"error\":{\"message\":\"no\"}}")).await;
        rig.list(&[engine.address]);
        engine
    };
    let (answer, _engine) = tokio::join!(answer, comes);
    assert!(answer.contains("data: {\"error\":{\"message\":\"no\"}}\n\n"), "{answer}");
}

#[tokio::test]
async fn who_waits_too_long_is_told_and_who_hangs_up_leaves_nothing() {
    let rig = Rig::on(&[], |settings| {
        wakes(settings);
        let model = flyball_gateway::settings::ModelSettings {
            name: "m".into(),
            hold_ms: 200,
            ..flyball_gateway::settings::ModelSettings::default()
        };
        settings.models.push(model);
    });
    let mut gone = rig.connect().await;
    gone.write_all(chat(STREAM).as_bytes()).await.unwrap();
    let mut some = [0; 64];
    assert!(gone.read(&mut some).await.unwrap() > 0);
    drop(gone);
    let whole = rig.whole(&chat(PLAIN)).await;
    assert!(whole.starts_with("HTTP/1.1 503") && whole.contains("wake_timeout"), "{whole}");
    let stream = rig.whole(&chat(STREAM)).await;
    assert!(stream.contains("wake_timeout"), "{stream}");
    rig.finished(3).await;
    let (inside, demand) = (rig.gateway.inside(), &rig.gateway.demand()[0]);
    assert_eq!((inside.requests, inside.bytes, demand.waiting), (0, 0, 0));
}

#[tokio::test]
async fn nobody_waits_for_a_model_that_is_not_served_any_more() {
    let rig = Rig::on(&[], wakes);
    let (plain, stream) = (chat(PLAIN), chat(STREAM));
    let goes = async {
        while rig.gateway.demand()[0].waiting < 2 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        rig.gateway.list(&flyball_fleet::Listing::default());
    };
    let (whole, streamed, ()) = tokio::join!(rig.whole(&plain), rig.whole(&stream), goes);
    assert!(whole.starts_with("HTTP/1.1 503") && whole.contains("draining"), "{whole}");
    assert!(streamed.contains("draining"), "{streamed}");
    rig.finished(2).await;
    assert_eq!(rig.gateway.inside().requests, 0);
    let after = rig.whole(&plain).await;
    assert!(after.starts_with("HTTP/1.1 404"), "{after}");
}

#[tokio::test]
async fn without_a_waker_it_is_refused_at_once() {
    let rig = Rig::on(&[], |_| {});
    let answer = rig.whole(&chat(PLAIN)).await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("no_engine"), "{answer}");
    assert!(rig.woken().is_empty());
}

#[tokio::test]
async fn an_overloaded_model_says_so_in_each_dialect() {
    let engine = Engine::start(Does::Hangs).await;
    let rig = Rig::start(&[&engine], |settings| {
        settings.limits.queued = 1;
    });
    // As many as fit into the first window, and one that waits.
    let mut streams = Vec::new();
    while rig.gateway.demand()[0].waiting == 0 {
        let mut stream = rig.connect().await;
        stream.write_all(chat(STREAM).as_bytes()).await.unwrap();
        streams.push(stream);
        assert!(streams.len() < 200, "the window has no end");
        let is_in = || rig.gateway.inside().requests >= streams.len();
        while !is_in() && rig.gateway.demand()[0].waiting == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    let refused = rig.whole(&chat(PLAIN)).await;
    assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
    assert!(refused.contains("retry-after: 1") && refused.contains("queue_full"), "{refused}");
    let messages = r#"{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}"#;
    let refused = rig.whole(&post("/v1/messages", "connection: close\r\n", messages)).await;
    assert!(refused.starts_with("HTTP/1.1 529"), "{refused}");
    assert!(refused.contains("overloaded_error"), "{refused}");
}
