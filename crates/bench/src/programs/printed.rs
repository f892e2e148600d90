//! Tests that measure: they run in an optimised build, and what they print is read.

use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// How tests are run.
#[derive(Clone, Copy)]
pub(crate) enum TestRun {
    /// One after the other: times are taken.
    Alone,
    /// At once, in so many worlds each, which this variable says: nothing of them is a time.
    Worlds(&'static str, u64),
}

/// What tests printed.
pub(crate) struct PrintedFigures {
    pub(crate) text: String,
    pub(crate) passed: bool,
}

impl PrintedFigures {
    pub(crate) fn of(root: &Path, tests: &[&str], run: TestRun) -> Result<Self> {
        eprintln!("cargo test --release {}", tests.join(" "));
        let mut cargo = Command::new("cargo");
        cargo.current_dir(root).args(["test", "--release", "--locked", "--quiet"]).args(tests);
        cargo.args(["--", "--include-ignored", "--nocapture"]);
        match run {
            TestRun::Alone => cargo.arg("--test-threads=1"),
            TestRun::Worlds(variable, seeds) => cargo.env(variable, seeds.to_string()),
        };
        let output = cargo.output().context("starting cargo")?;
        let text = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(Self { text: text.join("\n"), passed: output.status.success() })
    }

    /// All numbers behind these words.
    pub(crate) fn numbers(&self, words: &str) -> Vec<f64> {
        let behind = self.text.lines().filter_map(|line| line.split_once(words));
        behind.filter_map(|(_, rest)| rest.split(' ').next()?.parse().ok()).collect()
    }

    pub(crate) fn number(&self, words: &str) -> Result<f64> {
        let found = self.numbers(words).first().copied();
        found.with_context(|| format!("no test says {words:?}:\n{}", self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::PrintedFigures;

    #[test]
    fn numbers_are_read_behind_words_wherever_the_line_begins() {
        let text = "test a ... who asks, us: 0.81\nother: 3 of 4\nother: x\n".to_owned();
        let output = PrintedFigures { text, passed: true };
        assert_eq!(output.number("who asks, us: ").unwrap(), 0.81);
        assert_eq!(output.numbers("other: "), [3.0]);
        assert!(output.number("nobody says this").is_err());
    }
}
