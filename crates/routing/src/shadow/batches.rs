//! Sums over stretches of time, and what can be said of their means.
//!
//! Waits of requests that follow each other are alike, so single requests would make an interval far
//! too narrow. Batch means: requests are summed up by stretches of time, and stretches longer than
//! a queue's memory are nearly independent of each other.

use crate::policy::RoutingPolicy;
use std::collections::VecDeque;

/// Policies at once.
pub(super) const POLICIES: usize = RoutingPolicy::ALL.len();

/// The latest requests by stretches of time.
#[derive(Clone, Debug)]
pub(super) struct Batches {
    /// Seconds of a stretch.
    length: f64,
    /// In order; the last one is open.
    list: VecDeque<Batch>,
}

/// What came in one stretch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Batch {
    begins: f64,
    pub(super) requests: f64,
    pub(super) prompt_tokens: f64,
    /// By policy, the live one first.
    pub(super) first_seconds: [f64; POLICIES],
    pub(super) cached_tokens: [f64; POLICIES],
    /// First tokens that truly came, and their seconds.
    pub(super) firsts: f64,
    pub(super) actual_seconds: f64,
}

/// A mean and how far it may be off, 19 times of 20.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mean {
    pub(super) value: f64,
    /// `None` if there are too few stretches to say.
    pub(super) off: Option<f64>,
}

/// Stretches that are kept.
const MOST: usize = 64;

/// They begin this short and double whenever there are too many, so that something can be said
/// after half a minute and most of an hour is kept in the end.
const SHORTEST: f64 = 4.0;
const LONGEST: f64 = 64.0;

/// Fewer say nothing about their spread.
const FEWEST: usize = 8;

impl Batches {
    pub(super) const fn new() -> Self {
        Self { length: SHORTEST, list: VecDeque::new() }
    }

    /// The stretch of this moment.
    pub(super) fn at(&mut self, now: f64) -> &mut Batch {
        let over = self.list.back().is_none_or(|last| now >= last.begins + self.length);
        if over {
            self.make_room();
            self.list.push_back(Batch { begins: now, ..Batch::default() });
        }
        self.list.back_mut().expect("one was pushed if there was none")
    }

    /// All stretches in one.
    pub(super) fn total(&self) -> Batch {
        self.list.iter().fold(Batch::default(), |sum, one| sum.and(one))
    }

    /// Seconds from the first stretch to now.
    pub(super) fn seconds(&self, now: f64) -> f64 {
        self.list.front().map_or(0.0, |first| now - first.begins)
    }

    /// Mean over requests of what the live policy took longer than another one.
    pub(super) fn regret(&self, policy: usize) -> Mean {
        let total = self.total();
        let extra = |batch: &Batch| batch.first_seconds[0] - batch.first_seconds[policy];
        let value = extra(&total) / total.requests.max(1.0);
        let filled = self.list.iter().filter(|batch| batch.requests > 0.0);
        // A mean over stretches of unequal counts: the usual variance of a ratio of two sums.
        let (count, squares) = filled.fold((0, 0.0), |(count, sum), batch| {
            let residual = extra(batch) - value * batch.requests;
            (count + 1, sum + residual * residual)
        });
        let off = (count >= FEWEST).then(|| {
            let many = count as f64;
            let variance = squares * many / (many - 1.0) / (total.requests * total.requests);
            student(many - 1.0) * variance.sqrt()
        });
        Mean { value, off }
    }

    fn make_room(&mut self) {
        if self.list.len() < MOST {
            return;
        }
        if self.length >= LONGEST {
            self.list.pop_front();
            return;
        }
        self.length *= 2.0;
        let pairs: Vec<Batch> = self.list.drain(..).collect();
        self.list.extend(pairs.chunks(2).map(|pair| match pair {
            [one, other] => one.and(other),
            _ => pair[0],
        }));
    }
}

impl Batch {
    fn and(&self, other: &Self) -> Self {
        let sum = |a: [f64; POLICIES], b: [f64; POLICIES]| std::array::from_fn(|i| a[i] + b[i]);
        Self {
            begins: self.begins,
            requests: self.requests + other.requests,
            prompt_tokens: self.prompt_tokens + other.prompt_tokens,
            first_seconds: sum(self.first_seconds, other.first_seconds),
            cached_tokens: sum(self.cached_tokens, other.cached_tokens),
            firsts: self.firsts + other.firsts,
            actual_seconds: self.actual_seconds + other.actual_seconds,
        }
    }
}

/// Student's 97.5 % quantile, by the first terms of its series around the normal one (Abramowitz
/// and Stegun 26.7.5); right to a hundredth from 7 degrees of freedom on.
fn student(freedom: f64) -> f64 {
    const NORMAL: f64 = 1.959_964;
    let cubed = NORMAL.powi(3);
    let first = (cubed + NORMAL) / 4.0;
    let second = (5.0 * NORMAL.powi(5) + 16.0 * cubed + 3.0 * NORMAL) / 96.0;
    NORMAL + first / freedom + second / (freedom * freedom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::score;

    fn chance(number: u64) -> f64 {
        score(number, 5) as f64 / u64::MAX as f64 - 0.5
    }

    #[test]
    fn students_quantiles_are_those_of_the_tables() {
        for (freedom, quantile) in [(7.0, 2.365), (10.0, 2.228), (30.0, 2.042), (63.0, 1.998)] {
            assert!((student(freedom) - quantile).abs() < 0.01, "{freedom}");
        }
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        let mut held = 0;
        for run in 0..200 {
            let mut batches = Batches::new();
            for second in 0..400 {
                let batch = batches.at(f64::from(second));
                batch.requests += 1.0;
                // Neighbours share most of their chance: a mean of 0.1 and a slow wave.
                let wave = chance(run * 1_000 + second as u64 / 3);
                batch.first_seconds[0] += 0.1 + wave;
            }
            let mean = batches.regret(1);
            held += usize::from((mean.value - 0.1).abs() <= mean.off.unwrap());
        }
        // 95 % of 200 are 190, standard deviation 3; a little less, because waves cross stretches.
        assert!((178..=200).contains(&held), "{held}");
    }

    #[test]
    fn there_are_never_more_than_so_many_and_the_oldest_go() {
        let mut batches = Batches::new();
        for second in 0..20_000 {
            batches.at(f64::from(second)).requests += 1.0;
            assert!(batches.list.len() <= MOST);
        }
        let remembered = batches.total().requests;
        // 64 stretches of 64 s.
        assert!((3_900.0..=4_100.0).contains(&remembered), "{remembered}");
        assert_eq!(batches.seconds(20_000.0), remembered);
    }

    #[test]
    fn too_few_stretches_say_nothing_about_their_spread() {
        let mut batches = Batches::new();
        for second in 0..20 {
            batches.at(f64::from(second)).requests += 1.0;
        }
        assert_eq!(batches.regret(1), Mean { value: 0.0, off: None });
    }
}
