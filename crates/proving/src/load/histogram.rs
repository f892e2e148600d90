//! Latencies in bounded room: buckets that grow with the value, each within 1.6 % of what it holds.

use serde::Serialize;

/// Sub-buckets per power of two: 1/64 is 1.6 %.
const PARTS: usize = 64;
/// Powers of two above the first: up to 2^40 ns, 18 minutes.
const POWERS: usize = 35;

/// Counted latencies.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    most: u64,
}

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
        Self { counts: vec![0; PARTS * (POWERS + 1)], count: 0, sum: 0, most: 0 }
    }
}

impl Histogram {
    /// Counts one.
    pub fn record(&mut self, nanos: u64) {
        let last = self.counts.len() - 1;
        self.counts[bucket(nanos).min(last)] += 1;
        self.count += 1;
        self.sum += u128::from(nanos);
        self.most = self.most.max(nanos);
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        for (own, others) in self.counts.iter_mut().zip(&other.counts) {
            *own += others;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.most = self.most.max(other.most);
    }

    /// The value that this share of all is at most, in nanoseconds.
    pub fn quantile(&self, share: f64) -> u64 {
        let rank = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return top(index).min(self.most);
            }
        }
        self.most
    }

    /// The usual quantiles.
    pub fn summary(&self) -> Summary {
        let at = |share| self.quantile(share) as f64 / 1e3;
        Summary {
            count: self.count,
            mean_us: self.sum as f64 / 1e3 / self.count.max(1) as f64,
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: self.most as f64 / 1e3,
        }
    }
}

/// Below 64 each value has its bucket; above, each power of two has 64.
fn bucket(value: u64) -> usize {
    let power = (value | (PARTS as u64 - 1)).ilog2() as usize - (PARTS.ilog2() as usize - 1);
    if power == 0 {
        return value as usize;
    }
    let part = (value >> (power - 1)) as usize - PARTS;
    power * PARTS + part
}

/// The largest value of a bucket.
fn top(index: usize) -> u64 {
    let (power, part) = (index / PARTS, index % PARTS);
    if power == 0 {
        return part as u64;
    }
    (((PARTS + part) as u64 + 1) << (power - 1)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bucket_is_within_a_64th_of_its_values(value in 0u64..(1 << 40)) {
            let top = top(bucket(value));
            prop_assert!(top >= value);
            prop_assert!(top - value <= value / 64);
        }

        #[test]
        fn quantiles_are_those_of_the_sorted_values(
            mut values in prop::collection::vec(0u64..10_000_000, 1..200),
            share in 0.01f64..1.0,
        ) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|value| histogram.record(*value));
            values.sort_unstable();
            let exact = values[((values.len() as f64 * share).ceil() as usize).max(1) - 1];
            let said = histogram.quantile(share);
            prop_assert!(said >= exact && said - exact <= exact / 64, "{said} for {exact}");
        }
    }
}
