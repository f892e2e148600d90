//! The operator's side: who gets a slice of which budgets.
//!
//! Everything is counted since a budget exists and never falls, so that messages may come late, twice or not at all.
//! For each budget: `committed = what gateways hold or have spent + what gone gateways may have spent`, and a grant keeps
//! `committed - base <= limit` for every budget above the caller, `base` being what was spent before this period.
//!
//! A successor knows what the record says and what gateways report. Until all gateways of the record have, anything up
//! to the mark may be with one that has not: so much counts as committed.

use crate::account::LeaseCounts;
use crate::amount::{Amount, BudgetUnit};
use crate::balance::{Balance, Balances, BudgetSpec, Sums};
use crate::period::PeriodId;
use crate::record::{BankRecord, BudgetRecord};
use crate::scope::{BudgetKey, GatewayId, LeaseKey, Scope};
use flyball_core::units::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// How a budget stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetStatus {
    pub period: PeriodId,
    pub limit: Amount,
    /// Spent in this period, as far as gateways have reported, with what gone ones may have.
    pub spent: Amount,
    /// Granted and not spent, or in doubt.
    pub held: Amount,
    /// The part of `spent` that was granted to gateways that are gone, of which nobody can tell whether they spent it.
    pub written_off: Amount,
}

/// A gateway wants more.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub gateway: &'a GatewayId,
    pub lease: &'a LeaseKey,
    /// What the request that waits lacks.
    pub lacking: Amount,
    /// What the gateway spent of this lease in a second, lately.
    pub pace: Amount,
    /// When it first asked for that.
    pub since: Timestamp,
}

/// What comes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// So much is granted in all.
    Granted(Amount),
    /// Others may have some that they do not use: let them give it back and report, then ask again.
    Recall(Vec<(GatewayId, LeaseKey)>),
    /// The record must be written first ([`Bank::record`]).
    Write,
    /// Gateways that held slices have not reported since the leader changed: nobody can tell whether anything is left.
    Doubt,
    /// This budget is spent, or paid ahead by requests that run.
    Empty(BudgetKey),
}

/// Who grants.
#[derive(Clone, Debug)]
pub struct Bank {
    term: u64,
    balances: Balances,
    leases: BTreeMap<GatewayId, BTreeMap<LeaseKey, LeaseCounts>>,
    gateways: BTreeSet<GatewayId>,
    /// Those on the record that is written.
    written: BTreeSet<GatewayId>,
    /// Those of a predecessor's record that have not reported.
    missing: BTreeSet<GatewayId>,
    /// When each last gave back what it did not use.
    recalled: BTreeMap<GatewayId, Timestamp>,
}

/// A slice lasts a gateway so many seconds at its pace.
const SLICE_SECONDS: u64 = 5;

impl Bank {
    /// A leader's, which goes on from what the one before it wrote.
    pub fn new(term: u64, specs: Vec<BudgetSpec>, record: &BankRecord, now: Timestamp) -> Self {
        let mut bank = Self {
            term,
            balances: Balances::default(),
            leases: BTreeMap::new(),
            gateways: record.gateways.clone(),
            written: record.gateways.clone(),
            missing: record.gateways.clone(),
            recalled: BTreeMap::new(),
        };
        bank.set_budgets(specs, record, now);
        bank
    }

    /// Takes in budgets that were changed, added or removed.
    pub fn set_budgets(&mut self, specs: Vec<BudgetSpec>, record: &BankRecord, now: Timestamp) {
        let mut before = std::mem::take(&mut self.balances).into_map();
        for spec in specs {
            let below = self.below(&spec.key.scope, spec.unit);
            let below = Sums::of(below.map(|(_, _, counts)| counts));
            let known = before.remove(&spec.key).map(|balance| (balance.state, balance.written));
            let of_record = || record.budgets.get(&spec.key).map(|state| (*state, state.mark));
            let (state, written) = known.or_else(of_record).unwrap_or_else(|| {
                // What was spent before there was a budget is none of its business.
                let (base, mark) = (below.spent, below.spent);
                (BudgetRecord { base, mark, ..BudgetRecord::default() }, Amount::ZERO)
            });
            let period = state.period.max(spec.period.at(now));
            let mut balance = Balance { spec, state, written, turned: false, below };
            if state.period == PeriodId::default() {
                balance.state.period = period;
            }
            self.balances.insert(balance);
        }
        self.turn(now);
    }

    pub const fn term(&self) -> u64 {
        self.term
    }

    /// A gateway has given back what it did not use of everything that it was asked for, and reported.
    pub fn recalled(&mut self, gateway: &GatewayId, now: Timestamp) {
        self.recalled.insert(gateway.clone(), now);
    }

    /// A gateway says how all its leases stand.
    pub fn report(&mut self, gateway: &GatewayId, leases: &[(LeaseKey, LeaseCounts)]) {
        self.merge(gateway, leases);
        self.missing.remove(gateway);
    }

