//! What came goes on, and comes back.

use crate::engine::{Does, Engine};
use crate::rig::{PLAIN, Rig, STREAM, chat, post};
use flyball_gateway::meter::RequestOutcome;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[tokio::test]
async fn the_body_arrives_byte_for_byte_and_keys_stay_here() {
    let engine = Engine::start(Does::Answers(200, r#"{"usage":{"completion_tokens":7}}"#)).await;
    let rig = Rig::start(&[&engine], |_| {});
    let body = "{ \"unknown\" : [1.50, {\"a\":\"\\u00e9\"}],\n \"model\":\"m\", \"messages\":[{\"content\":\"h\u{e9}\"}]}";
    let headers = "connection: close\r\nauthorization: Bearer s3cret\r\ncookie: c=1\r\nx-data-parallel-rank: 3\r\nx-request-id: mine.1\r\n";
    let answer = rig.whole(&post("/v1/chat/completions?beta=true", headers, body)).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("x-request-id: mine.1\r\n"), "{answer}");
    assert!(!answer.contains("server:"), "{answer}");
    assert!(answer.ends_with(r#"{"usage":{"completion_tokens":7}}"#), "{answer}");
    let request = &engine.requests()[0];
    assert!(request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{request}");
    assert!(request.ends_with(body), "{request}");
    assert!(request.contains("x-request-id: mine.1\r\n"), "{request}");
    for word in ["s3cret", "cookie", "x-data-parallel-rank", "beta"] {
        assert!(!request.contains(word), "{request}");
    }
    let line = &rig.finished(1).await[0];
    assert_eq!((line.outcome, line.status, line.output), (RequestOutcome::Answered, 200, 7));
}

#[tokio::test]
async fn events_come_as_they_are_made() {
    // After its first event the engine makes no other: who waited for more would wait for ever.
    let engine = Engine::start(Does::Stalls(vec!["data: {\"a\":1}\n\n"])).await;
    let rig = Rig::start(&[&engine], |_| {});
    let mut stream = rig.connect().await;
    stream.write_all(chat(STREAM).as_bytes()).await.unwrap();
    let (mut seen, mut buffer) = (String::new(), vec![0; 4_096]);
    while !seen.contains("\"a\":1") {
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "{seen}");
        seen += &String::from_utf8_lossy(&buffer[..read]);
    }
    let pieces = vec!["data: {\"a\":1}\n\n", "data: {\"a\":2}\n\n", "data: [DONE]\n\n"];
    engine.now(Does::Streams(pieces, Duration::from_millis(5)));
    let whole = rig.whole(&chat(STREAM)).await;
    assert!(whole.contains("\"a\":2") && whole.contains("[DONE]"), "{whole}");
    let line = &rig.finished(1).await[0];
    assert_eq!((line.outcome, line.output), (RequestOutcome::Answered, 2));
}

#[tokio::test]
async fn connections_are_kept_on_both_sides() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let rig = Rig::start(&[&engine], |_| {});
    let mut stream = rig.connect().await;
    for _ in 0..5 {
        let request = post("/v1/completions", "", r#"{"model":"m","prompt":"x"}"#);
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut buffer = vec![0; 4_096];
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(buffer[..read].ends_with(b"{}"));
    }
    assert_eq!(engine.requests().len(), 5);
    assert_eq!(engine.connections(), 1);
}

#[tokio::test]
async fn models_are_listed_and_other_paths_are_closed() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let rig = Rig::start(&[&engine], |_| {});
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert!(rig.whole(&get("/v1/models")).await.contains(r#""id":"m""#));
    assert!(rig.whole(&get("/v1/models/m")).await.starts_with("HTTP/1.1 200"));
    for path in ["/metrics", "/health", "/v1/models/x", "/v1/modelsx", "/invocations", "/"] {
        let answer = rig.whole(&get(path)).await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
    }
    let posts =
        ["/v1//chat/completions", "/v1/chat/completions/", "/V1/chat/completions", "/pause"];
    for path in posts {
        let answer = rig.whole(&post(path, "connection: close\r\n", PLAIN)).await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
    }
    assert!(rig.whole(&get("/v1/chat/completions")).await.starts_with("HTTP/1.1 405"));
    assert!(engine.requests().is_empty());
}
