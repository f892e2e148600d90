//! Leases and shares of a gateway, and who waits for more. Pure: time is an argument.

use super::lease::Lease;
use super::left::{QuotaLeft, RateLeft};
use super::share::Share;
use super::shares::{ShareSlot, Shares};
use super::table::AppliedLimit;
use flyball_core::units::{Micros, Timestamp};
use flyball_quota::{Amount, BudgetKey, LeaseKey, RATE_LEASE, RateKey, RateKind, Scope};
use flyball_resources::stream::{
    BudgetSpending, EmptyLease, LeaseAsk, QuotaReply, ReplyGrant, ReportedLease, ReportedQuota,
    ReportedShare, ShareChange,
};
use std::collections::{BTreeMap, BTreeSet};

/// Leases and shares in one message.
const MOST: usize = 2_000;

/// Leases at most, of as many Tenants.
const MAX_LEASES: usize = 50_000;

/// What one request needs before it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Needs {
    /// Whose they are.
    pub(super) scope: Scope,
    /// Permits of the shares at these places, with the limit that they are of.
    pub(super) permits: Vec<(Option<ShareSlot>, u64, u64)>,
    /// Of each lease so much.
    pub(super) amounts: Vec<(LeaseKey, Amount)>,
}

/// What one request has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    /// Whose they are.
    pub(super) scope: Scope,
    /// Permits; whether they are of a count of our own.
    pub(super) permits: Vec<(ShareSlot, u64, bool)>,
    /// When they were taken.
    pub(super) at: Micros,
    /// What is paid ahead of each lease.
    pub(super) amounts: BTreeMap<LeaseKey, Amount>,
}

impl Needs {
    /// More for a request that runs.
    pub(super) fn of_amounts(scope: &Scope, amounts: &[(LeaseKey, Amount)]) -> Self {
        Self { scope: scope.clone(), permits: Vec::new(), amounts: amounts.to_vec() }
    }

    fn shares(&self) -> impl Iterator<Item = (ShareSlot, u64, u64)> {
        self.permits.iter().filter_map(|(slot, permits, limit)| Some(((*slot)?, *permits, *limit)))
    }
}

/// Why a request cannot go on now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lacks {
    /// Permits of this limit.
    Permits {
        key: RateKey,
        limit: u64,
        /// How long until there are enough without more being granted.
        free_in: Option<Micros>,
    },
    /// More than the whole limit.
    TooMuch { key: RateKey, limit: u64 },
    /// Money that the operator has not granted.
    Amount(LeaseKey),
    /// Money that is not there.
    Empty(Box<EmptyLease>),
    /// Room for another Tenant.
    Room,
}

/// Leases and shares.
#[derive(Debug, Default)]
pub(super) struct QuotaState {
    /// Of the operator that was heard last; 0 if none was.
    term: u64,
    last_contact: Micros,
    leases: BTreeMap<LeaseKey, Lease>,
    shares: Shares,
    /// Leases and shares of which the operator may have to hear at once.
    touched: (BTreeSet<LeaseKey>, BTreeSet<ShareSlot>),
    /// What all gateways have spent of budgets, and until when that holds, as the operator said last.
    spent: BTreeMap<BudgetKey, (Amount, Option<Timestamp>)>,
    recalled: u64,
    complete: bool,
    /// Counts asks.
    asks: u64,
    /// Counts those who wait.
    waiters: u64,
}

impl QuotaState {
    /// Takes everything that a request needs, or nothing.
    pub(super) fn take(
        &mut self,
        needs: &Needs,
        waiter: &mut Option<u64>,
        now: Micros,
    ) -> Result<Held, Lacks> {
        let confined = now.saturating_sub(self.last_contact) > RATE_LEASE;
        let alone = self.term == 0;
        self.has_room(needs)?;
        let mut lacks = None;
        for (slot, permits, limit) in needs.shares() {
            let (key, share) = self.shares.at(slot);
            if permits > limit {
                return Err(Lacks::TooMuch { key: key.clone(), limit });
            }
            share.follow(limit, alone, confined, now);
            let free_in = share.free_in(permits, now);
            if free_in != Some(Micros::ZERO) {
                lacks.get_or_insert_with(|| Lacks::Permits { key: key.clone(), limit, free_in });
            }
        }
        for (key, amount) in &needs.amounts {
            let lease = self.leases.entry(key.clone()).or_default();
            if !lease.covers(*amount, now) {
                if let Some(empty) = waiter.and_then(|waiter| lease.empty_for(waiter)) {
                    return Err(Lacks::Empty(Box::new(empty)));
                }
                lacks.get_or_insert_with(|| Lacks::Amount(key.clone()));
            }
        }
        match lacks {
            None => Ok(self.hold(needs, waiter.take(), now)),
            Some(lacks) => {
                self.wait(needs, waiter, now);
                Err(lacks)
            }
        }
    }

