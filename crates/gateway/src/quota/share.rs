//! One share of a limit, and who waits for permits of it.

use flyball_core::units::Micros;
use flyball_quota::{RateKind, RateShare, ShareCounts};
use std::collections::BTreeMap;

/// Until the operator has divided a limit that is new here, this part of it is used. It learns of a Tenant within a
/// second, and writes a gateway down within five.
const BEFORE_PART: u64 = 10;

/// One share.
#[derive(Debug, Default)]
pub(super) struct Share {
    share: RateShare,
    /// A count of our own, for as long as nobody has divided the limit.
    own: RateShare,
    is_divided: bool,
    /// Whether the count of our own is gone by.
    by_own: bool,
    waiting: BTreeMap<u64, u64>,
    reported: Option<ShareCounts>,
    /// Whether a request has asked for permits of it, or the operator has said something about it.
    is_used: bool,
}

impl Share {
    /// How it counts from now on: by itself up to the whole limit without an operator, up to a tenth of it until one has
    /// divided it, and then by what is granted.
    pub(super) fn follow(&mut self, limit: u64, alone: bool, confined: bool, now: Micros) {
        self.is_used = true;
        self.by_own = !self.is_divided;
        if self.by_own {
            let there = if alone { limit } else { (limit / BEFORE_PART).max(1) };
            let has = self.own.counts(now).permits();
            // Of two limits in turn the lower one holds as soon as enough is free.
            if has < there {
                let granted = self.own.counts(now).granted;
                self.own.grant(granted + there - has);
            } else if has > there {
                let returned = self.own.counts(now).returned;
                self.own.give_back(returned + has - there, now);
            }
        }
        self.share.confine(confined);
    }

    /// How long until so many are free without more being granted.
    pub(super) fn free_in(&mut self, permits: u64, now: Micros) -> Option<Micros> {
        self.counted().until_free(permits, now)
    }

    /// Permits that are free, and how long until all are that this gateway has.
    pub(super) fn left(&mut self, now: Micros) -> (u64, Micros) {
        let share = self.counted();
        let counts = share.counts(now);
        (counts.free(), share.until_unused(now))
    }

    /// Takes permits that are free. Whether they are of the count of our own.
    pub(super) fn take(&mut self, kind: RateKind, permits: u64, now: Micros) -> bool {
        let own = self.by_own;
        let share = self.counted();
        let taken = match kind {
            RateKind::Concurrency => share.begin(now),
            // Output is counted when it is over; whoever begins needs a permit that is free and takes none.
            RateKind::OutputTokens => Ok(()),
            RateKind::Requests | RateKind::InputTokens => share.take(permits, now),
        };
        debug_assert!(taken.is_ok(), "it was looked at before");
        own
    }

    /// A request is over that took so many at that moment and needed so many.
    pub(super) fn settle(
        &mut self,
        kind: RateKind,
        (taken, at): (u64, Micros),
        used: u64,
        own: bool,
        now: Micros,
    ) {
        let share = if own { &mut self.own } else { &mut self.share };
        match kind {
            RateKind::Concurrency => share.end(),
            RateKind::OutputTokens => share.add(used, now),
            RateKind::Requests => {}
            RateKind::InputTokens if used < taken => share.take_back(taken - used, at),
            RateKind::InputTokens => share.add(used - taken, now),
        }
    }

    pub(super) fn wait(&mut self, waiter: u64, permits: u64, now: Micros) {
        if self.free_in(permits, now) != Some(Micros::ZERO) {
            self.waiting.insert(waiter, permits);
            self.share.wait_for(self.waiting.values().sum());
        }
    }

    pub(super) fn leave(&mut self, waiter: u64) {
        if self.waiting.remove(&waiter).is_some() {
            self.share.wait_for(self.waiting.values().sum());
        }
    }

    pub(super) fn grant(&mut self, granted: u64) {
        (self.is_used, self.is_divided) = (true, true);
        self.share.grant(granted);
    }

    pub(super) fn give_back(&mut self, returned: u64, now: Micros) {
        (self.is_used, self.is_divided) = (true, true);
        self.share.give_back(returned, now);
    }

    pub(super) const fn is_used(&self) -> bool {
        self.is_used
    }

    pub(super) const fn forget_reported(&mut self) {
        self.reported = None;
    }

    /// How it stands, if that was not reported yet.
    pub(super) fn unreported(&mut self, now: Micros) -> Option<ShareCounts> {
        let counts = self.share.counts(now);
        (self.reported.replace(counts) != Some(counts)).then_some(counts)
    }

    const fn counted(&mut self) -> &mut RateShare {
        if self.by_own { &mut self.own } else { &mut self.share }
    }
}
