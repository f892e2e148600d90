//! `flyball heartbeat` answers for a run that writes a file.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Stdio};

use serde_json::Value;

use super::flyball::{command, folder};

/// Ends the agent when the test does, however it does.
struct Agent {
    child: Child,
    address: String,
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Agent {
    fn start(args: &[&str]) -> Self {
        let args = [&["heartbeat", "--listen", "127.0.0.1:0"], args].concat();
        let mut child = command(&args).stderr(Stdio::piped()).spawn().expect("it starts");
        let stderr = child.stderr.take().expect("it is piped");
        let mut line = String::new();
        BufReader::new(stderr).read_line(&mut line).expect("a line of its log");
        let line_of_log: Value = serde_json::from_str(&line).expect(&line);
        let address = line_of_log["fields"]["address"].as_str().or(line_of_log["address"].as_str());
        let address = address.expect(&line).to_owned();
        Self { child, address }
    }

    /// Sends this and returns what comes until the agent closes; `hangs_up` says that nothing more follows.
    fn send(&self, text: &str, hangs_up: bool) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        // It may close before everything is sent.
        let _ = stream.write_all(text.as_bytes());
        if hangs_up {
            let _ = stream.shutdown(Shutdown::Write);
        }
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> (String, String) {
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close");
        let answer = self.send(&format!("{head}\r\ncontent-length: {length}\r\n\r\n{body}"), false);
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        let status = head.lines().next().expect("a status").to_owned();
        (status.trim_start_matches("HTTP/1.1 ").to_owned(), body.trim_end().to_owned())
    }
}

#[test]
fn an_agent_serves_a_file_and_takes_instructions() {
    let file = format!("{}/heartbeat.json", folder("heartbeat"));
    let _ = fs::remove_file(&file);
    let _ = fs::remove_file(format!("{file}.instructions"));
    let agent = Agent::start(&["--file", &file]);
    let (status, body) = agent.ask("GET", "/heartbeat", "");
    assert_eq!(status, "503 Service Unavailable");
    assert!(body.ends_with("heartbeat.json does not exist yet"), "{body}");

    let now = jiff_now();
    fs::write(&file, format!(r#"{{"version":1,"step":7,"at":"{now}"}}"#)).expect("a file");
    let (status, body) = agent.ask("GET", "/heartbeat", "");
    assert_eq!(status, "200 OK", "{body}");
    let heartbeat: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((&heartbeat["step"], &heartbeat["restoredStep"]), (&7.into(), &0.into()));

    let put = |body: &str| agent.ask("PUT", "/instructions", body);
    let asked = r#"{"version":1,"number":5,"saveEverySeconds":600.0}"#;
    assert_eq!(put(asked).0, "204 No Content");
    assert_eq!(fs::read_to_string(format!("{file}.instructions")).expect("a file"), asked);
    let (status, body) = put(r#"{"version":1,"number":4}"#);
    assert_eq!(status, "409 Conflict");
    assert_eq!(body, "number 4 is smaller than 5, which came before");
    assert_eq!(put(r#"{"version":1,"number":6,"saveEverySeconds":-1}"#).0, "400 Bad Request");
    assert_eq!(put(&"x".repeat(100_000)).0, "413 Payload Too Large");
    assert_eq!(agent.ask("DELETE", "/heartbeat", "").0, "405 Method Not Allowed");
    assert_eq!(agent.ask("GET", "/", "").0, "404 Not Found");
    assert_eq!(agent.ask("GET", "/healthz", "").0, "200 OK");
    assert_eq!(fs::read_to_string(format!("{file}.instructions")).expect("a file"), asked);
}

#[test]
fn strangers_do_not_end_an_agent() {
    let file = format!("{}/none.json", folder("heartbeat"));
    let agent = Agent::start(&["--file", &file]);
    for text in ["", "\u{16}\u{3}\u{1}", "GET\r\n\r\n", &format!("GET /{}", "a".repeat(100_000))] {
        agent.send(text, true);
    }
    // More than it keeps, all silent.
    let silent: Vec<_> =
        (0..100).map(|_| TcpStream::connect(&agent.address).expect("it listens")).collect();
    assert_eq!(agent.ask("GET", "/healthz", "").0, "200 OK");
    drop(silent);
}

#[test]
fn a_run_that_only_logs_gets_no_instructions() {
    let log = format!("{}/train.log", folder("heartbeat"));
    fs::write(&log, "step 3 of 9\nstep 4 of 9\n").expect("a log");
    let pattern = r"step (?<step>\d+) of (?<total>\d+)";
    let agent = Agent::start(&["--log", &log, "--pattern", pattern]);
    let (status, body) = agent.ask("GET", "/heartbeat", "");
    assert_eq!(status, "200 OK", "{body}");
    let heartbeat: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((&heartbeat["step"], &heartbeat["totalSteps"]), (&4.into(), &9.into()));
    let (status, body) = agent.ask("PUT", "/instructions", r#"{"version":1,"number":1}"#);
    assert_eq!(status, "404 Not Found");
    assert_eq!(body, "the run reads no instructions: --file is not given");
}

/// The current time as a run writes it.
fn jiff_now() -> String {
    jiff::Timestamp::now().to_string()
}
