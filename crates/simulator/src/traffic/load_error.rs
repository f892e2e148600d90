//! What went wrong with a file, and what was left out of it.

/// Why a file could not be read: which one, where, what, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {what}", line.map(|line| format!(" line {line}")).unwrap_or_default())]
pub struct LoadError {
    /// The file.
    pub file: String,
    /// The line, from one, if it is one line's fault.
    pub line: Option<u64>,
    /// What was expected and what was found.
    pub what: String,
    /// What to do.
    pub hint: String,
}

impl LoadError {
    pub(crate) fn new(file: &str, what: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: None, what: what.into(), hint: String::new() }
    }

    pub(crate) fn line(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

/// What was read of a file and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadTally {
    /// The file.
    pub file: String,
    /// Rows that became traffic.
    pub read: usize,
    /// Rows that could not be read and are ignored.
    pub unread: usize,
    /// The first few of them, with line and reason.
    pub examples: Vec<String>,
    /// Rows that say that the request failed; they are left out, because no engine answered them.
    pub failed: usize,
    /// Columns that are not used.
    pub unknown_columns: Vec<String>,
    /// What else is worth knowing.
    pub notes: Vec<String>,
}

/// So many unreadable rows are shown; the rest are counted.
const EXAMPLES: usize = 5;

impl LoadTally {
    pub(crate) fn of(file: &str) -> Self {
        Self { file: file.to_owned(), ..Self::default() }
    }

    pub(crate) fn unread(&mut self, line: u64, what: &str) {
        self.unread += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(format!("line {line}: {what}"));
        }
    }

    /// A file of which most cannot be read is not the file that somebody meant.
    pub(crate) fn check(&self, hint: &str) -> Result<(), LoadError> {
        if self.read == 0 && self.unread == 0 {
            return Err(LoadError::new(&self.file, "no rows").hint(hint));
        }
        if self.unread <= self.read {
            return Ok(());
        }
        let all = self.read + self.unread;
        let first = self.examples.first().map(String::as_str).unwrap_or_default();
        let what = format!("{} of {all} rows cannot be read; {first}", self.unread);
        Err(LoadError::new(&self.file, what).hint(hint))
    }
}
