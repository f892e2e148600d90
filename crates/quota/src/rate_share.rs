//! A gateway's share of a rate.
//!
//! A limit is a number of permits. A permit is with one gateway at a time; one that was used is free again a minute
//! later, and only a free one is given back. So no minute, wherever it begins, sees a permit twice: whatever is lost
//! or late, and however permits move between gateways, a limit is never exceeded. No two clocks are compared.

use crate::window::SlidingWindow;
use flyball_core::units::Micros;

/// How a share stands. `granted` and `returned` never fall, so that messages may come late, twice or not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShareCounts {
    /// Permits that the operator has granted, ever.
    pub granted: u64,
    /// Permits that were given back, ever.
    pub returned: u64,
    /// Permits that are in use.
    pub used: u64,
    /// Permits that requests wait for.
    pub waiting: u64,
}

impl ShareCounts {
    /// Permits that are with the gateway.
    pub const fn permits(&self) -> u64 {
        self.granted.saturating_sub(self.returned)
    }

    /// Permits that it uses at most once the operator has been away for longer than a lease.
    pub const fn confined(&self) -> u64 {
        self.permits() / 2
    }

    /// Permits that it could give back.
    pub const fn free(&self) -> u64 {
        self.permits().saturating_sub(self.used)
    }

    /// Takes in what was reported; of two reports the one that says more of what never falls is the later one.
    pub(crate) fn merge(&mut self, other: &Self) {
        if (other.granted, other.returned) >= (self.granted, self.returned) {
            (self.used, self.waiting) = (other.used, other.waiting);
        }
        self.granted = self.granted.max(other.granted);
        self.returned = self.returned.max(other.returned);
    }
}

/// A share at its gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RateShare {
    granted: u64,
    returned: u64,
    /// Used within the last minute.
    window: SlidingWindow,
    /// Used by requests that run, of a limit of concurrency.
    running: u64,
    waiting: u64,
    /// Whether the operator has been away for longer than a lease.
    is_confined: bool,
}

impl RateShare {
    /// Uses permits, which are free again a minute later. If there are too few: how many are lacking.
    pub fn take(&mut self, permits: u64, now: Micros) -> Result<(), u64> {
        self.lacking(permits, now)?;
        self.window.add(permits, now);
        Ok(())
    }

    /// Uses a permit for as long as a request runs.
    pub fn begin(&mut self, now: Micros) -> Result<(), u64> {
        self.lacking(1, now)?;
        self.running += 1;
        Ok(())
    }

    /// A request that has [begun](Self::begin) is over.
    pub const fn end(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// Counts what was used beyond the permits that were taken: what a running answer came to is not known before.
    pub fn add(&mut self, permits: u64, now: Micros) {
        self.window.add(permits, now);
    }

    /// Fewer were needed than were taken at this moment.
    pub fn take_back(&mut self, permits: u64, taken: Micros) {
        self.window.take_back(permits, taken);
    }

    /// Requests wait for so many permits.
    pub const fn wait_for(&mut self, permits: u64) {
        self.waiting = permits;
    }

    /// The operator has granted so many in all.
    pub fn grant(&mut self, granted: u64) {
        self.granted = self.granted.max(granted);
    }

    /// Gives back what is free, until so many are given back in all.
    pub fn give_back(&mut self, returned: u64, now: Micros) {
        let more = returned.saturating_sub(self.returned);
        self.returned += self.counts(now).free().min(more);
    }

    /// Whether the operator has been away for longer than a lease: half of the permits are used until it is back, since
    /// it may give the other half to others by then.
    pub const fn confine(&mut self, is_confined: bool) {
        self.is_confined = is_confined;
    }

    /// How it stands.
    pub fn counts(&mut self, now: Micros) -> ShareCounts {
        ShareCounts {
            granted: self.granted,
            returned: self.returned,
            used: self.window.used(now).saturating_add(self.running),
            waiting: self.waiting,
        }
    }

    /// How long until so many are free without more being granted; `None` if there are not so many.
    pub fn until_free(&mut self, permits: u64, now: Micros) -> Option<Micros> {
        match self.lacking(permits, now) {
            Ok(()) => Some(Micros::ZERO),
            Err(lacking) => self.window.until_free(lacking, now),
        }
    }

    /// How long until none is in use, if no more are taken. Those of requests that run are in use for as long as they do.
    pub fn until_unused(&mut self, now: Micros) -> Micros {
        self.window.until_empty(now)
    }

    fn lacking(&mut self, permits: u64, now: Micros) -> Result<(), u64> {
        let counts = self.counts(now);
        let there = if self.is_confined { counts.confined() } else { counts.permits() };
        match permits.saturating_add(counts.used).saturating_sub(there) {
            0 => Ok(()),
            lacking => Err(lacking),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Micros {
        Micros::from_seconds(seconds)
    }

    #[test]
    fn a_permit_is_used_once_a_minute_and_given_back_only_if_it_is_free() {
        let mut share = RateShare::default();
        assert_eq!(share.take(1, at(0)), Err(1));
        share.grant(10);
        share.grant(4);
        assert_eq!(share.take(7, at(1)), Ok(()));
        assert_eq!(share.take(4, at(2)), Err(1));
        assert_eq!(share.until_free(4, at(2)), Some(Micros::from_millis(59_250)));
        share.give_back(1, at(2));
        share.give_back(1, at(2));
        assert_eq!(share.counts(at(2)).permits(), 9);
        share.give_back(100, at(2));
        assert_eq!(share.counts(at(2)).permits(), 7);
        assert_eq!(share.take(7, at(62)), Ok(()));
        assert_eq!(share.take(1, at(62)), Err(1));
    }

    #[test]
    fn a_running_request_has_its_permit_until_it_is_over() {
        let mut share = RateShare::default();
        share.grant(1);
        assert_eq!(share.begin(at(0)), Ok(()));
        assert_eq!(share.begin(at(600)), Err(1));
        share.give_back(1, at(600));
        assert_eq!(share.counts(at(600)).permits(), 1);
        share.end();
        assert_eq!(share.begin(at(600)), Ok(()));
    }

    #[test]
    fn a_share_that_is_confined_uses_half_of_its_permits() {
        let mut share = RateShare::default();
        share.grant(10);
        share.take(3, at(0)).unwrap();
        share.confine(true);
        assert_eq!(share.take(2, at(1)), Ok(()));
        assert_eq!(share.take(1, at(1)), Err(1));
        share.confine(false);
        assert_eq!(share.take(5, at(1)), Ok(()));
    }

    #[test]
    fn an_answer_that_came_to_more_than_was_taken_keeps_the_next_ones_waiting() {
        let mut share = RateShare::default();
        share.grant(100);
        share.take(50, at(0)).unwrap();
        share.add(70, at(1));
        assert_eq!(share.take(1, at(2)), Err(21));
        share.take_back(70, at(1));
        assert_eq!(share.take(50, at(2)), Ok(()));
    }
}
