//! No replicas at all while nobody uses a model.
//!
//! Waking takes a cold start, so a model sleeps only when it is expected to stay idle for longer
//! than the start costs. Only a request wakes it: nothing else is known of a model that serves
//! nothing.

use flyball_core::units::Timestamp;

/// How long a model was idle, now and before.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Idle {
    since: Option<Timestamp>,
    /// The last idle times that ended, in seconds; a ring.
    past_s: Vec<f32>,
    next: usize,
}

/// Shorter pauses than this are gaps between requests, not idleness.
const PAUSE_S: f64 = 60.0;

impl Idle {
    /// The last so many idle times are remembered.
    pub(crate) const PAST: usize = 32;

    /// Idle times that ended, the oldest first.
    pub(crate) fn past_s(&self) -> impl Iterator<Item = f64> {
        let (newer, older) = self.past_s.split_at(self.next.min(self.past_s.len()));
        older.iter().chain(newer).map(|past| f64::from(*past))
    }

    /// Since when it is idle, if it is.
    pub(crate) const fn since(&self) -> Option<Timestamp> {
        self.since
    }

    /// Replaces them.
    pub(crate) fn restore(&mut self, since: Option<Timestamp>, past_s: &[f64]) {
        self.since = since;
        self.past_s = past_s.iter().map(|past| *past as f32).take(Self::PAST).collect();
        self.next = self.past_s.len() % Self::PAST;
    }

    /// Learns whether the model is idle now.
    pub(crate) fn learn(&mut self, idle: bool, now: Timestamp) {
        match (idle, self.since) {
            (true, None) => self.since = Some(now),
            (false, Some(since)) => {
                let length_s = now.since(since).map_or(0.0, |time| time.as_seconds());
                self.since = None;
                if length_s < PAUSE_S {
                    return;
                }
                if self.past_s.len() < Self::PAST {
                    self.past_s.push(length_s as f32);
                } else {
                    self.past_s[self.next] = length_s as f32;
                }
                self.next = (self.next + 1) % Self::PAST;
            }
            _ => {}
        }
    }

    /// Whether the rest of this idle time is expected to last longer than `break_even_s`.
    ///
    /// With a past to go by: the mean of what was left of those idle times that lasted as long as
    /// this one has. Without: once it has lasted that long itself, which costs at most twice what
    /// knowing the end would have (the ski-rental rule).
    pub(crate) fn may_sleep(&self, now: Timestamp, break_even_s: f64) -> bool {
        let Some(since) = self.since else { return false };
        let so_far = now.since(since).map_or(0.0, |time| time.as_seconds());
        if so_far < PAUSE_S {
            return false;
        }
        let longer = self.past_s.iter().map(|past| f64::from(*past)).filter(|past| *past > so_far);
        let (count, left) =
            longer.fold((0_u32, 0.0), |(count, left), past| (count + 1, left + past - so_far));
        // Five like this one are a past to go by.
        if count >= 5 { left / f64::from(count) > break_even_s } else { so_far >= break_even_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_core::testing::at;

    #[test]
    fn without_a_past_it_sleeps_after_the_break_even_time() {
        let mut idle = Idle::default();
        idle.learn(true, at(100));
        assert!(!idle.may_sleep(at(399), 300.0));
        assert!(idle.may_sleep(at(400), 300.0));
        idle.learn(false, at(401));
        assert!(!idle.may_sleep(at(900), 300.0));
    }

    #[test]
    fn what_was_is_told_from_the_oldest_on_and_restored_in_that_order() {
        let mut idle = Idle::default();
        for n in 0..40 {
            idle.learn(true, at(n * 10_000));
            idle.learn(false, at(n * 10_000 + 100 + n));
        }
        let past: Vec<f64> = idle.past_s().collect();
        assert_eq!((past.len(), past[0], past[31]), (Idle::PAST, 108.0, 139.0));
        let mut other = Idle::default();
        other.restore(None, &past);
        idle.learn(true, at(900_000));
        other.learn(true, at(900_000));
        idle.learn(false, at(900_500));
        other.learn(false, at(900_500));
        assert!(idle.past_s().eq(other.past_s()), "the oldest goes first");
    }

    #[test]
    fn a_past_of_long_nights_lets_it_sleep_early_and_one_of_short_pauses_keeps_it_awake() {
        let past = |length: u64| {
            let mut idle = Idle::default();
            for n in 0..8 {
                idle.learn(true, at(n * 100_000));
                idle.learn(false, at(n * 100_000 + length));
            }
            idle.learn(true, at(1_000_000));
            idle
        };
        assert!(past(30_000).may_sleep(at(1_000_060), 300.0));
        // Of 320 s, 220 are left after 100: not worth a start of 300.
        assert!(!past(320).may_sleep(at(1_000_100), 300.0));
    }
}
