//! What one part of the scoring hands to the report.

use super::score::Score;
use crate::page::Measure;

/// One quantity that was scored: serving speed, training speed, memory.
pub(super) struct Section {
    pub(super) title: &'static str,
    /// What was predicted, what was held out, and how. Markdown.
    pub(super) intro: String,
    /// Scores that may not get worse.
    pub(super) splits: Vec<Split>,
    /// Anything else worth a table: quarantined groups, coefficients, worst rows.
    pub(super) tables: Vec<Table>,
    /// Targets that were not reached: the cause and what was tried.
    pub(super) misses: Vec<Miss>,
    pub(super) figures: Vec<Measure>,
}

/// A score over some rows, beside what simpler ways give on the same rows.
pub(super) struct Split {
    /// Stable name by which runs are compared, such as `training/suite-left-out/torchtitan`.
    pub(super) key: String,
    pub(super) score: Score,
    /// Whole suites that nothing was fitted on or chosen by.
    pub(super) sealed: bool,
    pub(super) baselines: Vec<(&'static str, Score)>,
}

pub(super) struct Table {
    pub(super) title: String,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

pub(super) struct Miss {
    pub(super) what: String,
    pub(super) cause: String,
    /// At least two different ways, each with what came of it.
    pub(super) tried: Vec<String>,
}

impl Miss {
    pub(super) fn new(what: &str, cause: &str, tried: &[&str]) -> Self {
        Self {
            what: what.to_owned(),
            cause: cause.to_owned(),
            tried: tried.iter().map(|&one| one.to_owned()).collect(),
        }
    }
}
