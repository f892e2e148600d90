//! Runs the binary with nothing inherited that could change what it says.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// What a run printed.
pub(crate) struct Run {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) status: Option<i32>,
    pub(crate) took: Duration,
}

impl Run {
    /// One text for a snapshot, with times and ports blanked out.
    pub(crate) fn shown(&self) -> String {
        let text = format!(
            "status: {:?}\n----- stdout\n{}----- stderr\n{}",
            self.status, self.stdout, self.stderr
        );
        text.lines().map(blanked).collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).expect("one JSON document on stdout")
    }
}

/// `in 412 ms` and `127.0.0.1:4711` differ from run to run.
fn blanked(line: &str) -> String {
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    for i in 1..words.len() {
        let number = words[i - 1].parse::<f64>().is_ok();
        if number && ["ms", "s"].contains(&words[i].trim_end_matches(',')) {
            words[i - 1] = "<n>".to_owned();
            words[i] = "ms".to_owned();
        }
    }
    let line = words.join(" ");
    match line.split_once("127.0.0.1:") {
        Some((before, after)) => {
            let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{before}127.0.0.1:<port>{rest}")
        }
        None => line,
    }
}

pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flyball"));
    command.env_clear().env("HOME", "/nonexistent").stdin(Stdio::null()).args(args);
    command
}

pub(crate) fn flyball(args: &[&str]) -> Run {
    finish(&mut command(args))
}

pub(crate) fn finish(command: &mut Command) -> Run {
    let start = Instant::now();
    let Output { status, stdout, stderr } = command.output().expect("the binary starts");
    Run {
        stdout: String::from_utf8(stdout).expect("text"),
        stderr: String::from_utf8(stderr).expect("text"),
        status: status.code(),
        took: start.elapsed(),
    }
}

/// A folder for the tests of one file: tests of others write files of the same names at the same time.
pub(crate) fn folder(of: &str) -> String {
    let folder = format!("{}/{of}", env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// A kubeconfig that leads to this address.
pub(crate) fn kubeconfig(name: &str, address: &str) -> String {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.kubeconfig"));
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: here\n\
         clusters: [{{name: c, cluster: {{server: \"{address}\"}}}}]\n\
         users: [{{name: u, user: {{}}}}]\n\
         contexts: [{{name: here, context: {{cluster: c, user: u}}}}]\n"
    );
    std::fs::write(&file, text).expect("a file can be written");
    file.to_str().expect("a plain path").to_owned()
}
