//! How times are spread, fine enough to read a quantile from: four buckets per doubling.
//!
//! Bounds are the same in every process, so the spreads of several gateways can be added; a
//! quantile of a sum is true, a mean of quantiles is not.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// Below 256 us everything is one bucket: no engine is that quick.
const LEAST_BITS: u32 = 8;

/// Above 2^28 us (4.5 minutes) everything is one bucket: nobody waits that long.
const MOST_BITS: u32 = 28;

/// The one below, four for each doubling, the one above.
pub(super) const BUCKETS: usize = 4 * (MOST_BITS - LEAST_BITS) as usize + 2;

/// Counts of times by size. All threads add to it.
#[derive(Debug)]
pub(super) struct Spread([AtomicU32; BUCKETS]);

impl Default for Spread {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU32::new(0)))
    }
}

impl Spread {
    pub(super) fn add(&self, time: Duration) {
        self.0[bucket(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))].fetch_add(1, Relaxed);
    }

    pub(super) fn clear(&self) {
        self.0.iter().for_each(|count| count.store(0, Relaxed));
    }

    /// Adds its counts to those in `sum`.
    pub(super) fn add_to(&self, sum: &mut [u64; BUCKETS]) {
        for (sum, count) in sum.iter_mut().zip(&self.0) {
            *sum += u64::from(count.load(Relaxed));
        }
    }
}

/// The buckets that hold something, by their upper ends in microseconds.
pub(super) fn filled(counts: &[u64; BUCKETS]) -> Vec<(u64, u64)> {
    let with_ends = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    with_ends.map(|(bucket, count)| (upper(bucket), *count)).collect()
}

const fn bucket(micros: u64) -> usize {
    if micros <= 1 << LEAST_BITS {
        return 0;
    }
    // Upper ends belong to their bucket.
    let micros = micros - 1;
    let bits = micros.ilog2();
    if bits >= MOST_BITS {
        return BUCKETS - 1;
    }
    let quarter = (micros >> (bits - 2)) & 3;
    (4 * (bits - LEAST_BITS)) as usize + quarter as usize + 1
}

const fn upper(bucket: usize) -> u64 {
    if bucket == 0 {
        return 1 << LEAST_BITS;
    }
    // What is above the last end is said to be at twice that.
    if bucket == BUCKETS - 1 {
        return 1 << (MOST_BITS + 1);
    }
    let bits = LEAST_BITS + (bucket as u32 - 1) / 4;
    (1 << bits) + ((bucket as u64 - 1) % 4 + 1) * (1 << (bits - 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::quantile;
    use proptest::prelude::*;

    #[test]
    fn ends_rise_and_belong_to_their_bucket() {
        for at in 0..BUCKETS - 1 {
            assert!(upper(at) < upper(at + 1), "{at}");
            assert_eq!(bucket(upper(at)), at);
            assert_eq!(bucket(upper(at) + 1), at + 1);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    proptest! {
        #[test]
        fn a_quantile_is_at_most_a_quarter_too_much(
            mut micros in proptest::collection::vec(300_u64..100_000_000, 1..200),
            per_thousand in 1_u64..=1_000,
        ) {
            let spread = Spread::default();
            micros.iter().for_each(|micros| spread.add(Duration::from_micros(*micros)));
            let mut sum = [0; BUCKETS];
            spread.add_to(&mut sum);
            micros.sort_unstable();
            let rank = (micros.len() as u64 * per_thousand).div_ceil(1_000).max(1);
            let exact = micros[rank as usize - 1];
            let reported = quantile(&filled(&sum), per_thousand).unwrap().as_micros() as u64;
            prop_assert!(exact <= reported && reported * 4 <= exact * 5 + 4, "{} {}", exact, reported);
        }
    }
}