    /// A gateway says how some of its leases stand.
    pub fn merge(&mut self, gateway: &GatewayId, leases: &[(LeaseKey, LeaseCounts)]) {
        self.gateways.insert(gateway.clone());
        for (key, counts) in leases {
            self.change(gateway, key, |known| known.merge(counts));
        }
    }

    /// A gateway's journal is gone with it: what it held counts as spent.
    pub fn gone(&mut self, gateway: &GatewayId) {
        if !self.gateways.remove(gateway) {
            return;
        }
        let doubtful = self.missing.remove(gateway);
        self.recalled.remove(gateway);
        for (lease, counts) in self.leases.remove(gateway).unwrap_or_default() {
            self.balances.change_above(&lease, |balance| {
                balance.below.replace(&counts, &LeaseCounts::default());
                balance.state.gone += counts.committed();
                balance.state.written_off += counts.unspent();
            });
        }
        // Nobody will ever tell what it had: as much as anybody may have had.
        for balance in self.balances.all_mut().filter(|_| doubtful) {
            let unknown = balance.written.less(balance.known());
            balance.state.gone += unknown;
            balance.state.written_off += unknown;
        }
    }

    /// Begins periods whose time has come. A clock that jumped back begins none.
    pub fn turn(&mut self, now: Timestamp) {
        for balance in self.balances.all_mut() {
            let period = balance.spec.period.at(now);
            if period > balance.state.period {
                (balance.state.period, balance.state.base) = (period, balance.spent());
                balance.turned = true;
            }
        }
    }

    /// Answers who wants more.
    pub fn ask(&mut self, ask: &Ask<'_>) -> Answer {
        let Some((key, left)) = self.tightest(ask.lease) else {
            // No budget lies above it.
            return Answer::Granted(Amount::MAX);
        };
        if left == Amount::MAX {
            // Those that do only count.
            return Answer::Granted(Amount::MAX);
        }
        if left < ask.lacking {
            return self.refuse(ask, key);
        }
        let slice =
            ask.pace.times(SLICE_SECONDS).min(left.over(2 * self.gateways.len().max(1) as u64));
        let grant = slice.max(ask.lacking).min(left);
        if !self.is_written(ask, grant) {
            return Answer::Write;
        }
        // On top of what is spent, where that is more than was granted: by a budget that only counted until now, or by streams
        // that were allowed to finish. Otherwise nothing could be paid from it until grants have caught up.
        let granted = |counts: &mut LeaseCounts| {
            counts.granted = counts.returned + counts.committed() + grant;
        };
        Answer::Granted(self.change(ask.gateway, ask.lease, granted).granted)
    }

    /// What must be written so that this can be granted: for all gateways at their pace, so that it is seldom.
    pub fn record(&mut self, ask: &Ask<'_>) -> BankRecord {
        self.mark(ask);
        self.to_record()
    }

    /// Notes what a record must say so that this can be granted.
    pub fn mark(&mut self, ask: &Ask<'_>) {
        self.gateways.insert(ask.gateway.clone());
        // As much as all of them spend in the time of a slice, if they are alike.
        let ahead = ask.pace.times(SLICE_SECONDS * self.gateways.len() as u64);
        let is_certain = self.is_certain();
        self.balances.change_above(ask.lease, |balance| {
            let committed = balance.committed(is_certain);
            let most = balance.state.base + balance.spec.limit;
            let mark = (committed + ask.lacking.max(ahead)).min(most.max(committed));
            balance.state.mark = balance.state.mark.max(mark);
        });
    }

