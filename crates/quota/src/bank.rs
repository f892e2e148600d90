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
use crate::period::{Period, PeriodId};
use crate::record::{BankRecord, BudgetRecord};
use crate::scope::{BudgetKey, GatewayId, LeaseKey};
use flyball_core::units::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// A budget as its owner states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetSpec {
    pub key: BudgetKey,
    pub unit: BudgetUnit,
    pub limit: Amount,
    pub period: Period,
}

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

/// One budget.
#[derive(Clone, Debug)]
struct Balance {
    spec: BudgetSpec,
    state: BudgetRecord,
    /// The mark that is written.
    written: Amount,
    /// Whether its period began since: a successor would begin it anew, and forgive what was spent meanwhile.
    turned: bool,
}

/// Who grants.
#[derive(Clone, Debug)]
pub struct Bank {
    term: u64,
    balances: BTreeMap<BudgetKey, Balance>,
    leases: BTreeMap<(GatewayId, LeaseKey), LeaseCounts>,
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
            balances: BTreeMap::new(),
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
        let mut before = std::mem::take(&mut self.balances);
        for spec in specs {
            let known = before.remove(&spec.key).map(|balance| (balance.state, balance.written));
            let of_record = || record.budgets.get(&spec.key).map(|state| (*state, state.mark));
            let (state, written) = known.or_else(of_record).unwrap_or_else(|| {
                // What was spent before there was a budget is none of its business.
                let spent = self.spent_below(&spec.key, spec.unit);
                let state = BudgetRecord { base: spent, mark: spent, ..BudgetRecord::default() };
                (state, Amount::ZERO)
            });
            let period = state.period.max(spec.period.at(now));
            let mut balance = Balance { spec, state, written, turned: false };
            if state.period == PeriodId::default() {
                balance.state.period = period;
            }
            self.balances.insert(balance.spec.key.clone(), balance);
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
        self.gateways.insert(gateway.clone());
        self.missing.remove(gateway);
        for (key, counts) in leases {
            self.leases.entry((gateway.clone(), key.clone())).or_default().merge(counts);
        }
    }

    /// A gateway's journal is gone with it: what it held counts as spent.
    pub fn gone(&mut self, gateway: &GatewayId) {
        if !self.gateways.remove(gateway) {
            return;
        }
        let doubtful = self.missing.remove(gateway);
        for balance in self.balances.values_mut() {
            let known: Amount = self
                .leases
                .iter()
                .filter(|((of, key), _)| of == gateway && balance.covers(key))
                .map(|(_, counts)| counts.committed())
                .sum();
            balance.state.gone += known;
            let spent: Amount = self
                .leases
                .iter()
                .filter(|((of, key), _)| of == gateway && balance.covers(key))
                .map(|(_, counts)| counts.spent)
                .sum();
            balance.state.written_off += known.less(spent);
        }
        self.leases.retain(|(of, _), _| of != gateway);
        self.recalled.remove(gateway);
        // Nobody will ever tell what it had: as much as anybody may have had.
        if doubtful {
            let keys: Vec<BudgetKey> = self.balances.keys().cloned().collect();
            for key in keys {
                let known = self.known(&self.balances[&key]);
                if let Some(balance) = self.balances.get_mut(&key) {
                    balance.state.gone += balance.written.less(known);
                    balance.state.written_off += balance.written.less(known);
                }
            }
        }
    }

    /// Begins periods whose time has come. A clock that jumped back begins none.
    pub fn turn(&mut self, now: Timestamp) {
        let keys: Vec<BudgetKey> = self.balances.keys().cloned().collect();
        for key in keys {
            let spent = self.spent(&self.balances[&key]);
            if let Some(balance) = self.balances.get_mut(&key) {
                let period = balance.spec.period.at(now);
                if period > balance.state.period {
                    (balance.state.period, balance.state.base) = (period, spent);
                    balance.turned = true;
                }
            }
        }
    }

    /// Answers who wants more.
    pub fn ask(&mut self, ask: &Ask<'_>) -> Answer {
        let Some((key, left)) = self.tightest(ask.lease) else {
            // No budget lies above it.
            return Answer::Granted(Amount::MAX);
        };
        if left < ask.lacking {
            return self.refuse(ask, key);
        }
        let slice =
            ask.pace.times(SLICE_SECONDS).min(left.over(2 * self.gateways.len().max(1) as u64));
        let grant = slice.max(ask.lacking).min(left);
        if !self.is_written(ask, grant) {
            return Answer::Write;
        }
        let lease = (ask.gateway.clone(), ask.lease.clone());
        let counts = self.leases.entry(lease).or_default();
        counts.granted += grant;
        Answer::Granted(counts.granted)
    }

