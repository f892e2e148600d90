//! Budgets as they stand, each with the sums over all leases below it.

use crate::account::LeaseCounts;
use crate::amount::{Amount, BudgetUnit};
use crate::period::Period;
use crate::record::BudgetRecord;
use crate::scope::{BudgetKey, LeaseKey, Scope};
use std::collections::BTreeMap;

/// A budget as its owner states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetSpec {
    pub key: BudgetKey,
    pub unit: BudgetUnit,
    pub limit: Amount,
    pub period: Period,
    /// Whether it only counts: more than the limit may be spent.
    pub counts_only: bool,
}

/// One budget.
#[derive(Clone, Debug)]
pub(crate) struct Balance {
    pub(crate) spec: BudgetSpec,
    pub(crate) state: BudgetRecord,
    /// The mark that is written.
    pub(crate) written: Amount,
    /// Whether its period began since: a successor would begin it anew, and forgive what was spent meanwhile.
    pub(crate) turned: bool,
    /// The sums over all leases below it.
    pub(crate) below: Sums,
}

/// What all leases below a budget come to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) committed: Amount,
    pub(crate) spent: Amount,
}

/// All budgets, by whose they are: those above a lease are found by its path, however many others there are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Balances(BTreeMap<Scope, Vec<Balance>>);

impl Balances {
    pub(crate) fn insert(&mut self, balance: Balance) {
        self.0.entry(balance.spec.key.scope.clone()).or_default().push(balance);
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Balance> {
        self.0.values().flatten()
    }

    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut Balance> {
        self.0.values_mut().flatten()
    }

    pub(crate) fn into_map(self) -> BTreeMap<BudgetKey, Balance> {
        self.0.into_values().flatten().map(|one| (one.spec.key.clone(), one)).collect()
    }

    /// Those above a lease.
    pub(crate) fn above(&self, lease: &LeaseKey) -> impl Iterator<Item = &Balance> {
        let scopes = lease.scope.ancestors().filter_map(|scope| self.0.get(scope));
        scopes.flatten().filter(|balance| balance.spec.unit == lease.unit)
    }

    /// Changes those above a lease.
    pub(crate) fn change_above(&mut self, lease: &LeaseKey, mut change: impl FnMut(&mut Balance)) {
        for scope in lease.scope.ancestors() {
            let of = self.0.get_mut(scope).into_iter().flatten();
            of.filter(|balance| balance.spec.unit == lease.unit).for_each(&mut change);
        }
    }
}

impl Balance {
    /// What is held and spent below it, as far as gateways have reported.
    pub(crate) fn known(&self) -> Amount {
        self.below.committed + self.state.gone
    }

    /// What a grant has to count on. As long as it is not certain who holds what, all that may have been granted is held.
    pub(crate) fn committed(&self, is_certain: bool) -> Amount {
        if is_certain { self.known() } else { self.known().max(self.written) }
    }

    pub(crate) fn spent(&self) -> Amount {
        self.below.spent + self.state.gone
    }

    pub(crate) fn left(&self, is_certain: bool) -> Amount {
        if self.spec.counts_only {
            return Amount::MAX;
        }
        self.spec.limit.less(self.committed(is_certain).less(self.state.base))
    }
}

impl Sums {
    /// Of these leases.
    pub(crate) fn of<'a>(leases: impl Iterator<Item = &'a LeaseCounts>) -> Self {
        let mut sums = Self::default();
        leases.for_each(|counts| sums.replace(&LeaseCounts::default(), counts));
        sums
    }

    pub(crate) fn replace(&mut self, before: &LeaseCounts, after: &LeaseCounts) {
        self.committed = (self.committed + after.committed()).less(before.committed());
        self.spent = (self.spent + after.spent).less(before.spent);
    }
}
