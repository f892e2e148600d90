//! How fast a queue moves while somebody waits in it.

use flyball_routing::fair::Cost;
use std::time::{Duration, Instant};

/// Turns are counted for so long before they say something.
const SAMPLE: Duration = Duration::from_millis(500);

/// How fast turns come, in cost per second. Measured only while somebody waits: at other times it
/// says what is asked for and not what the engines can do.
#[derive(Debug, Default)]
pub(super) struct Pace {
    since: Option<Instant>,
    cost: u64,
    per_second: Option<u64>,
}

impl Pace {
    /// A turn of so much came while others waited.
    pub(super) fn turn(&mut self, cost: Cost, now: Instant) {
        let since = *self.since.get_or_insert(now);
        self.cost = self.cost.saturating_add(cost.0);
        self.sample(since, now);
    }

    /// Nobody waits any more.
    pub(super) fn pause(&mut self) {
        (self.since, self.cost) = (None, 0);
    }

    /// How long so much takes; `None` if nobody has waited yet.
    pub(super) fn time_of(&self, cost: Cost) -> Option<Duration> {
        let per_second = self.per_second?.max(1);
        let millis = u128::from(cost.0) * 1_000 / u128::from(per_second);
        Some(Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX)))
    }

    fn sample(&mut self, since: Instant, now: Instant) {
        let took = now.saturating_duration_since(since);
        if took < SAMPLE {
            return;
        }
        let sample = u128::from(self.cost) * 1_000 / took.as_millis().max(1);
        let sample = u64::try_from(sample).unwrap_or(u64::MAX);
        // A quarter each: a second or two to follow a change.
        self.per_second =
            Some(self.per_second.map_or(sample, |before| before / 4 * 3 + sample / 4));
        (self.since, self.cost) = (Some(now), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_was_done_while_somebody_waited() {
        let start = Instant::now();
        let mut pace = Pace::default();
        assert_eq!(pace.time_of(Cost(1)), None);
        for turn in 0..=100 {
            pace.turn(Cost(100), start + Duration::from_millis(20 * turn));
        }
        // 100 each 20 ms: 5,000 a second.
        let time = pace.time_of(Cost(5_000)).unwrap().as_millis();
        assert!((950..=1_050).contains(&time), "{time}");
        pace.pause();
        pace.turn(Cost(100), start + Duration::from_secs(3_600));
        assert_eq!(pace.time_of(Cost(5_000)).unwrap().as_millis(), time);
    }
}
