//! What fixed capacities would have missed of the work so far: the least that would have been enough is what to have
//! where bursts are over before a replica asked for now would serve.
//!
//! Each capacity of a ladder has a queue of its own, and what waits in it for too long is counted. So this knows how
//! long bursts are, how often they come and how many of them may be missed, without a word for any of it.

use super::short;
use std::sync::LazyLock;

/// The work so far against every capacity of the ladder.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hindsight {
    /// All work, fading.
    total: f64,
    /// What waits at each capacity, in replica-seconds, and what missed there, fading.
    rungs: [Rung; RUNGS],
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Rung {
    waits: f64,
    missed: f64,
}

/// From a fifth of a replica to a thousand, each a fifth more than the one before.
const RUNGS: usize = 48;
const LOWEST: f64 = 0.2;
const STEP: f64 = 1.2;
/// Bursts are forgotten by half in so long.
const HALF_LIFE_S: f64 = 3.0 * 3_600.0;
/// The busiest seconds of a look are so many.
const BUSIEST_S: f64 = 5.0;
/// Clients hang up: nothing waits for longer.
const PATIENCE_S: f64 = 30.0;

impl Default for Hindsight {
    fn default() -> Self {
        Self { total: 0.0, rungs: [Rung::default(); RUNGS] }
    }
}

/// The capacities of the ladder.
static LADDER: LazyLock<[f64; RUNGS]> =
    LazyLock::new(|| std::array::from_fn(|rung| LOWEST * STEP.powi(rung as i32)));

impl Hindsight {
    /// Work came at this rate for so long, its busiest seconds at that one; what waits for longer than `slack_s` misses.
    pub(crate) fn learn(&mut self, work: f64, burst: f64, seconds: f64, slack_s: f64) {
        let left = (-seconds / HALF_LIFE_S * std::f64::consts::LN_2).exp();
        self.total = short(self.total * left + work * seconds);
        let busy_s = if work > 0.0 { BUSIEST_S.min(seconds * work / burst.max(work)) } else { 0.0 };
        let rest_s = seconds - busy_s;
        let rest =
            if rest_s > 1e-3 { (work * seconds - burst.max(work) * busy_s) / rest_s } else { 0.0 };
        for (rung, capacity) in self.rungs.iter_mut().zip(LADDER.iter()) {
            rung.missed *= left;
            for (rate, for_s) in [(burst.max(work), busy_s), (rest.max(0.0), rest_s)] {
                rung.step(*capacity, rate, for_s, slack_s);
            }
            *rung = Rung { waits: short(rung.waits), missed: short(rung.missed) };
        }
    }

    /// The least capacity that would have missed no more than this share of the work.
    pub(crate) fn enough(&self, allowed: f64) -> f64 {
        let may_miss = allowed * self.total;
        if self.total <= 0.0 {
            return 0.0;
        }
        let Some(first) = self.rungs.iter().position(|rung| rung.missed <= may_miss) else {
            return LADDER[RUNGS - 1];
        };
        if first == 0 {
            return 0.0;
        }
        // Between two rungs misses fall about evenly.
        let (more, less) = (self.rungs[first - 1].missed, self.rungs[first].missed);
        let part = ((more - may_miss) / (more - less)).clamp(0.0, 1.0);
        LADDER[first - 1] * STEP.powf(part)
    }
}

/// How many numbers it is.
pub(crate) const NUMBERS: usize = 1 + 2 * RUNGS;

impl Hindsight {
    /// As numbers: all work, and then what missed and what waits at each capacity.
    pub(crate) fn numbers(&self) -> [f64; NUMBERS] {
        std::array::from_fn(|n| match n {
            0 => self.total,
            n if n <= RUNGS => self.rungs[n - 1].missed,
            n => self.rungs[n - 1 - RUNGS].waits,
        })
    }

