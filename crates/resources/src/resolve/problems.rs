//! What is wrong with a Tenant.

use flyball_core::reason::Reason;
use std::fmt;

/// Problems of a Tenant that are kept; the rest is counted.
pub const MAX_PROBLEMS: usize = 16;

/// What is wrong with a Tenant, what matters most first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantProblems {
    first: Vec<TenantProblem>,
    more: usize,
    refuses: bool,
}

/// One thing that is wrong with a Tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantProblem {
    /// Which kind of thing.
    pub reason: Reason,
    /// The field; example: `spec.keys[app].id`.
    pub field: String,
    /// What is wrong with it, and what to do.
    pub what: String,
}

impl TenantProblems {
    /// The first ones, at most [`MAX_PROBLEMS`].
    pub fn first(&self) -> &[TenantProblem] {
        &self.first
    }

    /// How many more there are.
    pub const fn more(&self) -> usize {
        self.more
    }

    /// Whether nobody is let in because of them.
    pub(super) const fn refuse(&self) -> bool {
        self.refuses
    }

    pub(super) fn note(&mut self, problem: TenantProblem) {
        self.refuses |= problem.refuses();
        if self.first.len() < MAX_PROBLEMS {
            self.first.push(problem);
        } else {
            self.more += 1;
        }
    }
}

impl TenantProblem {
    pub(super) fn new(reason: Reason, field: impl Into<String>, what: impl Into<String>) -> Self {
        Self { reason, field: field.into(), what: what.into() }
    }

    /// Whether nobody is let in because of it. What is wrong with one key or one model concerns that one only.
    const fn refuses(&self) -> bool {
        !matches!(self.reason, Reason::TenantKeyDuplicate | Reason::TenantModelDenied)
    }
}

impl fmt::Display for TenantProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.field, self.what)
    }
}
