//! The tests again and again, beside noise: a test that depends on how fast a machine is fails sooner or
//! later, and is named.

use crate::figures::{self, Op, Target};
use crate::{compile, process};
use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::hint::spin_loop;
use std::io::{BufRead, BufReader};
use std::num::NonZeroU32;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

/// What `check` is to do other than all its steps once.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only the tests, and these so many times over
    #[arg(long, value_name = "ROUNDS")]
    repeat: Option<NonZeroU32>,
    /// Keep two cores busy beside them
    #[arg(long, requires = "repeat")]
    noise: bool,
    /// Write `ci.repeat_green`: rounds in which every test passed
    #[arg(long, requires = "repeat")]
    figure: bool,
}

impl Args {
    pub(super) fn rounds(&self) -> Option<u32> {
        self.repeat.map(NonZeroU32::get)
    }
}

/// Rounds that the figure asks for.
const PROMISED: f64 = 20.0;

/// Builds once, and then runs so many rounds.
pub(super) fn run(root: &Path, args: &Args, rounds: u32) -> Result<ExitCode> {
    compile::everything(root)?;
    let _noise = args.noise.then(|| Noise::make(2));
    let mut green = 0;
    let mut failures: BTreeMap<String, u32> = BTreeMap::new();
    for round in 1..=rounds {
        let began = Instant::now();
        let failed = once(root).with_context(|| format!("round {round}"))?;
        green += u32::from(failed.is_empty());
        let seconds = began.elapsed().as_secs();
        println!("round {round} of {rounds}: {} failed, {seconds} s", failed.len());
        for name in failed {
            *failures.entry(name).or_default() += 1;
        }
    }
    for (name, times) in &failures {
        println!("failed {times} of {rounds} times: {name}");
    }
    println!("{green} of {rounds} rounds green");
    if args.figure {
        let noise = if args.noise { " --noise" } else { "" };
        let command = format!("cargo xtask check --repeat {rounds}{noise} --figure");
        let target = Target { op: Op::AtLeast, value: PROMISED };
        figures::write("ci.repeat_green", f64::from(green), "rounds", target, &command)?;
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One round: the tests that failed.
fn once(root: &Path) -> Result<BTreeSet<String>> {
    let mut tests = compile::tests(root)?;
    // What a test said when it failed goes to standard error, for people.
    tests.args(["--message-format", "libtest-json"]).env("NEXTEST_EXPERIMENTAL_LIBTEST_JSON", "1");
    let (failed, success) = read(&mut tests)?;
    agree(&failed, success)?;
    Ok(failed)
}

/// How the tests ended must be what they say of themselves; else nothing is known of the round.
fn agree(failed: &BTreeSet<String>, success: bool) -> Result<()> {
    ensure!(success || !failed.is_empty(), "the tests ended badly, and none of them says so");
    ensure!(!success || failed.is_empty(), "the tests ended well, and some of them failed");
    Ok(())
}

/// The tests that it says failed, and whether it ended well.
fn read(tests: &mut Command) -> Result<(BTreeSet<String>, bool)> {
    let tests = process::apart(tests).stdout(Stdio::piped());
    let mut child = tests.spawn().context("could not start the tests")?;
    let said = child.stdout.take().context("standard output was not piped")?;
    let mut failed = BTreeSet::new();
    for line in BufReader::new(said).lines() {
        failed.extend(failure(&line?));
    }
    Ok((failed, child.wait()?.success()))
}

/// What nextest says of one test, in the form of libtest.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    of: String,
    event: String,
    name: Option<String>,
}

/// The test that a line says failed.
fn failure(line: &str) -> Option<String> {
    let said: Event = serde_json::from_str(line).ok()?;
    (said.of == "test" && said.event == "failed").then_some(said.name)?
}

/// Threads that never rest, until this is dropped. They end with this process in any case.
struct Noise {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Noise {
    fn make(threads: usize) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let busy = |_| {
            let over = Arc::clone(&over);
            std::thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    spin_loop();
                }
            })
        };
        let threads = (0..threads).map(busy).collect();
        Self { over, threads }
    }
}

impl Drop for Noise {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It cannot panic, and nobody could help if it did.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_failed_are_named_and_nothing_else_is() {
        let said = [
            r#"{"type":"suite","event":"started","test_count":2}"#,
            r#"{"type":"test","event":"started","name":"flyball-core::flyball_core$units::adds"}"#,
            r#"{"type":"test","event":"ok","name":"flyball-core::flyball_core$units::adds","exec_time":0.1}"#,
            r#"{"type":"test","event":"failed","name":"flyball-cli::it$check::waits","exec_time":9.9}"#,
            r#"{"type":"suite","event":"failed","passed":1,"failed":1}"#,
            "not JSON",
        ];
        let failed: Vec<String> = said.iter().filter_map(|line| failure(line)).collect();
        assert_eq!(failed, ["flyball-cli::it$check::waits"]);
    }

    #[test]
    fn noise_ends_when_it_is_dropped_also_by_a_panic() {
        let mut over = None;
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let noise = Noise::make(2);
            over = Some(Arc::clone(&noise.over));
            std::panic::resume_unwind(Box::new("the tests could not be started"));
        }));
        // Threads hold it as long as they run.
        assert!(panicked.is_err() && Arc::strong_count(&over.unwrap()) == 1);
    }

    #[test]
    fn a_program_that_ends_badly_without_a_word_is_no_green_round() {
        let (failed, success) = read(Command::new("false").arg("x")).unwrap();
        assert!(failed.is_empty() && !success && agree(&failed, success).is_err());
        let mut says = Command::new("echo");
        says.arg(r#"{"type":"test","event":"failed","name":"a"}"#);
        let (failed, success) = read(&mut says).unwrap();
        assert_eq!((&failed, success), (&BTreeSet::from(["a".to_owned()]), true));
        assert!(agree(&failed, success).is_err() && agree(&failed, false).is_ok());
        assert!(agree(&BTreeSet::new(), true).is_ok(), "a green round");
    }
}
