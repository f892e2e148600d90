//! Times as a gateway's histograms count them and Prometheus tells percentiles of them.

use crate::seconds::Seconds;
use std::collections::VecDeque;

/// Where the buckets of the gateway's histograms end: to the first token, in seconds.
pub(super) const FIRST: [f64; 16] =
    [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

/// The same for each further token.
pub(super) const PER_TOKEN: [f64; 13] =
    [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5];

/// Rates are taken over this long.
const OVER: Seconds = Seconds(30.0);

/// Counts by bucket, and what they were at past scrapes.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    uppers: &'static [f64],
    /// The last is of what is above all bounds.
    counts: Vec<u64>,
    past: VecDeque<(Seconds, Vec<u64>)>,
}

impl Histogram {
    pub(super) fn new(uppers: &'static [f64]) -> Self {
        Self { uppers, counts: vec![0; uppers.len() + 1], past: VecDeque::new() }
    }

    pub(super) fn add(&mut self, seconds: f64) {
        let place = self.uppers.iter().position(|upper| seconds <= *upper);
        self.counts[place.unwrap_or(self.uppers.len())] += 1;
    }

    /// Scraped now: the 90th percentile of the last half minute. Not a number where nothing was counted in it, and
    /// nothing where nothing ever was.
    pub(super) fn p90(&mut self, now: Seconds) -> Option<f64> {
        if self.counts.iter().all(|count| *count == 0) {
            return None;
        }
        self.past.push_back((now, self.counts.clone()));
        while self.past.front().is_some_and(|(at, _)| *at <= now - OVER) {
            self.past.pop_front();
        }
        let (_, before) = self.past.front()?;
        let grown = |place: usize| (self.counts[place] - before[place]) as f64;
        let all: f64 = (0..self.counts.len()).map(grown).sum();
        if all <= 0.0 {
            return Some(f64::NAN);
        }
        let (mut rank, mut lower) = (0.9 * all, 0.0);
        for (place, upper) in self.uppers.iter().enumerate() {
            let inside = grown(place);
            if rank <= inside {
                return Some(lower + (upper - lower) * rank / inside);
            }
            rank -= inside;
            lower = *upper;
        }
        Some(lower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_lies_on_a_line_through_its_bucket() {
        let mut all = Histogram::new(&PER_TOKEN);
        assert_eq!(all.p90(Seconds(0.0)), None, "nothing was ever counted");
        all.add(0.03);
        assert!(all.p90(Seconds(5.0)).is_some_and(f64::is_nan), "one scrape tells no rate");
        (0..10).for_each(|_| all.add(0.03));
        let p90 = all.p90(Seconds(10.0)).unwrap();
        assert!((p90 - 0.0475).abs() < 1e-9, "{p90}");
        // Half a minute later these are forgotten.
        (0..9).for_each(|_| all.add(0.03));
        assert!(all.p90(Seconds(40.0)).is_some_and(f64::is_nan));
        all.add(9.0);
        let p90 = all.p90(Seconds(45.0)).unwrap();
        assert!((p90 - 2.5).abs() < 1e-9, "above all bounds it is the last one: {p90}");
    }
}