    /// Pays more ahead for a request that runs.
    pub(super) fn pay(
        &mut self,
        amounts: &[(LeaseKey, Amount)],
        held: &mut Held,
        waiter: &mut Option<u64>,
        now: Micros,
    ) -> Result<(), Lacks> {
        let needs = Needs::of_amounts(&held.scope, amounts);
        let more = self.take(&needs, waiter, now)?;
        for (key, amount) in more.amounts {
            *held.amounts.entry(key).or_default() += amount;
        }
        Ok(())
    }

    /// What is left here of these limits.
    pub(super) fn left(&mut self, limits: &[AppliedLimit], now: Micros) -> QuotaLeft {
        let mut left = QuotaLeft::default();
        for limit in limits {
            left.note(limit.key.kind, self.left_of(limit, now));
        }
        left
    }

    /// What is left here of one limit.
    pub(super) fn left_of(&mut self, applied: &AppliedLimit, now: Micros) -> RateLeft {
        let limit = applied.limit;
        let share = applied.slot.map(|slot| self.shares.at(slot).1);
        // Of one that nobody has used yet, everything is left.
        let share = share.filter(|share| share.is_used());
        let (free, reset) = share.map_or((limit, Micros::ZERO), |share| share.left(now));
        RateLeft { limit, remaining: free.min(limit), reset }
    }

    /// What all gateways have spent of a budget in its period at this moment; `None` if nobody has said so.
    pub(super) fn spent_by_all(&self, key: &BudgetKey, at: Timestamp) -> Option<Amount> {
        let (spent, resets_at) = self.spent.get(key)?;
        resets_at.is_none_or(|resets_at| at < resets_at).then_some(*spent)
    }

    /// The place of a limit's share; `None` if there are too many.
    pub(super) fn slot(&mut self, key: &RateKey) -> Option<ShareSlot> {
        self.shares.slot(key)
    }

    /// What this gateway has spent of a lease, ever.
    pub(super) fn spent(&self, key: &LeaseKey) -> Option<Amount> {
        self.leases.get(key).map(Lease::spent)
    }

    /// Nobody waits under this number any more.
    pub(super) fn leave(&mut self, needs: &Needs, waiter: u64) {
        for (key, _) in &needs.amounts {
            self.leases.get_mut(key).into_iter().for_each(|lease| lease.leave(waiter));
            self.touched.0.insert(key.clone());
        }
        for (slot, ..) in needs.shares() {
            self.shares.at(slot).1.leave(waiter);
        }
    }

    /// A request is over: so much is spent of each lease, and so many permits were needed of each kind.
    pub(super) fn settle(
        &mut self,
        held: &Held,
        spent: impl Fn(&LeaseKey) -> Amount,
        used: impl Fn(RateKind) -> u64,
        now: Micros,
    ) {
        for (key, reserved) in &held.amounts {
            self.leases.entry(key.clone()).or_default().settle(*reserved, spent(key), now);
        }
        for (slot, taken, own) in &held.permits {
            let (key, share) = self.shares.at(*slot);
            share.settle(key.kind, (*taken, held.at), used(key.kind), *own, now);
        }
    }

    /// The operator says something. Whether anybody should be told at once what became of it.
    pub(super) fn follow(&mut self, reply: QuotaReply, now: Micros) -> bool {
        if reply.term < self.term {
            return false;
        }
        self.last_contact = now;
        let mut is_due = reply.term > self.term || reply.recall > 0;
        if reply.term > self.term {
            self.term = reply.term;
            self.recalled = 0;
            self.forget_reported();
        }
        for (key, grant) in reply.grants {
            let lease = self.leases.entry(key).or_default();
            match grant {
                ReplyGrant::Total(granted) => lease.grant(granted),
                ReplyGrant::Unlimited => lease.free_until(now.saturating_add(UNLIMITED)),
            }
        }
        for BudgetSpending { budget, spent, resets_at } in reply.spent {
            if self.spent.len() < MAX_LEASES || self.spent.contains_key(&budget) {
                self.spent.insert(budget, (spent, resets_at));
            }
        }
        for empty in reply.empty {
            self.leases.entry(empty.lease.clone()).or_default().is_empty(empty);
        }
        for (key, change) in reply.shares {
            let Some(slot) = self.shares.slot(&key) else { continue };
            let (_, share) = self.shares.at(slot);
            match change {
                ShareChange::Grant(granted) => share.grant(granted),
                ShareChange::GiveBack(returned) => {
                    share.give_back(returned, now);
                    // Requests of other gateways wait for it.
                    self.touched.1.insert(slot);
                    is_due = true;
                }
            }
        }
        for key in &reply.recalls {
            if let Some(lease) = self.leases.get_mut(key) {
                lease.give_back();
                self.touched.0.insert(key.clone());
            }
        }
        self.recalled = self.recalled.max(reply.recall);
        is_due
    }

