//! The twelve questions, with what Flyball answers today and how that compares with practice.
//!
//! Questions and practice stand in the sealed questions.md; what a person makes of the difference stands in
//! compared.toml and is read again whenever an answer changes.

use crate::process;
use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    question: Vec<Question>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    asks: String,
    commands: Vec<String>,
    practice: String,
    /// Whether the answers agree with practice, and the reason where they do not.
    agrees: bool,
    because: String,
}

/// The section of the page.
pub(super) fn section(root: &Path, folder: &Path, binary: &Path) -> Result<String> {
    let path = folder.join("compared.toml");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let file: File =
        toml::from_str(&text).with_context(|| format!("reading {}", path.display()))?;
    let mut section = String::from(
        "\n## Twelve questions\n\nAs a platform engineer asks them; the [whole text](known-answers/questions.md) has the \
         sources.\n",
    );
    for (place, one) in file.question.iter().enumerate() {
        let _ = write!(section, "\n### {}. {}\n\n", place + 1, one.asks);
        for command in &one.commands {
            let answer = answer(root, binary, command)?;
            let _ = writeln!(section, "- `{command}`: {answer}");
        }
        let verdict = if one.agrees { "Agrees" } else { "Differs" };
        let _ = writeln!(section, "\nPractice: {}\n\n{verdict}: {}", one.practice, one.because);
    }
    Ok(section)
}

/// The sentence with the verdict: the first of a plan, the last of a fit.
fn answer(root: &Path, binary: &Path, command: &str) -> Result<String> {
    let mut words = command.split_whitespace();
    ensure!(words.next() == Some("flyball"), "`{command}` does not begin with flyball");
    let mut command_run = Command::new(binary);
    command_run.current_dir(root).args(words).stdin(Stdio::null());
    let output = process::apart(&mut command_run).output().with_context(|| command.to_owned())?;
    ensure!(
        matches!(output.status.code(), Some(0 | 1)),
        "`{command}` ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(verdict(&String::from_utf8_lossy(&output.stdout)))
}

fn verdict(text: &str) -> String {
    let joined = |paragraph: &str| {
        paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned()
    };
    let first = text.split("\n\n").next().unwrap_or_default();
    match first.starts_with("Model") {
        true => text.lines().rev().find(|line| !line.is_empty()).unwrap_or_default().to_owned(),
        false => joined(first),
    }
}

#[cfg(test)]
mod tests {
    use super::verdict;

    #[test]
    fn a_plan_says_it_first_and_a_fit_says_it_last() {
        assert_eq!(
            verdict("Run 2 x h100\nTP2: 70 % loaded.\n\nModel m\n"),
            "Run 2 x h100 TP2: 70 % loaded."
        );
        assert_eq!(verdict("Model   m\n\nGPU TP\n\n1 fit, 2 do not.\n"), "1 fit, 2 do not.");
        assert_eq!(verdict(""), "");
    }
}
