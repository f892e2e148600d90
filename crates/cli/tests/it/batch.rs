//! `flyball batch` before a gateway before engines, and the official client.

use crate::flyball::{command, flyball};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Ends a command when the test does, however it does.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("a file can be written");
    path.to_str().expect("a plain path").to_owned()
}

/// A service that says in its log where it listens.
fn service(args: &[&str], message: &str, field: &str) -> (Ended, String) {
    let args = [args, &["--log-format", "json"]].concat();
    let mut command = command(&args);
    let mut child =
        Ended(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts"));
    let stderr = child.0.stderr.take().expect("it is piped");
    let mut lines = BufReader::new(stderr).lines();
    let address = loop {
        let line = lines.next().expect("more lines").expect("text");
        let line: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        if line["fields"]["message"] == message {
            break line["fields"][field].as_str().expect("an address").to_owned();
        }
    };
    // Nobody reads the rest, and a full pipe would stop the service.
    std::thread::spawn(move || lines.for_each(drop));
    (child, address)
}

/// Engines, and the address of the first.
fn engines() -> (Ended, String) {
    let args =
        ["emulate", "--port", "0", "--model", "llama-3.1-8b", "--speed-up", "10", "-o", "json"];
    let mut child = Ended(command(&args).stdout(Stdio::piped()).spawn().expect("it starts"));
    let mut lines = BufReader::new(child.0.stdout.take().expect("it is piped")).lines();
    let mut text = String::new();
    loop {
        let line = lines.next().expect("more of the document").expect("text");
        text.push_str(&line);
        if line == "}" {
            break;
        }
    }
    let answer: serde_json::Value = serde_json::from_str(&text).expect("a JSON document");
    let url = answer["engines"][0]["url"].as_str().expect("an address");
    (child, url.trim_start_matches("http://").to_owned())
}

/// Any folder of this test alone.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

const GOOD: &str = "store = \"/data\"\ngateway = \"127.0.0.1:8080\"\n";

#[test]
fn settings_are_checked_without_running() {
    let folder = folder("batch-settings");
    let path = file(&folder, "good.toml", GOOD);
    let run = flyball(&["batch", "--check", "--config", &path]);
    insta::assert_snapshot!("batch_good", run.shown().replace(&path, "batch.toml"));
    let path = file(&folder, "bad.toml", "listen = \"0.0.0.0:1\"\nstroe = \"x\"\nlines = 0\n");
    let run = flyball(&["batch", "--check", "--config", &path]);
    insta::assert_snapshot!("batch_bad", run.shown().replace(&path, "batch.toml"));
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that skips must say so")]
fn the_official_client_works_unchanged() {
    // A Python with the package `openai`.
    let Some(python) = std::env::var_os("FLYBALL_OPENAI_PYTHON") else {
        eprintln!(
            "the official client is left out: FLYBALL_OPENAI_PYTHON names no Python that has it"
        );
        return;
    };
    let folder = folder("batch-official");
    let (_engines, engine) = engines();
    let text = format!(
        "listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n[[models]]\nname = \"llama-3.1-8b\"\nendpoints = [\"{engine}\"]\n"
    );
    let settings = file(&folder, "gateway.toml", &text);
    let (_gateway, gateway) =
        service(&["gateway", "--config", &settings], "gateway is serving", "listen");
    let store = folder.join("store");
    let text = format!("listen = \"127.0.0.1:0\"\ngateway = \"{gateway}\"\nstore = {store:?}\n");
    let settings = file(&folder, "batch.toml", &text);
    let (_batch, address) =
        service(&["batch", "--config", &settings], "files and batches are served", "address");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/batch/official.py");
    let mut client = Command::new(python);
    let output =
        client.arg(script).arg(format!("http://{address}/v1")).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("all good"), "{said}");
}
