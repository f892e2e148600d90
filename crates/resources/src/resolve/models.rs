//! Names of models with a `*` at the end.

use super::{TenantProblem, TenantProblems};
use flyball_core::reason::Reason;
use std::fmt;

/// One name, or all names that begin alike. In order, those that begin with a pattern follow it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModelPattern {
    begin: String,
    exact: bool,
}

impl ModelPattern {
    /// Reads `name` or `name*`; nothing else has a meaning.
    pub fn read(text: &str) -> Option<Self> {
        let (begin, exact) = text.strip_suffix('*').map_or((text, true), |begin| (begin, false));
        let is_name = !begin.contains(|c: char| c == '*' || c.is_whitespace());
        (is_name && !text.is_empty()).then(|| Self { begin: begin.to_owned(), exact })
    }

    /// Whether it stands for this name.
    pub fn matches(&self, name: &str) -> bool {
        if self.exact { name == self.begin } else { name.starts_with(&self.begin) }
    }

    /// The names that both stand for.
    fn both<'a>(&'a self, other: &'a Self) -> Option<&'a Self> {
        if other.covers(self) {
            Some(self)
        } else if self.covers(other) {
            Some(other)
        } else {
            None
        }
    }

    /// Whether it stands for everything that the other stands for.
    fn covers(&self, other: &Self) -> bool {
        (!self.exact || other.exact) && self.matches(&other.begin)
    }
}

impl fmt::Display for ModelPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.begin, if self.exact { "" } else { "*" })
    }
}

/// What is left of a Tenant's own models below one that allows these.
pub(super) fn within(
    own: &[ModelPattern],
    above: &[ModelPattern],
    problems: &mut TenantProblems,
) -> Vec<ModelPattern> {
    let mut left = Vec::new();
    for pattern in own {
        let before = left.len();
        left.extend(above.iter().filter_map(|other| pattern.both(other)).cloned());
        if left.len() == before {
            let what = format!("has {pattern}, which the parent Tenant does not allow");
            problems.note(TenantProblem::new(Reason::TenantModelDenied, "spec.models", what));
        }
    }
    left
}

/// In order, without those that another one stands for too.
pub(super) fn reduced(mut patterns: Vec<ModelPattern>) -> Vec<ModelPattern> {
    patterns.sort();
    // What begins with a pattern stands right behind it, so that the last one that was kept is enough to look at.
    patterns.dedup_by(|next, last| last.covers(next));
    patterns
}
