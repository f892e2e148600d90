//! What a bank writes down for its successor, before it grants.

use crate::amount::Amount;
use crate::period::PeriodId;
use crate::scope::{BudgetKey, GatewayId};
use std::collections::{BTreeMap, BTreeSet};

/// The record. Written with a condition on its version, so that of two that think they lead one writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BankRecord {
    /// Which leader wrote it, counted up.
    pub term: u64,
    pub budgets: BTreeMap<BudgetKey, BudgetRecord>,
    /// Every gateway that may hold a slice. One is on it before it gets its first.
    pub gateways: BTreeSet<GatewayId>,
}

/// What is written about one budget: since it exists, not since its period began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetRecord {
    pub period: PeriodId,
    /// What was spent before this period.
    pub base: Amount,
    /// What gateways that are gone have spent, or may have.
    pub gone: Amount,
    /// The part of it of which nobody can tell.
    pub written_off: Amount,
    /// What may have been granted, ever: nothing is granted beyond it before a higher one is written.
    pub mark: Amount,
}
