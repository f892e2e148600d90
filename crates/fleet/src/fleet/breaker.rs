//! Keeps requests away from an engine that fails, and lets one try now and then.
//!
//! One number each for failures in a row, how often the breaker opened, and until when it is open.
//! Threads may race; the worst that follows is one attempt more or less.

use super::Millis;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Failures in a row that open the breaker. One may be the request's own fault, and two may come
/// from one broken client.
const FAILURES: u32 = 3;

/// The first pause; doubled each time up to [`LONGEST_MS`]. A process that died is restarted in
/// about a second.
const FIRST_MS: u64 = 1_000;
const LONGEST_MS: u64 = 30_000;

/// Between two tries when the pause is over.
const PROBE_MS: u64 = 250;

/// The breaker of one engine.
#[derive(Debug, Default)]
pub struct Breaker {
    failures: AtomicU32,
    opened: AtomicU32,
    closed_at: AtomicU64,
}

impl Breaker {
    /// Whether requests may come now. True when the pause is over: then [`Self::claim`] decides.
    pub fn allows(&self, now: Millis) -> bool {
        self.failures.load(Ordering::Relaxed) < FAILURES
            || now.0 >= self.closed_at.load(Ordering::Relaxed)
    }

    /// Whether this request may go; of those that come right after the pause, only one.
    pub fn claim(&self, now: Millis) -> bool {
        if self.failures.load(Ordering::Relaxed) < FAILURES {
            return true;
        }
        let closed_at = self.closed_at.load(Ordering::Relaxed);
        let (next, order) = (now.0 + PROBE_MS, Ordering::Relaxed);
        now.0 >= closed_at && self.closed_at.compare_exchange(closed_at, next, order, order).is_ok()
    }

    /// An answer came.
    pub fn succeeded(&self) {
        // Nearly always nothing to change, and a read is cheaper than a write that all threads see.
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
            self.opened.store(0, Ordering::Relaxed);
        }
    }

    /// No answer came. `sure` if the engine cannot be there at all: its port is closed. Returns
    /// whether that opened the breaker.
    pub fn failed(&self, now: Millis, sure: bool) -> bool {
        let more = if sure { FAILURES } else { 1 };
        let before = self.failures.fetch_add(more, Ordering::Relaxed);
        if before.saturating_add(more) < FAILURES {
            return false;
        }
        // Those that were under way when it opened say nothing new.
        if now.0 < self.closed_at.load(Ordering::Relaxed).saturating_sub(PROBE_MS) {
            return false;
        }
        let times = self.opened.fetch_add(1, Ordering::Relaxed).min(16);
        let pause = (FIRST_MS << times).min(LONGEST_MS);
        self.closed_at.store(now.0 + pause, Ordering::Relaxed);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_failures_open_it_and_one_try_after_the_pause_closes_it_or_not() {
        let breaker = Breaker::default();
        breaker.failed(Millis(0), false);
        breaker.succeeded();
        for _ in 0..3 {
            assert!(breaker.allows(Millis(10)));
            breaker.failed(Millis(10), false);
        }
        assert!(!breaker.allows(Millis(11)));
        assert!(!breaker.allows(Millis(1_009)));
        assert!(breaker.allows(Millis(1_010)));
        assert!(breaker.claim(Millis(1_010)));
        assert!(!breaker.claim(Millis(1_010)), "only one may try");
        breaker.failed(Millis(1_020), false);
        assert!(!breaker.allows(Millis(3_019)), "the second pause is twice as long");
        assert!(breaker.claim(Millis(3_020)));
        breaker.succeeded();
        assert!(breaker.claim(Millis(3_021)) && breaker.claim(Millis(3_021)));
    }

    #[test]
    fn a_closed_port_opens_it_at_once() {
        let breaker = Breaker::default();
        breaker.failed(Millis(5), true);
        assert!(!breaker.allows(Millis(6)));
    }
}
