//! Who writes, and the names of what they write.

use std::fmt;
use std::str::FromStr;

/// A process that writes: its pod and its start, so that no two ever have the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source(String);

/// A text that names no source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no source: up to 200 of a-z, 0-9, `-` and `.`, with a letter or digit first")]
pub struct SourceProblem(String);

impl Source {
    /// The source of what was found out later about one batch of this source.
    #[must_use]
    pub fn correction(&self, sequence: u64) -> Self {
        Self(format!("{}.{sequence}", self.0))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Source {
    type Err = SourceProblem;

    fn from_str(text: &str) -> Result<Self, SourceProblem> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let all = text.bytes().all(|byte| fits(byte) || byte == b'-' || byte == b'.');
        if all && text.len() <= 200 && text.bytes().next().is_some_and(fits) {
            Ok(Self(text.to_owned()))
        } else {
            Err(SourceProblem(text.to_owned()))
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a source wrote in about five minutes: the entries of one file of its journal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsageBatch {
    /// Who wrote it.
    pub source: Source,
    /// Its place among those of the source, from 1.
    pub sequence: u64,
}

/// What a batch is called in a journal, before a dot and its kind.
impl fmt::Display for UsageBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Ten digits, so that names are in the order of numbers.
        write!(f, "{}-{:010}", self.source, self.sequence)
    }
}

const INBOX: &str = "inbox/";
const PARQUET: &str = ".parquet";
const SEGMENT: &str = ".segment";

impl UsageBatch {
    /// Its file in a table's folder. It cannot be written twice.
    pub fn path(&self) -> String {
        format!("{INBOX}{self}{PARQUET}")
    }

    /// The batch of a file in a table's folder.
    pub fn of_path(path: &str) -> Option<Self> {
        Self::of_name(path.strip_prefix(INBOX)?.strip_suffix(PARQUET)?)
    }

    /// Its file in a journal's folder.
    pub fn segment(&self) -> String {
        format!("{self}{SEGMENT}")
    }

    /// The batch of a file in a journal's folder.
    pub fn of_segment(name: &str) -> Option<Self> {
        Self::of_name(name.strip_suffix(SEGMENT)?)
    }

    fn of_name(name: &str) -> Option<Self> {
        let (source, sequence) = name.rsplit_once('-')?;
        let batch = Self { source: source.parse().ok()?, sequence: sequence.parse().ok()? };
        // A name that we would not write ourselves could be a second name of the same batch.
        (batch.sequence > 0 && batch.to_string() == name).then_some(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_one_name_and_no_other() {
        let batch = UsageBatch { source: "gateway-7f-1795".parse().unwrap(), sequence: 12 };
        assert_eq!(batch.path(), "inbox/gateway-7f-1795-0000000012.parquet");
        assert_eq!(UsageBatch::of_path(&batch.path()), Some(batch.clone()));
        assert_eq!(UsageBatch::of_segment(&batch.segment()), Some(batch.clone()));
        let correction = UsageBatch { source: batch.source.correction(12), sequence: 1 };
        assert_eq!(UsageBatch::of_path(&correction.path()), Some(correction));
        for wrong in [
            "a-12",
            "a-+000000012",
            "a-0000000000",
            "-0000000001",
            "a/b-0000000001",
            "A-0000000001",
        ] {
            assert_eq!(UsageBatch::of_path(&format!("inbox/{wrong}.parquet")), None, "{wrong}");
        }
        assert_eq!(UsageBatch::of_path("merged/a-0000000001.parquet"), None);
    }
}
