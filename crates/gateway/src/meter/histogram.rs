//! Counts by size, without a lock: one addition to a bucket, one to the sum.

use flyball_telemetry::metrics::Sizes;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Where one bucket ends and the next begins, and what one unit of a bound is on the page.
#[derive(Debug)]
pub(super) struct Bounds {
    /// Upper ends, rising.
    uppers: &'static [u64],
    /// How many of its units make one of the page.
    per_page_unit: f64,
}

const fn micros(uppers: &'static [u64]) -> Bounds {
    Bounds { uppers, per_page_unit: 1e6 }
}

// The first four are the bucket boundaries that OpenTelemetry's GenAI conventions advise.

/// Of whole requests.
pub(super) const DURATION: Bounds = micros(&[
    10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 640_000, 1_280_000, 2_560_000, 5_120_000,
    10_240_000, 20_480_000, 40_960_000, 81_920_000,
]);

/// To the first token.
pub(super) const FIRST: Bounds = micros(&[
    1_000, 5_000, 10_000, 20_000, 40_000, 60_000, 80_000, 100_000, 250_000, 500_000, 750_000,
    1_000_000, 2_500_000, 5_000_000, 7_500_000, 10_000_000,
]);

/// For each further token.
pub(super) const PER_TOKEN: Bounds = micros(&[
    10_000, 25_000, 50_000, 75_000, 100_000, 150_000, 200_000, 300_000, 400_000, 500_000, 750_000,
    1_000_000, 2_500_000,
]);

/// Of tokens: powers of four.
pub(super) const TOKENS: Bounds = Bounds {
    uppers: &[
        1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216,
        67_108_864,
    ],
    per_page_unit: 1.0,
};

/// To the choice of an engine: from a thirtieth of what a whole request should cost us to a body
/// that trickles in.
pub(super) const CHOSEN: Bounds = micros(&[
    10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 1_000_000, 10_000_000,
]);

/// For a turn: from not at all to a model that is woken from nothing.
pub(super) const WAIT: Bounds = micros(&[
    1_000,
    10_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
]);

/// From a hang-up to a free slot; 250 ms is what we promise for 99 of 100.
pub(super) const FREED: Bounds = micros(&[
    5_000, 10_000, 25_000, 50_000, 100_000, 175_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000, 30_000_000,
]);

/// A histogram that all threads add to.
#[derive(Debug)]
pub(super) struct Histogram {
    bounds: &'static Bounds,
    sum: AtomicU64,
    buckets: Box<[AtomicU64]>,
}

impl Histogram {
    pub(super) fn new(bounds: &'static Bounds) -> Self {
        let buckets = (0..=bounds.uppers.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, sum: AtomicU64::new(0), buckets }
    }

    /// Counts one of this many units.
    pub(super) fn add(&self, value: u64) {
        let bucket = self.bounds.uppers.partition_point(|upper| *upper < value);
        if let Some(count) = self.buckets.get(bucket) {
            count.fetch_add(1, Relaxed);
            self.sum.fetch_add(value, Relaxed);
        }
    }

    /// Counts one that took this long, in the unit of the bounds of times.
    pub(super) fn add_time(&self, took: Duration) {
        self.add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX >> 20));
    }

    /// As the page shows it.
    pub(super) fn sizes(&self) -> Sizes {
        let Bounds { uppers, per_page_unit } = self.bounds;
        #[expect(clippy::cast_precision_loss, reason = "bounds are small; sums lose below 2^-53")]
        let on_page = |units: u64| units as f64 / per_page_unit;
        let ends = uppers.iter().map(|upper| on_page(*upper)).chain([f64::INFINITY]);
        let counts = self.buckets.iter().map(|count| count.load(Relaxed));
        Sizes { sum: on_page(self.sum.load(Relaxed)), buckets: ends.zip(counts).collect() }
    }

    /// Whether anything was counted.
    pub(super) fn is_used(&self) -> bool {
        self.buckets.iter().any(|count| count.load(Relaxed) > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_counted_in_the_first_bucket_that_holds_it() {
        let histogram = Histogram::new(&DURATION);
        assert!(!histogram.is_used());
        for micros in [0, 10_000, 10_001, 81_920_000, 81_920_001] {
            histogram.add_time(Duration::from_micros(micros));
        }
        let sizes = histogram.sizes();
        let counts: Vec<u64> = sizes.buckets.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(sizes.buckets[0].0, 0.01);
        assert_eq!(sizes.buckets[14].0, f64::INFINITY);
        assert!((sizes.sum - 163.860_002).abs() < 1e-9, "{}", sizes.sum);
        assert!(histogram.is_used());
    }

    #[test]
    fn bounds_rise() {
        for bounds in [&DURATION, &FIRST, &PER_TOKEN, &TOKENS, &CHOSEN, &WAIT, &FREED] {
            assert!(bounds.uppers.is_sorted_by(|a, b| a < b), "{bounds:?}");
        }
    }
}
