//! `flyball gateway --check`: good and bad settings, as people and programs see it.

use crate::flyball::{command, flyball};
use std::io::{BufRead, BufReader, Lines};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

const GOOD: &str = r#"
listen = "0.0.0.0:8080"

[[keys]]
name = "search"
sha256 = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"

[[models]]
name = "qwen"
service = "serving/qwen:http"
"#;

const BAD: &str = r#"
listne = "127.0.0.1:8080"
listen = "0.0.0.0:8080"

[limits]
body_bytes = 0

[[models]]
name = "qwen"
service = "serving/qwen:http"
pool = "serving/qwen"
"#;

fn file(name: &str, text: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("a file can be written");
    path.to_str().expect("a plain path").to_owned()
}

#[test]
fn good_settings_are_said_to_be_good() {
    let path = file("gateway-good.toml", GOOD);
    let run = flyball(&["gateway", "--check", "--config", &path]);
    insta::assert_snapshot!("gateway_good", run.shown().replace(&path, "gateway.toml"));
    let json = flyball(&["gateway", "--check", "--config", &path, "-o", "json"]).json();
    assert_eq!((&json["kind"], &json["models"]), (&"GatewaySettings".into(), &1.into()));
}

#[test]
fn bad_settings_are_refused_with_all_their_problems() {
    let path = file("gateway-bad.toml", BAD);
    // Also without --check: no model is configured with such a file.
    for args in [["gateway", "--check", "--config"], ["gateway", "-q", "--config"]] {
        let run = flyball(&[args[0], args[1], args[2], &path]);
        insta::assert_snapshot!("gateway_bad", run.shown().replace(&path, "gateway.toml"));
    }
    let json = flyball(&["gateway", "--check", "--config", &path, "-o", "json"]).json();
    assert_eq!((&json["kind"], &json["code"]), (&"Error".into(), &"FLY-802".into()));
}

#[test]
fn a_file_that_is_not_there_is_said_to_be_missing() {
    let run = flyball(&["gateway", "--check", "--config", "/nonexistent/gateway.toml"]);
    assert_eq!(run.status, Some(2));
    assert!(run.stderr.contains("FLY-801"), "{}", run.stderr);
}

/// A gateway that runs; ended when the test is.
struct Running {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start(name: &str, settle_ms: u64) -> Self {
        let text = format!(
            "listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 1\n\
             [timeouts]\nsettle_ms = {settle_ms}\n\
             [[models]]\nname = \"m\"\nendpoints = [\"127.0.0.1:1\"]\n"
        );
        let mut run = command(&["gateway", "--config", &file(name, &text)]);
        let run = run.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = run.spawn().expect("it starts");
        let log = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        Self { child, log }
    }

    /// Waits until it has said this, and returns the line.
    fn wait_for(&mut self, what: &str) -> String {
        let mut lines = self.log.by_ref().map(|line| line.expect("text"));
        lines.find(|line| line.contains(what)).expect("it says so before it ends")
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let done = Command::new("kill").args([signal, &pid]).status().expect("kill is there");
        assert!(done.success());
    }
}

#[test]
fn connections_are_taken_after_sigterm_for_as_long_as_load_balancers_need() {
    let mut gateway = Running::start("gateway-settles.toml", 600_000);
    let serves = gateway.wait_for("gateway is serving");
    let ports = serves.split("127.0.0.1:").skip(1).filter_map(|rest| {
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse::<u16>().ok().filter(|port| *port > 0)
    });
    let port = ports.into_iter().next().unwrap_or_else(|| panic!("a port in {serves}"));
    gateway.signal("-TERM");
    gateway.wait_for("gateway is draining");
    // Longer than the two seconds that once were enough for all.
    for _ in 0..30 {
        TcpStream::connect(("127.0.0.1", port)).expect("it takes connections");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_person_at_a_terminal_does_not_wait_for_load_balancers() {
    let mut gateway = Running::start("gateway-interrupted.toml", 600_000);
    gateway.wait_for("gateway is serving");
    gateway.signal("-INT");
    gateway.wait_for("gateway stopped");
    assert!(gateway.child.wait().expect("it ends").success());
}
