//! Latencies in bounded room: buckets that grow with the value, each within 1 % of what it holds.

use hdrhistogram::Histogram as Buckets;
use serde::Serialize;

/// Digits that are kept of a value.
const DIGITS: u8 = 2;
/// Nanoseconds, 18 minutes. What took longer counts as this.
const LONGEST: u64 = 1 << 40;

/// Counted latencies.
#[derive(Clone, Debug)]
pub struct Histogram(Buckets<u64>);

/// What a histogram says, in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Summary {
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean_us: f64,
    /// Half are below.
    pub p50_us: f64,
    /// 90 % are below.
    pub p90_us: f64,
    /// 99 % are below.
    pub p99_us: f64,
    /// 99.9 % are below.
    pub p999_us: f64,
    /// The largest.
    pub max_us: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self(Buckets::new_with_bounds(1, LONGEST, DIGITS).expect("bounds that fit together"))
    }
}

impl Histogram {
    /// Counts one.
    pub fn record(&mut self, nanos: u64) {
        self.0.saturating_record(nanos);
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        self.0 += &other.0;
    }

    /// The value that this share of all is at most, in nanoseconds.
    pub fn quantile(&self, share: f64) -> u64 {
        self.0.value_at_quantile(share)
    }

    /// The usual quantiles.
    pub fn summary(&self) -> Summary {
        let at = |share| self.quantile(share) as f64 / 1e3;
        Summary {
            count: self.0.len(),
            mean_us: self.0.mean() / 1e3,
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: self.0.max() as f64 / 1e3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_core::quantile::nearest_rank;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_values(
            mut values in prop::collection::vec(0u64..10_000_000, 1..200),
            share in 0.01f64..1.0,
        ) {
            let (mut half, mut other) = (Histogram::default(), Histogram::default());
            for (place, value) in values.iter().enumerate() {
                if place % 2 == 0 { half.record(*value) } else { other.record(*value) }
            }
            half.add(&other);
            values.sort_unstable();
            let exact = nearest_rank(&values, share).unwrap();
            let shown = half.quantile(share);
            prop_assert!(shown >= exact && shown - exact <= exact / 100, "{shown} for {exact}");
        }
    }

    #[test]
    fn what_takes_too_long_counts_as_the_longest() {
        let mut histogram = Histogram::default();
        histogram.record(u64::MAX);
        assert_eq!(histogram.summary().count, 1);
        assert!(histogram.quantile(0.5) >= LONGEST);
    }
}