    /// The same back; `None` if it cannot be.
    pub(crate) fn restored(numbers: &[f64; NUMBERS]) -> Option<Self> {
        // No more can have missed than came, but for rounding.
        let most = numbers[0] * 1.001 + 1e-3;
        let possible = numbers.iter().all(|number| (0.0..1e15).contains(number))
            && numbers[1..=RUNGS].iter().all(|missed| *missed <= most);
        let rung =
            |n: usize| Rung { missed: short(numbers[1 + n]), waits: short(numbers[1 + RUNGS + n]) };
        possible.then(|| Self { total: short(numbers[0]), rungs: std::array::from_fn(rung) })
    }
}

impl Rung {
    fn step(&mut self, capacity: f64, work: f64, seconds: f64, slack_s: f64) {
        if seconds <= 0.0 {
            return;
        }
        let before = self.waits;
        let after = (before + (work - capacity) * seconds).clamp(0.0, PATIENCE_S * capacity);
        self.waits = after;
        let limit = slack_s * capacity;
        let (low, high) = if before < after { (before, after) } else { (after, before) };
        let late = if high <= limit {
            0.0
        } else if low >= limit {
            1.0
        } else {
            (high - limit) / (high - low)
        };
        self.missed += late * work * seconds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every five minutes a burst of so much for a quarter of a minute, and else next to nothing.
    fn bursts(hindsight: &mut Hindsight, most: f64, minutes: u32) {
        for tick in 0..4 * minutes {
            let work = if tick.is_multiple_of(20) { most } else { 0.1 };
            hindsight.learn(work, work, 15.0, 3.0);
        }
    }

    #[test]
    fn what_would_have_been_enough_is_less_than_a_burst_by_what_may_wait() {
        let mut hindsight = Hindsight::default();
        assert_eq!(hindsight.enough(0.01), 0.0);
        bursts(&mut hindsight, 12.0, 60);
        // Twelve for 15 s are done in 18 s by ten.
        let enough = hindsight.enough(0.01);
        assert!((9.5..11.5).contains(&enough), "{enough}");
        // Where half may miss, fewer do; and where work is steady, as many as it is.
        assert!(hindsight.enough(0.5) < enough);
        let mut steady = Hindsight::default();
        for _ in 0..240 {
            steady.learn(7.0, 7.0, 15.0, 3.0);
        }
        assert!((7.0..8.1).contains(&steady.enough(0.01)), "{}", steady.enough(0.01));
    }

    #[test]
    fn the_busiest_seconds_count_as_what_they_were() {
        let mut even = Hindsight::default();
        let mut uneven = Hindsight::default();
        for _ in 0..240 {
            even.learn(6.0, 6.0, 15.0, 1.0);
            uneven.learn(6.0, 15.0, 15.0, 1.0);
        }
        assert!(uneven.enough(0.01) > 1.3 * even.enough(0.01));
    }

    #[test]
    fn bursts_are_forgotten_in_hours() {
        let mut hindsight = Hindsight::default();
        bursts(&mut hindsight, 12.0, 60);
        bursts(&mut hindsight, 3.0, 24 * 60);
        let enough = hindsight.enough(0.01);
        assert!(enough < 4.0, "{enough}");
    }

    #[test]
    fn it_is_handed_on_and_what_cannot_be_is_refused() {
        let mut hindsight = Hindsight::default();
        bursts(&mut hindsight, 12.0, 61);
        let numbers = hindsight.numbers();
        assert_eq!(Hindsight::restored(&numbers), Some(hindsight));
        for bad in [f64::NAN, f64::INFINITY, -1.0] {
            let mut broken = numbers;
            broken[60] = bad;
            assert_eq!(Hindsight::restored(&broken), None);
        }
        let mut more = numbers;
        more[RUNGS] = 2.0 * more[0];
        assert_eq!(Hindsight::restored(&more), None, "more missed than came");
    }

    #[test]
    fn no_work_at_all_and_far_too_much_do_no_harm() {
        let mut hindsight = Hindsight::default();
        hindsight.learn(0.0, 0.0, 15.0, 3.0);
        hindsight.learn(1e9, 1e9, 60.0, 0.0);
        assert!(hindsight.enough(0.01) <= LADDER[RUNGS - 1]);
        assert!(hindsight.numbers().iter().all(|number| number.is_finite()));
    }
}
