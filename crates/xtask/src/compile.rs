//! One build of everything, and what is run from it.
//!
//! Cargo chooses the features of a dependency by the packages that are built: xtask alone, a story alone
//! and the whole workspace get three different tokio, and three times all that stands on it. So whatever
//! is built here is built as `--workspace --all-targets`, and what is wanted of it is chosen afterwards.

use crate::checkout::target_folder;
use crate::{process, tools};
use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Builds all programs and tests, and returns the folder of the programs.
pub(crate) fn everything(root: &Path) -> Result<PathBuf> {
    process::run(Command::new("cargo").current_dir(root).args([
        "build",
        "--workspace",
        "--all-targets",
        "--locked",
        "--quiet",
    ]))?;
    Ok(target_folder(root)?.join("debug"))
}

/// All tests that need neither a cluster nor a real engine.
pub(crate) fn tests(root: &Path) -> Result<Command> {
    let mut nextest = nextest(root, "not test(real_engines)")?;
    nextest.args(["--status-level", "fail"]);
    Ok(nextest)
}

/// Runs the tests that a filter chooses.
pub(crate) fn nextest(root: &Path, filter: &str) -> Result<Command> {
    let mut nextest = tools::nextest()?;
    nextest.current_dir(root).args(["run", "--workspace", "--locked", "--cargo-quiet"]);
    nextest.args(["--filterset", filter]);
    Ok(nextest)
}

/// A test or story, and how it went.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TimedTest {
    pub(crate) name: String,
    pub(crate) seconds: f64,
    pub(crate) failed: bool,
}

/// Runs nextest, which says for people what happens on standard error, and returns each test that ran with its time,
/// and whether it ended well.
pub(crate) fn timed(nextest: &mut Command) -> Result<(Vec<TimedTest>, bool)> {
    nextest.args(["--message-format", "libtest-json"]);
    nextest.env("NEXTEST_EXPERIMENTAL_LIBTEST_JSON", "1");
    let nextest = process::apart(nextest).stdout(Stdio::piped());
    let mut child = nextest.spawn().context("could not start the tests")?;
    let events = child.stdout.take().context("standard output was not piped")?;
    let mut tests = Vec::new();
    for line in BufReader::new(events).lines() {
        tests.extend(ended(&line?));
    }
    Ok((tests, child.wait()?.success()))
}

/// The same where one that fails fails everything.
pub(crate) fn all_pass(nextest: &mut Command) -> Result<Vec<TimedTest>> {
    let (tests, success) = timed(nextest)?;
    let failed: Vec<&str> =
        tests.iter().filter(|test| test.failed).map(|test| test.name.as_str()).collect();
    // nextest numbers attempts where there was more than one.
    for flaky in tests.iter().filter(|test| !test.failed && test.name.contains('#')) {
        eprintln!("flaky: {} passed only when it ran again", flaky.name);
    }
    ensure!(failed.is_empty(), "{} failed: {}", failed.len(), failed.join(", "));
    ensure!(success, "the tests ended badly, and none of them says so");
    Ok(tests)
}

/// What nextest says of one test, in the form of libtest.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    of: String,
    event: String,
    name: Option<String>,
    exec_time: Option<f64>,
}

/// The test that a line says has ended.
fn ended(line: &str) -> Option<TimedTest> {
    let event: Event = serde_json::from_str(line).ok()?;
    let failed = event.event == "failed";
    let over = event.of == "test" && (failed || event.event == "ok");
    let name = event.name.filter(|_| over)?;
    Some(TimedTest { name, seconds: event.exec_time.unwrap_or(0.0), failed })
}

/// True when the documentation was built before.
pub(crate) fn documents_are_cached(root: &Path) -> Result<bool> {
    Ok(target_folder(root)?.join("doc/flyball_core/index.html").exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_ended_are_named_with_their_times_and_nothing_else_is() {
        let lines = [
            r#"{"type":"suite","event":"started","test_count":2}"#,
            r#"{"type":"test","event":"started","name":"flyball-core::flyball_core$units::adds"}"#,
            r#"{"type":"test","event":"ok","name":"flyball-core::flyball_core$units::adds","exec_time":0.1}"#,
            r#"{"type":"test","event":"failed","name":"flyball-cli::it$check::waits","exec_time":9.9}"#,
            r#"{"type":"suite","event":"failed","passed":1,"failed":1}"#,
            "not JSON",
        ];
        let tests: Vec<TimedTest> = lines.iter().filter_map(|line| ended(line)).collect();
        let of = |name: &str, seconds, failed| TimedTest { name: name.to_owned(), seconds, failed };
        let adds = of("flyball-core::flyball_core$units::adds", 0.1, false);
        assert_eq!(tests, [adds, of("flyball-cli::it$check::waits", 9.9, true)]);
    }

    #[test]
    fn a_program_that_ends_badly_without_a_word_is_no_success() {
        assert!(all_pass(Command::new("false").arg("x")).is_err());
        let mut failing = Command::new("sh");
        failing.args(["-c", r#"echo '{"type":"test","event":"failed","name":"a"}'"#]);
        let error = all_pass(&mut failing).unwrap_err().to_string();
        assert_eq!(error, "1 failed: a");
    }
}
