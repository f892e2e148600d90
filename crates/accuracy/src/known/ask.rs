//! Asking one question of a `flyball` binary.

use super::rows::Row;
use crate::process;
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// The answer of the row's command as JSON.
pub(super) fn ask(root: &Path, binary: &Path, row: &Row) -> Result<Value> {
    let mut command = Command::new(binary);
    command.current_dir(root).args(words(&row.command)?).stdin(Stdio::null());
    let output = process::apart(&mut command)
        .output()
        .with_context(|| format!("could not start {}", binary.display()))?;
    // 1 is a negative answer, which is an answer.
    if !matches!(output.status.code(), Some(0 | 1)) {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("it ended with {}: {}", output.status, stderr.lines().next().unwrap_or_default());
    }
    read(&output.stdout)
}

fn read(stdout: &[u8]) -> Result<Value> {
    serde_json::from_slice(stdout).context("what it printed is not JSON")
}

/// The words after the program's name. What was published ran on one replica and as full as it went, so
/// the room that a plan leaves by default is not asked for.
fn words(command: &str) -> Result<Vec<String>> {
    let mut words = command.split_whitespace().map(str::to_owned);
    if words.next().as_deref() != Some("flyball") {
        bail!("the command does not begin with flyball");
    }
    let mut words: Vec<String> = words.collect();
    if words.starts_with(&["plan".to_owned(), "serve".to_owned()]) {
        for (flag, value) in [("--min-replicas", "1"), ("--max-load", "100%")] {
            if !words.iter().any(|word| word == flag) {
                words.extend([flag.to_owned(), value.to_owned()]);
            }
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serving_is_asked_without_the_room_that_a_plan_leaves() {
        let words = words("flyball plan serve --model m --min-replicas 2 -o json").unwrap();
        assert_eq!(
            words.join(" "),
            "plan serve --model m --min-replicas 2 -o json --max-load 100%"
        );
        assert_eq!(super::words("flyball fit m").unwrap(), ["fit", "m"]);
        assert!(super::words("rm -r /").is_err());
    }

    #[test]
    fn output_that_is_no_json_is_an_error_and_not_an_answer() {
        for hostile in ["", "Run 2 x h100", "{\"choices\": [", "\u{0}\u{1}"] {
            assert!(read(hostile.as_bytes()).is_err(), "{hostile:?}");
        }
    }
}
