//! What a run wrote down itself: a line for each step, its heartbeat, and the newest checkpoint.

use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// One step that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StepLine {
    pub(super) attempt: String,
    pub(super) step: u64,
    /// Every bit of it.
    pub(super) loss: String,
}

/// The folder of a run, on this machine.
pub(super) struct Ledger {
    pub(super) folder: PathBuf,
}

impl Ledger {
    /// All steps so far. A line that was cut short has no end.
    pub(super) fn lines(&self) -> Result<Vec<StepLine>> {
        let path = self.folder.join("ledger.txt");
        if !path.exists() {
            return Ok(Vec::new());
        }
        let text = std::fs::read_to_string(path)?;
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(line).collect()
    }

    /// The step of the newest checkpoint.
    pub(super) fn saved(&self) -> Result<u64> {
        let mut newest = 0;
        for entry in std::fs::read_dir(&self.folder)?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let step = name.strip_prefix("checkpoint-").and_then(|rest| rest.strip_suffix(".pt"));
            newest = newest.max(step.and_then(|step| step.parse().ok()).unwrap_or(0));
        }
        Ok(newest)
    }

    /// The last step in the file of the heartbeat, if it is of this attempt.
    pub(super) fn reported(&self, attempt: &str) -> Result<Option<u64>> {
        let text = std::fs::read_to_string(self.folder.join("heartbeat.json"))?;
        let beat: Value = serde_json::from_str(&text)?;
        Ok(beat["step"].as_u64().filter(|_| beat["attempt"] == attempt))
    }

    /// The digest of the final weights.
    pub(super) fn weights(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.folder.join("weights.txt"))?.trim().to_owned())
    }
}

fn line(text: &str) -> Result<StepLine> {
    let mut words = text.split_whitespace();
    let mut next = || words.next().with_context(|| format!("a line of the ledger: {text}"));
    Ok(StepLine { attempt: next()?.to_owned(), step: next()?.parse()?, loss: next()?.to_owned() })
}

/// What two ledgers say of each other.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) attempts: u64,
    /// Steps made again.
    pub(super) repeated: u64,
    /// The same, from each attempt to the next.
    pub(super) each: Vec<u64>,
    /// Steps with another loss than undisturbed.
    pub(super) different: usize,
    /// Steps that were never made.
    pub(super) missing: usize,
}

/// Counts the steps of a disturbed run.
pub(super) fn count(undisturbed: &[StepLine], disturbed: &[StepLine]) -> Counted {
    let expected: BTreeMap<u64, &str> =
        undisturbed.iter().map(|line| (line.step, line.loss.as_str())).collect();
    let made: BTreeSet<u64> = disturbed.iter().map(|line| line.step).collect();
    let attempts: BTreeSet<&str> = disturbed.iter().map(|line| line.attempt.as_str()).collect();
    let pairs = disturbed.iter().zip(disturbed.iter().skip(1));
    let next = pairs.filter(|(one, other)| one.attempt != other.attempt);
    Counted {
        attempts: attempts.len() as u64,
        repeated: (disturbed.len() - made.len()) as u64,
        each: next.map(|(one, other)| (one.step + 1).saturating_sub(other.step)).collect(),
        different: disturbed
            .iter()
            .filter(|line| expected.get(&line.step).is_none_or(|loss| *loss != line.loss))
            .count(),
        missing: expected.keys().filter(|step| !made.contains(step)).count(),
    }
}

#[test]
fn steps_made_again_are_counted_from_each_attempt_to_the_next() {
    let lines = |text: &str| text.lines().map(|one| line(one).unwrap()).collect::<Vec<_>>();
    let calm = lines("a 1 x\na 2 y\na 3 z\na 4 w");
    let stormy = lines("b 1 x\nb 2 y\nb 3 z\nc 2 y\nc 3 other\nd 4 w");
    let counted = count(&calm, &stormy);
    let expected = Counted { attempts: 3, repeated: 2, each: vec![2, 0], different: 1, missing: 0 };
    assert_eq!(counted, expected);
    assert_eq!(count(&stormy, &calm).missing, 0);
}
