//! One lease, and who waits for more of it.

use flyball_core::units::Micros;
use flyball_quota::{Amount, LeaseAccount, LeaseCounts, LeaseKey};
use flyball_resources::stream::{EmptyLease, LeaseRequest};
use std::collections::{BTreeMap, VecDeque};

/// An ask that got no answer is repeated as long as somebody waits.
const AGAIN: Micros = Micros::from_millis(50);

/// What was spent is looked at in spans of this length.
const SPAN: Micros = Micros::from_seconds(2);

/// A slice is what is spent in so many seconds: those who wait together should get theirs at once.
const SLICE_SECONDS: u64 = 5;

/// One lease.
#[derive(Debug, Default)]
pub(super) struct Lease {
    account: LeaseAccount,
    reported: Option<LeaseCounts>,
    /// Who waits, in order: for how much, and the number of the last ask when it came.
    waiting: VecDeque<(u64, Amount, u64)>,
    /// The ask that is not answered: its number, for whom it is, and when it was sent last.
    open_ask: Option<(u64, Option<u64>, Micros)>,
    /// The number of the last ask.
    last_ask: u64,
    /// Those who wait and are refused.
    empty: BTreeMap<u64, EmptyLease>,
    /// Until then no budget lies above it.
    free_until: Micros,
    pace: Pace,
}

/// What is spent in a second.
#[derive(Debug, Default)]
struct Pace {
    began: Micros,
    spent: Amount,
    last: Amount,
}

impl Lease {
    pub(super) fn covers(&self, amount: Amount, now: Micros) -> bool {
        now < self.free_until || amount <= self.account.counts().idle()
    }

    /// What was spent of it, ever.
    pub(super) fn spent(&self) -> Amount {
        self.account.counts().spent
    }

    /// Pays ahead. Whether it is counted.
    pub(super) fn reserve(&mut self, amount: Amount, now: Micros) -> bool {
        self.account.reserve(amount).is_ok_and(|()| {
            self.pace.add(amount, now);
            true
        })
    }

    pub(super) fn settle(&mut self, reserved: Amount, spent: Amount, now: Micros) {
        self.account.settle(reserved, spent);
        self.pace.add(spent.less(reserved), now);
    }

    /// What this one is told, if it is that nothing is left for it.
    pub(super) fn empty_for(&self, waiter: u64) -> Option<EmptyLease> {
        self.empty.get(&waiter).cloned()
    }

    pub(super) fn wait(&mut self, waiter: u64, amount: Amount) {
        if !self.waiting.iter().any(|(one, ..)| *one == waiter) {
            self.waiting.push_back((waiter, amount, self.last_ask));
        }
    }

    pub(super) fn leave(&mut self, waiter: u64) {
        self.waiting.retain(|(one, ..)| *one != waiter);
        self.empty.remove(&waiter);
        // What is asked for somebody who has gone is asked for the next.
        self.open_ask.take_if(|(_, one, _)| *one == Some(waiter));
    }

    pub(super) fn grant(&mut self, granted: Amount) {
        self.account.grant(granted);
        self.open_ask = None;
    }

    pub(super) fn free_until(&mut self, until: Micros) {
        self.free_until = until;
        self.open_ask = None;
    }

    /// An ask is refused: so is the one that it was for, if it still waits, and whoever waited already when it was asked and
    /// needs no less. Asked for one by one, the last of many would not hear of it before its patience ends.
    pub(super) fn is_empty(&mut self, empty: EmptyLease) {
        let open_ask = self.open_ask.take_if(|(number, _, _)| *number == empty.number);
        let Some((number, Some(waiter), _)) = open_ask else { return };
        let of = self.waiting.iter().find(|(one, ..)| *one == waiter);
        let Some(lacked) = of.map(|(_, amount, _)| *amount) else { return };
        let as_well = |(_, amount, last): &&(u64, Amount, u64)| *last < number && *amount >= lacked;
        let refused = self.waiting.iter().filter(as_well);
        self.empty.extend(refused.map(|(one, ..)| (*one, empty.clone())));
    }

    pub(super) fn give_back(&mut self) {
        self.account.give_back();
    }

    pub(super) const fn forget_reported(&mut self) {
        self.reported = None;
        self.open_ask = None;
    }

    /// How it stands, if that was not reported yet.
    pub(super) fn unreported(&mut self) -> Option<LeaseCounts> {
        let counts = self.account.counts();
        (self.reported.replace(counts) != Some(counts)).then_some(counts)
    }

    /// What is to be asked for now: what the first who waits lacks, or more before somebody does.
    pub(super) fn due_ask(
        &mut self,
        key: &LeaseKey,
        numbers: &mut u64,
        now: Micros,
    ) -> Option<LeaseRequest> {
        if now < self.free_until {
            return None;
        }
        let idle = self.account.counts().idle();
        let mut waiting = self.waiting.iter().filter(|(one, ..)| !self.empty.contains_key(one));
        let first = waiting.next().map(|(waiter, amount, _)| (*waiter, *amount));
        let needed: Amount = self.waiting.iter().map(|(_, amount, _)| *amount).sum();
        let mut pace = self.pace.now(now);
        if first.is_none() && (pace.is_zero() || idle >= pace) {
            return None;
        }
        let for_all = needed.over(SLICE_SECONDS) + Amount::new(1);
        pace = if first.is_some() { pace.max(for_all) } else { pace };
        let waiter = first.map(|(waiter, _)| waiter);
        let number = match self.open_ask {
            Some((number, of, at)) if of == waiter => {
                if now.saturating_sub(at) < AGAIN {
                    return None;
                }
                number
            }
            _ => {
                *numbers += 1;
                self.last_ask = *numbers;
                *numbers
            }
        };
        self.open_ask = Some((number, waiter, now));
        let lacking = first.map_or(Amount::ZERO, |(_, amount)| amount.less(idle));
        Some(LeaseRequest { lease: key.clone(), lacking, pace, number })
    }
}

impl Pace {
    fn add(&mut self, amount: Amount, now: Micros) {
        self.turn(now);
        self.spent += amount;
    }

    fn now(&mut self, now: Micros) -> Amount {
        self.turn(now);
        self.last.max(self.spent.over(SPAN.whole_seconds()))
    }

    fn turn(&mut self, now: Micros) {
        let passed = now.saturating_sub(self.began);
        if passed < SPAN {
            return;
        }
        let is_next = passed < SPAN.saturating_mul(2);
        let spent = std::mem::take(&mut self.spent).over(SPAN.whole_seconds());
        self.last = if is_next { spent } else { Amount::ZERO };
        self.began = now;
    }
}