    /// The operator was heard, whatever it said.
    pub(super) const fn note_contact(&mut self, now: Micros) {
        self.last_contact = now;
    }

    /// Whether an operator divides that was heard lately.
    pub(super) fn is_led(&self, now: Micros) -> bool {
        self.term > 0 && now.saturating_sub(self.last_contact) <= RATE_LEASE
    }

    /// Everything is reported anew: another operator listens, or another connection.
    pub(super) fn forget_reported(&mut self) {
        self.complete = false;
        self.leases.values_mut().for_each(Lease::forget_reported);
        self.shares.used().for_each(|(_, share)| share.forget_reported());
    }

    /// Gives back everything that no request has.
    pub(super) fn give_back(&mut self) {
        self.leases.values_mut().for_each(Lease::give_back);
        self.touched.0.extend(self.leases.keys().cloned());
    }

    /// What is to be told: what changed, and asks that are due. With `all` everything is looked at, and otherwise what
    /// requests have just touched.
    pub(super) fn report(&mut self, all: bool, now: Micros) -> ReportedQuota {
        let (leases_touched, shares_touched) = std::mem::take(&mut self.touched);
        let (mut leases, mut shares, mut asks) = (Vec::new(), Vec::new(), Vec::new());
        let numbers = &mut self.asks;
        let mut of_lease = |key: &LeaseKey, lease: &mut Lease| {
            if leases.len() < MOST && asks.len() < MOST {
                let counts = lease.unreported();
                leases.extend(counts.map(|counts| ReportedLease::of(key, &counts)));
                asks.extend(lease.due_ask(key, numbers, now).map(|ask| LeaseAsk::of(&ask)));
            }
        };
        let mut of_share = |key: &RateKey, share: &mut Share| {
            if shares.len() < MOST {
                let counts = share.unreported(now);
                shares.extend(counts.map(|counts| ReportedShare::of(key, &counts)));
            }
        };
        if all {
            self.leases.iter_mut().for_each(|(key, lease)| of_lease(key, lease));
            self.shares.used().for_each(|(key, share)| of_share(key, share));
        } else {
            for key in &leases_touched {
                self.leases.get_mut(key).into_iter().for_each(|lease| of_lease(key, lease));
            }
            for slot in shares_touched {
                let (key, share) = self.shares.at(slot);
                of_share(key, share);
            }
        }
        self.complete |= all && leases.len() < MOST && shares.len() < MOST && asks.len() < MOST;
        ReportedQuota {
            complete: self.complete,
            leases,
            asks,
            shares,
            recalled: self.recalled,
            term: self.term,
            ..ReportedQuota::default()
        }
    }

    fn hold(&mut self, needs: &Needs, waiter: Option<u64>, now: Micros) -> Held {
        waiter.into_iter().for_each(|waiter| self.leave(needs, waiter));
        let (permits, amounts) = (Vec::with_capacity(needs.permits.len()), BTreeMap::new());
        let mut held = Held { scope: needs.scope.clone(), permits, at: now, amounts };
        for (slot, permits, _) in needs.shares() {
            let (key, share) = self.shares.at(slot);
            let own = share.take(key.kind, permits, now);
            held.permits.push((slot, permits, own));
        }
        for (key, amount) in &needs.amounts {
            // Where no budget lies above it now, what it comes to is counted all the same.
            let reserved = self.leases.entry(key.clone()).or_default().reserve(*amount, now);
            held.amounts.insert(key.clone(), if reserved { *amount } else { Amount::ZERO });
        }
        held
    }

    /// Nothing is forgotten while the process lives: the operator counts on it. So there is an end to what is new.
    fn has_room(&self, needs: &Needs) -> Result<(), Lacks> {
        let is_known = |(key, _): &(LeaseKey, Amount)| self.leases.contains_key(key);
        let leases = self.leases.len() < MAX_LEASES || needs.amounts.iter().all(is_known);
        let shares = needs.permits.iter().all(|(slot, ..)| slot.is_some());
        if leases && shares { Ok(()) } else { Err(Lacks::Room) }
    }

    fn wait(&mut self, needs: &Needs, waiter: &mut Option<u64>, now: Micros) {
        let number = *waiter.get_or_insert_with(|| {
            self.waiters += 1;
            self.waiters
        });
        self.touched.0.extend(needs.amounts.iter().map(|(key, _)| key.clone()));
        for (slot, permits, _) in needs.shares() {
            self.touched.1.insert(slot);
            self.shares.at(slot).1.wait(number, permits, now);
        }
        for (key, amount) in &needs.amounts {
            if let Some(lease) = self.leases.get_mut(key).filter(|one| !one.covers(*amount, now)) {
                lease.wait(number, *amount);
            }
        }
    }
}

/// For so long nobody asks again whether a budget lies above a caller.
const UNLIMITED: Micros = Micros::from_seconds(5);
