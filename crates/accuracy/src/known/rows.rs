//! The published answers, and the seal on them.

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// One published answer. What stands in the file for people alone is not read.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) question: String,
    pub(super) command: String,
    pub(super) reads: String,
    pub(super) published: String,
    pub(super) unit: String,
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    pub(super) fitted: String,
    pub(super) askable: String,
    pub(super) layout: String,
    pub(super) unstated: String,
}

impl Row {
    /// Whether the command can ask it today.
    pub(super) fn is_askable(&self) -> bool {
        self.askable == "yes"
    }

    /// Whether nothing that the model was calibrated on comes from the same place.
    pub(super) fn is_independent(&self) -> bool {
        self.fitted == "no"
    }
}

/// Reads the rows; refuses files that are not those that were sealed.
pub(super) fn read(folder: &Path) -> Result<Vec<Row>> {
    sealed(folder)?;
    parse(&text(&folder.join("answers.csv"))?)
}

pub(super) fn parse(text: &str) -> Result<Vec<Row>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().collect::<Result<_, _>>().context("reading answers.csv")
}

fn sealed(folder: &Path) -> Result<()> {
    for line in text(&folder.join("hashes.txt"))?.lines() {
        let (known, name) = line.split_once("  ").context("a line of hashes.txt has no name")?;
        let path = folder.join(name);
        let content = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let mut hash = String::new();
        for byte in Sha256::digest(&content) {
            write!(hash, "{byte:02x}")?;
        }
        ensure!(
            hash == known,
            "docs/known-answers/{name} is not the file that was sealed\n\nhint: restore it; what was \
             published does not change, and a row that proves wrong is said to be so beside it"
        );
    }
    Ok(())
}

fn text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_changed_after_the_seal_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("answers.csv"), "changed").unwrap();
        let seal = format!("{}  answers.csv\n", "0".repeat(64));
        fs::write(folder.path().join("hashes.txt"), seal).unwrap();
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("answers.csv is not the file that was sealed"), "{error}");
    }
}
