//! One row of the ledger, as far as money and reports need it.

use crate::money::PicoDollars;
use crate::uses::Spending;
use flyball_core::units::{Micros, Timestamp};
use std::ops::AddAssign;
use std::sync::Arc;

/// Whose row it is. What does not apply, or belongs to nobody, is absent; copies share their text.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowOwner {
    /// The tenant's path, such as `ml/org/team`.
    pub tenant: Option<Arc<str>>,
    /// The id of the key, which is no secret.
    pub key: Option<Arc<str>>,
    pub model: Option<Arc<str>>,
    pub variant: Option<Arc<str>>,
    /// A training run, as `namespace/name`.
    pub run: Option<Arc<str>>,
    pub pool: Option<Arc<str>>,
}

/// Requests and their tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServedTokens {
    pub requests: u64,
    /// Of the requests, those that broke an objective, were refused or failed.
    pub missed: u64,
    /// Prompt tokens that were not in a cache.
    pub input: u64,
    pub cached_input: u64,
    pub output: u64,
}

impl AddAssign for ServedTokens {
    fn add_assign(&mut self, other: Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.missed = self.missed.saturating_add(other.missed);
        self.input = self.input.saturating_add(other.input);
        self.cached_input = self.cached_input.saturating_add(other.cached_input);
        self.output = self.output.saturating_add(other.output);
    }
}

/// What one owner used in one bucket of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostRow {
    pub start: Timestamp,
    pub length: Micros,
    pub owner: RowOwner,
    pub served: ServedTokens,
    pub spent: Spending,
    /// Processors and memory of nodes, which is apart from what GPUs cost.
    pub host: PicoDollars,
}

impl CostRow {
    pub const fn end(&self) -> Timestamp {
        self.start.saturating_add(self.length)
    }
}
