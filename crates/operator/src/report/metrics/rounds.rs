//! How long rounds took, counted by size.

use flyball_telemetry::metrics::Sizes;

/// Seconds. Below is a look at a handful of models, above is a round that lost its tick.
const BOUNDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];

/// How many rounds took how long.
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    sum: f64,
    counts: [u64; BOUNDS.len() + 1],
}

impl Rounds {
    pub(super) fn add(&mut self, seconds: f64) {
        self.sum += seconds;
        self.counts[BOUNDS.partition_point(|bound| *bound < seconds)] += 1;
    }

    pub(super) fn sizes(&self) -> Sizes {
        let bounds = BOUNDS.into_iter().chain([f64::INFINITY]);
        Sizes { sum: self.sum, buckets: bounds.zip(self.counts).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_counted_where_its_length_belongs() {
        let mut rounds = Rounds::default();
        for seconds in [0.001, 0.005, 0.2, 99.0] {
            rounds.add(seconds);
        }
        let sizes = rounds.sizes();
        let counts: Vec<u64> = sizes.buckets.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1]);
        assert!((sizes.sum - 99.206).abs() < 1e-9, "{}", sizes.sum);
    }
}
