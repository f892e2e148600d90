//! Rows with their answers, and how many hold.

use super::answer::Answer;
use super::judge::{Judged, judge};
use super::reads::Found;
use super::rows::Row;

/// A row, what came back and how it is judged.
#[derive(Clone, Debug)]
pub(super) struct Scored {
    pub(super) row: Row,
    /// What was read, or why nothing could be.
    pub(super) found: Result<Found, String>,
    pub(super) judged: Judged,
}

impl Scored {
    pub(super) fn new(row: Row, found: Result<Found, String>) -> Self {
        let judged = match &found {
            Ok(found) => judge(&row, found),
            // No answer is a wrong one.
            Err(_) => Judged { inside: false, factor: None, far_unwarned: false },
        };
        Self { row, found, judged }
    }

    /// The answer as it is shown: `96 (85-118)`, `tight`, or why there is none.
    pub(super) fn shown(&self) -> String {
        match &self.found {
            Err(why) => format!("none: {why}"),
            Ok(Found { answer: Answer::Words(words), .. }) => words.join(", "),
            Ok(Found { answer: Answer::Number { low, point, high }, .. }) if low == high => {
                short(*point)
            }
            Ok(Found { answer: Answer::Number { low, point, high }, .. }) => {
                format!("{} ({}-{})", short(*point), short(*low), short(*high))
            }
        }
    }

    /// What was published, with its spread and unit.
    pub(super) fn published(&self) -> String {
        let Row { published, unit, low, high, .. } = &self.row;
        let spread = match (low, high) {
            (Some(low), Some(high)) => format!(" ({}-{})", short(*low), short(*high)),
            _ => String::new(),
        };
        match published.parse::<f64>() {
            Ok(number) => format!("{}{spread} {unit}", short(number)),
            Err(_) => published.clone(),
        }
    }

    pub(super) fn warnings(&self) -> &[String] {
        self.found.as_ref().map_or(&[], |found| &found.warnings)
    }
}

/// How many of some rows hold.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tally {
    pub(super) rows: usize,
    pub(super) inside: usize,
    /// Off by more than twice, and of these, without a warning.
    pub(super) far: usize,
    pub(super) far_unwarned: usize,
}

impl Tally {
    pub(super) fn of<'a>(rows: impl IntoIterator<Item = &'a Judged>) -> Self {
        rows.into_iter().fold(Self::default(), |tally, judged| Self {
            rows: tally.rows + 1,
            inside: tally.inside + usize::from(judged.inside),
            far: tally.far + usize::from(judged.factor.is_some_and(|factor| factor > 2.0)),
            far_unwarned: tally.far_unwarned + usize::from(judged.far_unwarned),
        })
    }

    pub(super) fn inside_pct(&self) -> f64 {
        100.0 * self.inside as f64 / (self.rows as f64).max(1.0)
    }
}

/// The kinds of rows in the order in which they are shown.
pub(super) const KINDS: [&str; 5] = ["memory", "training", "serving", "price", "consistency"];

/// Three digits, or all of a larger number.
pub(super) fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1e6 => format!("{:.2}M", value / 1e6),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