    /// What is to be written before anybody has to wait for it: these gateways, and each budget as far ahead of what is
    /// held of it as `ahead` says.
    pub fn record_ahead<'a>(
        &mut self,
        gateways: impl Iterator<Item = &'a GatewayId>,
        ahead: impl Fn(&BudgetSpec) -> Amount,
    ) -> BankRecord {
        self.gateways.extend(gateways.cloned());
        let is_certain = self.is_certain();
        for balance in self.balances.all_mut() {
            let committed = balance.committed(is_certain);
            let most = (balance.state.base + balance.spec.limit).max(committed);
            let ahead = ahead(&balance.spec);
            // Half of it is enough for now: a record that never changes is never written.
            if balance.state.mark.less(committed) < ahead.over(2) {
                let mark = (committed + ahead).min(most);
                balance.state.mark = balance.state.mark.max(mark);
            }
        }
        self.to_record()
    }

    /// Whether a successor would know that this gateway may hold something.
    pub fn is_on_record(&self, gateway: &GatewayId) -> bool {
        self.written.contains(gateway)
    }

    /// Gateways that hold something, or may.
    pub fn gateways(&self) -> impl Iterator<Item = &GatewayId> {
        self.gateways.iter()
    }

    /// The record was written.
    pub fn written(&mut self, record: &BankRecord) {
        self.written.clone_from(&record.gateways);
        for balance in self.balances.all_mut() {
            if let Some(state) = record.budgets.get(&balance.spec.key) {
                balance.written = balance.written.max(state.mark);
                balance.turned &= balance.state.period != state.period;
            }
        }
    }

    /// How each budget stands.
    pub fn status(&self) -> BTreeMap<BudgetKey, BudgetStatus> {
        self.balances.all().map(|one| (one.spec.key.clone(), self.status_in(one))).collect()
    }

    /// How one budget stands.
    pub fn status_of(&self, key: &BudgetKey) -> Option<BudgetStatus> {
        self.balances.all().find(|one| one.spec.key == *key).map(|one| self.status_in(one))
    }

    /// What is spent of each budget that lies above a lease of this gateway; nothing while that is not known.
    pub fn spent_above(&self, gateway: &GatewayId) -> BTreeMap<BudgetKey, (Amount, PeriodId)> {
        let leases = self.leases.get(gateway).into_iter().flatten();
        let known = leases.filter(|_| self.is_certain());
        let above = known.flat_map(|(lease, _)| self.balances.above(lease));
        let spent = |one: &Balance| (one.spent().less(one.state.base), one.state.period);
        above.map(|one| (one.spec.key.clone(), spent(one))).collect()
    }

    /// Whether nobody has to be waited for any more.
    pub fn is_certain(&self) -> bool {
        self.missing.is_empty()
    }

    /// The budget above a lease that has least left, and that.
    fn tightest(&self, lease: &LeaseKey) -> Option<(BudgetKey, Amount)> {
        let left = |balance: &Balance| balance.left(self.is_certain());
        let tightest = self.balances.above(lease).min_by_key(|balance| left(balance))?;
        Some((tightest.spec.key.clone(), left(tightest)))
    }

    fn status_in(&self, balance: &Balance) -> BudgetStatus {
        let spent = balance.spent().less(balance.state.base);
        BudgetStatus {
            period: balance.state.period,
            limit: balance.spec.limit,
            spent,
            held: balance.committed(self.is_certain()).less(balance.state.base).less(spent),
            written_off: balance.state.written_off,
        }
    }

    fn to_record(&self) -> BankRecord {
        let budgets = self.balances.all().map(|one| (one.spec.key.clone(), one.state));
        BankRecord { term: self.term, budgets: budgets.collect(), gateways: self.gateways.clone() }
    }

    fn refuse(&self, ask: &Ask<'_>, key: BudgetKey) -> Answer {
        // What was reserved at the last report may be there again by now.
        let was_recalled =
            |gateway: &GatewayId| self.recalled.get(gateway).is_some_and(|at| *at >= ask.since);
        let idle = self.below(&key.scope, ask.lease.unit).filter(|(gateway, _, counts)| {
            *gateway != ask.gateway && !counts.unspent().is_zero() && !was_recalled(gateway)
        });
        let idle: Vec<(GatewayId, LeaseKey)> =
            idle.map(|(gateway, lease, _)| (gateway.clone(), lease.clone())).collect();
        match (idle.is_empty(), self.is_certain()) {
            (false, _) => Answer::Recall(idle),
            (true, true) => Answer::Empty(key),
            (true, false) => Answer::Doubt,
        }
    }

    fn is_written(&self, ask: &Ask<'_>, grant: Amount) -> bool {
        let is_covered = |balance: &Balance| {
            balance.spec.counts_only
                || !balance.turned
                    && balance.committed(self.is_certain()) + grant <= balance.written
        };
        self.written.contains(ask.gateway) && self.balances.above(ask.lease).all(is_covered)
    }

    /// Changes the counts of a lease, and every sum that they are in.
    fn change(
        &mut self,
        gateway: &GatewayId,
        lease: &LeaseKey,
        change: impl FnOnce(&mut LeaseCounts),
    ) -> LeaseCounts {
        let of = self.leases.entry(gateway.clone()).or_default();
        let counts = of.entry(lease.clone()).or_default();
        let before = *counts;
        change(counts);
        let after = *counts;
        self.balances.change_above(lease, |balance| balance.below.replace(&before, &after));
        after
    }

    /// The leases below a scope, of all gateways.
    fn below<'a>(
        &'a self,
        scope: &'a Scope,
        unit: BudgetUnit,
    ) -> impl Iterator<Item = (&'a GatewayId, &'a LeaseKey, &'a LeaseCounts)> {
        // Paths that begin alike follow each other, with others between them: `org/a`, `org/a-b`, `org/a/1`.
        let first = LeaseKey { scope: scope.clone(), unit: BudgetUnit::Money };
        self.leases.iter().flat_map(move |(gateway, leases)| {
            let from = leases.range(first.clone()..);
            from.take_while(|(lease, _)| lease.scope.as_str().starts_with(scope.as_str()))
                .filter(move |(lease, _)| lease.unit == unit && scope.covers(&lease.scope))
                .map(move |(lease, counts)| (gateway, lease, counts))
        })
    }
}
