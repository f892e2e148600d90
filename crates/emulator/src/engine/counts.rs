//! Sums since the start, for the metrics page.

/// Everything that is counted.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    /// Prompt tokens of requests whose first token is out.
    pub(crate) prompt_tokens: u64,
    pub(crate) generated_tokens: u64,
    /// Prompt tokens that were looked for in the cache, and found.
    pub(crate) queried_tokens: u64,
    pub(crate) hit_tokens: u64,
    pub(crate) preemptions: u64,
    /// Requests that ended early by themselves, by their limit, and by their client.
    pub(crate) stopped: u64,
    pub(crate) full: u64,
    pub(crate) aborted: u64,
    pub(crate) first_token: Histogram,
    pub(crate) between_tokens: Histogram,
    pub(crate) end_to_end: Histogram,
    pub(crate) queued: Histogram,
    pub(crate) prefill: Histogram,
    pub(crate) decode: Histogram,
}

/// Seconds, in the buckets that vLLM has for the first token, for the time between tokens, and for
/// whole requests (`vllm/v1/metrics/loggers.py`).
const FIRST: &[f64] = &[
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
];
const BETWEEN: &[f64] = &[
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
    40.0, 80.0,
];
const WHOLE: &[f64] = &[
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0,
    480.0, 960.0, 1920.0, 7680.0,
];

impl Default for Counts {
    fn default() -> Self {
        Self {
            prompt_tokens: 0,
            generated_tokens: 0,
            queried_tokens: 0,
            hit_tokens: 0,
            preemptions: 0,
            stopped: 0,
            full: 0,
            aborted: 0,
            first_token: Histogram::new(FIRST),
            between_tokens: Histogram::new(BETWEEN),
            end_to_end: Histogram::new(WHOLE),
            queued: Histogram::new(WHOLE),
            prefill: Histogram::new(WHOLE),
            decode: Histogram::new(WHOLE),
        }
    }
}

/// Observations by size.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    /// Upper ends, in seconds.
    pub(crate) bounds: &'static [f64],
    /// Observations in each bucket; the last has those above all ends.
    pub(crate) buckets: Vec<u64>,
    pub(crate) sum: f64,
}

impl Histogram {
    fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, buckets: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    pub(super) fn observe(&mut self, seconds: f64, times: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < seconds);
        self.buckets[bucket] += times;
        self.sum += seconds * times as f64;
    }

    /// How many there were.
    #[cfg(test)]
    pub(super) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observation_at_a_bound_is_below_it() {
        let mut histogram = Histogram::new(&[1.0, 2.0]);
        for seconds in [0.5, 1.0, 1.5, 9.0] {
            histogram.observe(seconds, 1);
        }
        assert_eq!((histogram.buckets.as_slice(), histogram.sum), (&[2, 1, 1][..], 12.0));
        assert_eq!(histogram.count(), 4);
    }
}