    /// What must be written so that this can be granted: for all gateways at their pace, so that it is seldom.
    pub fn record(&mut self, ask: &Ask<'_>) -> BankRecord {
        self.gateways.insert(ask.gateway.clone());
        // As much as all of them spend in the time of a slice, if they are alike.
        let ahead = ask.pace.times(SLICE_SECONDS * self.gateways.len() as u64);
        let keys: Vec<BudgetKey> = self.balances.keys().cloned().collect();
        for key in keys {
            let committed = self.committed(&self.balances[&key]);
            let Some(balance) = self.balances.get_mut(&key) else { continue };
            if balance.covers(ask.lease) {
                let most = balance.state.base + balance.spec.limit;
                let mark = (committed + ask.lacking.max(ahead)).min(most.max(committed));
                balance.state.mark = balance.state.mark.max(mark);
            }
        }
        let budgets = self.balances.iter().map(|(key, balance)| (key.clone(), balance.state));
        BankRecord { term: self.term, budgets: budgets.collect(), gateways: self.gateways.clone() }
    }

    /// The record was written.
    pub fn written(&mut self, record: &BankRecord) {
        self.written.clone_from(&record.gateways);
        for (key, state) in &record.budgets {
            if let Some(balance) = self.balances.get_mut(key) {
                balance.written = balance.written.max(state.mark);
                balance.turned &= balance.state.period != state.period;
            }
        }
    }

    /// How each budget stands.
    pub fn status(&self) -> BTreeMap<BudgetKey, BudgetStatus> {
        let of = |balance: &Balance| {
            let spent = self.spent(balance).less(balance.state.base);
            BudgetStatus {
                period: balance.state.period,
                limit: balance.spec.limit,
                spent,
                held: self.committed(balance).less(balance.state.base).less(spent),
                written_off: balance.state.written_off,
            }
        };
        self.balances.iter().map(|(key, balance)| (key.clone(), of(balance))).collect()
    }

    /// Whether nobody has to be waited for any more.
    pub fn is_certain(&self) -> bool {
        self.missing.is_empty()
    }

    /// The budget above a lease that has least left, and that.
    fn tightest(&self, lease: &LeaseKey) -> Option<(BudgetKey, Amount)> {
        let above = self.balances.values().filter(|balance| balance.covers(lease));
        let left = above.map(|balance| (balance.spec.key.clone(), self.left(balance)));
        left.min_by_key(|(_, left)| *left)
    }

    fn left(&self, balance: &Balance) -> Amount {
        balance.spec.limit.less(self.committed(balance).less(balance.state.base))
    }

    fn refuse(&self, ask: &Ask<'_>, key: BudgetKey) -> Answer {
        let balance = &self.balances[&key];
        // What was reserved at the last report may be there again by now.
        let asked =
            |gateway: &GatewayId| self.recalled.get(gateway).is_some_and(|at| *at >= ask.since);
        let idle = self.leases.iter().filter(|((gateway, lease), counts)| {
            gateway != ask.gateway
                && balance.covers(lease)
                && !counts.unspent().is_zero()
                && !asked(gateway)
        });
        let idle: Vec<(GatewayId, LeaseKey)> = idle.map(|(of, _)| of.clone()).collect();
        match (idle.is_empty(), self.is_certain()) {
            (false, _) => Answer::Recall(idle),
            (true, true) => Answer::Empty(key),
            (true, false) => Answer::Doubt,
        }
    }

    fn is_written(&self, ask: &Ask<'_>, grant: Amount) -> bool {
        let covered = |balance: &Balance| {
            !balance.covers(ask.lease)
                || (!balance.turned && self.committed(balance) + grant <= balance.written)
        };
        self.written.contains(ask.gateway) && self.balances.values().all(covered)
    }

    /// What is held and spent below a budget, as far as it was told.
    fn known(&self, balance: &Balance) -> Amount {
        let below = self.leases.iter().filter(|((_, lease), _)| balance.covers(lease));
        below.map(|(_, counts)| counts.committed()).sum::<Amount>() + balance.state.gone
    }

    fn committed(&self, balance: &Balance) -> Amount {
        let known = self.known(balance);
        if self.is_certain() { known } else { known.max(balance.written) }
    }

    fn spent(&self, balance: &Balance) -> Amount {
        self.spent_below(&balance.spec.key, balance.spec.unit) + balance.state.gone
    }

    fn spent_below(&self, key: &BudgetKey, unit: BudgetUnit) -> Amount {
        let below = |lease: &LeaseKey| lease.unit == unit && key.scope.covers(&lease.scope);
        let leases = self.leases.iter().filter(|((_, lease), _)| below(lease));
        leases.map(|(_, counts)| counts.spent).sum()
    }
}

impl Balance {
    fn covers(&self, lease: &LeaseKey) -> bool {
        self.spec.unit == lease.unit && self.spec.key.scope.covers(&lease.scope)
    }
}
