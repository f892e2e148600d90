//! `flyball emulate` serves until it is ended.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::Value;

use super::flyball::{command, flyball};

/// Ends the command when the test does, however it does.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ask(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    stream.write_all(request.as_bytes()).expect("a request can be sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// Engines with these flags, and their addresses.
fn engines(flags: &[&str]) -> (Ended, Vec<String>) {
    let args = [&["emulate", "--port", "0", "--served-name", "mine", "-o", "json"], flags].concat();
    let mut child = Ended(command(&args).stdout(Stdio::piped()).spawn().expect("it starts"));
    let stdout = child.0.stdout.take().expect("it is piped");
    let mut text = String::new();
    let mut lines = BufReader::new(stdout).lines();
    let answer: Value = loop {
        let line = lines.next().expect("more of the document").expect("text");
        text.push_str(&line);
        if line == "}" {
            break serde_json::from_str(&text).expect("a JSON document");
        }
    };
    assert_eq!(answer["kind"], "Emulation");
    let engines = answer["engines"].as_array().expect("a list").iter();
    let address = |engine: &Value| {
        let url = engine["url"].as_str().expect("an address");
        url.strip_prefix("http://").expect("plain HTTP").to_owned()
    };
    (child, engines.map(address).collect())
}

fn completion(prompt: &str) -> String {
    let body = format!(r#"{{"model":"mine","prompt":"{prompt}","max_tokens":3}}"#);
    let head = "POST /v1/completions HTTP/1.1\r\nhost: x\r\nconnection: close";
    format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn engines_answer_on_the_ports_that_are_named() {
    let (_child, engines) = engines(&["--engines", "2"]);
    assert_eq!(engines.len(), 2);
    for address in engines {
        let answer = ask(&address, &completion("hello"));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains(r#""completion_tokens":3"#), "{answer}");
    }
}

#[test]
fn a_deadly_prompt_ends_the_process_and_a_short_one_does_not() {
    let (mut child, engines) = engines(&["--die-at-prompt-tokens", "100"]);
    let answer = ask(&engines[0], &completion("hello"));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let mut stream = TcpStream::connect(&engines[0]).expect("it listens");
    stream.write_all(completion(&"word ".repeat(400)).as_bytes()).expect("a request can be sent");
    // An end or a reset; never an answer.
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.is_empty(), "{}", String::from_utf8_lossy(&answer));
    assert!(!child.0.wait().expect("it ended").success());
}

#[test]
fn what_cannot_be_started_says_why() {
    let run = flyball(&["emulate", "--model", "deepseek-v3", "--gpu", "l4"]);
    assert_eq!(run.status, Some(1), "{}", run.stderr);
    assert!(run.stderr.contains("flyball fit deepseek-v3"), "{}", run.stderr);
    let run = flyball(&["emulate", "--port", "0", "--speed-up", "0", "--errors", "7"]);
    assert_eq!(run.status, Some(2));
    assert!(
        run.stderr.contains("error_chance") && run.stderr.contains("speed-up"),
        "{}",
        run.stderr
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("its address").port().to_string();
    let run = flyball(&["emulate", "--port", &port]);
    assert_eq!(run.status, Some(2));
    assert!(run.stderr.contains("cannot listen"), "{}", run.stderr);
}
