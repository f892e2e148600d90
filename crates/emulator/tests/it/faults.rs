//! Each fault, as a client sees it.

use crate::client::{Open, get, post};
use flyball_emulator::{Emulator, EmulatorSettings, Faults};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

const PATH: &str = "/v1/completions";

fn body(stream: bool) -> Value {
    json!({"model": "emulated", "prompt": "hello", "max_tokens": 10, "stream": stream})
}

#[tokio::test]
async fn streams_are_cut_with_and_without_an_end() {
    let running = Emulator::start(EmulatorSettings::quick()).unwrap();
    let to = running.address;
    let mut faults = Faults { truncate_after_tokens: Some(3), ..Faults::default() };
    running.faults(faults).unwrap();
    let answer = post(to, PATH, &body(true)).await;
    assert_eq!((answer.status, answer.events().len(), answer.whole), (200, 3, false));
    let answer = post(to, PATH, &body(false)).await;
    assert_eq!((answer.status, answer.whole), (200, false));

    faults.truncate_cleanly = true;
    running.faults(faults).unwrap();
    let answer = post(to, PATH, &body(true)).await;
    assert_eq!((answer.events().len(), answer.whole), (3, true));
    assert!(!answer.text().contains("[DONE]"));

    running.faults(Faults { garbage_after_tokens: Some(2), ..Faults::default() }).unwrap();
    let answer = post(to, PATH, &body(true)).await;
    assert_eq!(answer.events().len(), 2);
    assert!(answer.text().contains("not an event"));
    assert!(serde_json::from_slice::<Value>(&post(to, PATH, &body(false)).await.body).is_err());
    running.stop().await;
}

#[tokio::test]
async fn a_hung_engine_accepts_and_says_nothing() {
    let faults = Faults { hang: true, ..Faults::default() };
    let running =
        Emulator::start(EmulatorSettings { faults, ..EmulatorSettings::quick() }).unwrap();
    for (method, path) in [("POST", PATH), ("GET", "/health")] {
        let mut open = Open::send(running.address, method, path, &body(true).to_string()).await;
        assert!(timeout(Duration::from_millis(150), open.head()).await.is_err(), "{path}");
    }
    // The way in for tests is open, and what was wrong can be mended.
    let answer = post(running.address, "/emulator/faults", &json!({})).await;
    assert_eq!(answer.status, 200);
    assert_eq!(get(running.address, "/health").await.status, 200);
    assert_eq!(post(running.address, PATH, &body(false)).await.status, 200);
    let wrong = json!({"error_chance": 7});
    assert_eq!(post(running.address, "/emulator/faults", &wrong).await.status, 400);
}

#[tokio::test]
async fn refusals_come_as_told() {
    let faults = Faults { draining: true, ..Faults::default() };
    let running =
        Emulator::start(EmulatorSettings { faults, ..EmulatorSettings::quick() }).unwrap();
    let to = running.address;
    let answer = post(to, PATH, &body(true)).await;
    assert_eq!(answer.status, 500);
    assert!(answer.text().contains("after shutdown"));
    assert_eq!(get(to, "/health").await.status, 200);

    running.faults(Faults { error_chance: 1.0, error_status: 502, ..Faults::default() }).unwrap();
    assert_eq!(post(to, PATH, &body(true)).await.status, 502);

    running.faults(Faults { slow_start_seconds: 3600.0, ..Faults::default() }).unwrap();
    let answer = post(to, PATH, &body(true)).await;
    assert_eq!(answer.status, 503);
    assert!(answer.head.contains("retry-after: 1"));
    assert_eq!(get(to, "/health").await.status, 503);
}

#[tokio::test]
async fn a_stalled_stream_sends_comments_only() {
    let faults = Faults { stall_after_tokens: Some(2), ..Faults::default() };
    let running =
        Emulator::start(EmulatorSettings { faults, ..EmulatorSettings::quick() }).unwrap();
    let mut open = Open::send(running.address, "POST", PATH, &body(true).to_string()).await;
    open.events(2).await;
    // A third event would be there after 5 ms, and comments come once a second.
    assert!(timeout(Duration::from_millis(1500), open.events(1)).await.is_err());
}
