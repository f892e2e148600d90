//! Everything that is wrong with a file, told at once.
//!
//! A reader collects `Problem`s and goes on, so that one run shows all there is to mend. Each
//! one says where it is, what is wrong, and what to write instead.

use std::fmt;
use thiserror::Error;

/// One thing that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogProblem {
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    pub what: String,
    /// What to write instead.
    pub mend: String,
}

impl fmt::Display for CatalogProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, what, mend } = self;
        write!(f, "{file}:{line}: {what}: {mend}")
    }
}

/// A file of the catalogue cannot be used. Never without problems, ordered by line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct CatalogError {
    pub problems: Vec<CatalogProblem>,
}

/// A place in a file, and what has been found wrong in the file so far.
pub(super) struct Reader<'a> {
    file: &'a str,
    pub(super) line: usize,
    problems: Vec<CatalogProblem>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(file: &'a str) -> Self {
        Self { file, line: 1, problems: Vec::new() }
    }

    pub(super) fn file(&self) -> &'a str {
        self.file
    }

    pub(super) fn wrong(&mut self, what: impl Into<String>, mend: impl Into<String>) {
        let (file, line) = (self.file.to_owned(), self.line);
        self.problems.push(CatalogProblem { file, line, what: what.into(), mend: mend.into() });
    }

    /// The value, unless something was wrong anywhere in the file.
    pub(super) fn finish<T>(self, value: T) -> Result<T, CatalogError> {
        let mut problems = self.problems;
        // A stable sort: problems of one line stay in the order they were found.
        problems.sort_by_key(|problem| problem.line);
        if problems.is_empty() { Ok(value) } else { Err(CatalogError { problems }) }
    }

    /// A number above zero.
    pub(super) fn positive(&mut self, key: &str, text: &str) -> Option<f64> {
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
        if number.is_none() {
            self.wrong(format!("{key} is `{text}`"), "write a number above zero, without a unit");
        }
        number
    }

    /// A number above zero, or nothing in an empty cell.
    pub(super) fn optional(&mut self, key: &str, text: &str) -> Option<f64> {
        if text.is_empty() { None } else { self.positive(key, text) }
    }

    /// A share of a whole.
    pub(super) fn fraction(&mut self, key: &str, text: &str) -> Option<f64> {
        let number = text.parse::<f64>().ok().filter(|number| *number > 0.0 && *number <= 1.0);
        if number.is_none() {
            self.wrong(format!("{key} is `{text}`"), "write a fraction, above 0 and at most 1");
        }
        number
    }

    /// A whole number above zero that fits.
    pub(super) fn whole<N: std::str::FromStr + Default + PartialEq>(
        &mut self,
        key: &str,
        text: &str,
    ) -> Option<N> {
        let number = text.parse::<N>().ok().filter(|number| *number != N::default());
        if number.is_none() {
            self.wrong(format!("{key} is `{text}`"), "write a whole number above zero");
        }
        number
    }
}
