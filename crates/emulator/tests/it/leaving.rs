//! Clients and engines that go away.

use crate::client::{LONG, Open, post};
use flyball_emulator::{Emulator, EmulatorSettings, Faults, LoggedOutcome, RunningEmulator};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{sleep, timeout};

const PATH: &str = "/v1/completions";

fn body(tokens: u32, stream: bool) -> String {
    json!({"model": "emulated", "prompt": "hello", "max_tokens": tokens, "stream": stream})
        .to_string()
}

async fn until(running: &RunningEmulator, holds: impl Fn(&RunningEmulator) -> bool) {
    let wait = async {
        while !holds(running) {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(LONG, wait).await.unwrap();
}

#[tokio::test]
async fn who_hangs_up_frees_its_place_at_the_next_step() {
    let running = Emulator::start(EmulatorSettings::quick()).unwrap();
    for stream in [true, false] {
        let mut open = Open::send(running.address, "POST", PATH, &body(10_000, stream)).await;
        if stream {
            open.events(3).await;
        }
        until(&running, |running| running.state().running == 1).await;
        drop(open);
        until(&running, |running| running.state().running == 0).await;
    }
    let log = running.log(10);
    assert_eq!(log.len(), 2);
    for record in log {
        assert_eq!(record.outcome, LoggedOutcome::Aborted);
        assert!(record.emitted_tokens < 10_000);
        // The step under way and the one that was put together while it ran: 5 ms each.
        assert!(record.abort_to_free.unwrap() <= 0.0101, "{record:?}");
    }
}

#[tokio::test]
async fn an_engine_that_ignores_aborts_keeps_the_place_until_the_last_token() {
    let faults = Faults { ignore_aborts: true, ..Faults::default() };
    let running =
        Emulator::start(EmulatorSettings { faults, ..EmulatorSettings::quick() }).unwrap();
    // Three seconds of tokens, so that the client has hung up long before the last.
    let mut open = Open::send(running.address, "POST", PATH, &body(600, true)).await;
    open.events(3).await;
    drop(open);
    until(&running, |running| running.log(1).len() == 1).await;
    let record = running.log(1).remove(0);
    assert_eq!((record.outcome, record.emitted_tokens), (LoggedOutcome::Finished, 600));
    assert!(record.abort_to_free.unwrap() > 0.0, "{record:?}");
}

#[tokio::test]
async fn a_killed_engine_breaks_streams_and_a_stopped_one_ends_them() {
    let running = Emulator::start(EmulatorSettings::quick()).unwrap();
    let mut open = Open::send(running.address, "POST", PATH, &body(10_000, true)).await;
    open.events(2).await;
    running.kill();
    assert!(!open.rest().await.whole);

    let running = Emulator::start(EmulatorSettings::quick()).unwrap();
    let to = running.address;
    let mut open = Open::send(to, "POST", PATH, &body(50, true)).await;
    open.events(2).await;
    let stop = tokio::spawn(running.stop());
    let answer = open.rest().await;
    assert!(answer.whole && answer.text().contains("[DONE]"));
    stop.await.unwrap();
    assert!(tokio::net::TcpStream::connect(to).await.is_err());
}

#[tokio::test]
async fn a_connection_is_kept_unless_the_engine_closes_it_after_streams() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    for close_after_stream in [false, true] {
        let faults = Faults { close_after_stream, ..Faults::default() };
        let running =
            Emulator::start(EmulatorSettings { faults, ..EmulatorSettings::quick() }).unwrap();
        let mut stream = tokio::net::TcpStream::connect(running.address).await.unwrap();
        let body = body(2, true);
        let head =
            format!("POST {PATH} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all((head + &body).as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let mut closed = false;
        while !closed && !answer.ends_with(b"0\r\n\r\n") {
            closed = timeout(LONG, stream.read_buf(&mut answer)).await.unwrap().unwrap() == 0;
        }
        let text = String::from_utf8(answer).unwrap().to_ascii_lowercase();
        assert!(!text.contains("connection: close"));
        // Kept open nothing comes; closed there is an end, however late.
        let patience = if close_after_stream { LONG } else { Duration::from_millis(200) };
        let end = timeout(patience, stream.read_u8()).await;
        assert_eq!(end.is_ok(), close_after_stream);
    }
}

#[tokio::test]
async fn a_wrong_setting_and_a_taken_port_are_named() {
    let settings =
        EmulatorSettings { speed_up: 0.0, models: Vec::new(), ..EmulatorSettings::quick() };
    let error = Emulator::start(settings).unwrap_err().to_string();
    assert!(error.contains("speed-up") && error.contains("name of a model"), "{error}");
    let running = Emulator::start(EmulatorSettings::quick()).unwrap();
    let settings = EmulatorSettings { listen: running.address, ..EmulatorSettings::quick() };
    assert!(Emulator::start(settings).unwrap_err().to_string().contains("cannot listen"));
    let ask: Value = serde_json::from_str(&body(1, false)).unwrap();
    assert_eq!(post(running.address, PATH, &ask).await.status, 200);
}
