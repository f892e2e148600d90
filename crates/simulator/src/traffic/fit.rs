//! What is typical of a trace, small enough to keep: its rate over time, how bursty it is, how
//! long its requests are and what their prompts share.

use super::Trace;
use super::reuse::{self, Shared};
use super::shape::{RateSeries, variation};
use crate::seconds::Seconds;

/// A model of traffic, to generate more of it (`generate`).
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// Length of a window.
    pub window: Seconds,
    /// Requests per second, window by window of a period that repeats: a day if the source is
    /// longer than two, else the whole source.
    pub rates: Vec<f64>,
    /// Standard deviation of the distance between requests over its mean, once the rate over time
    /// is taken out.
    pub variation: f64,
    /// Requests that were seen: lengths, reuse and patience are drawn together.
    pub samples: Vec<Sample>,
    /// Tokens of a block; zero where the source names no blocks.
    pub block_tokens: u32,
}

/// What one request was like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Tokens of its prompt.
    pub prompt: u32,
    /// Tokens that it generated.
    pub output: u32,
    /// Blocks of its prompt.
    pub blocks: u32,
    /// What it shared with requests before it.
    pub shared: Shared,
    /// How long after arrival its client hung up, if it did.
    pub patience: Option<Seconds>,
}

/// More are not kept: at 8192 the 99th percentile still rests on 80 of them.
const SAMPLES: usize = 8192;
/// Windows of a source shorter than two days. More would follow chance, fewer would miss the
/// rise of a busy quarter of an hour.
const WINDOWS: f64 = 100.0;
/// A window has at least so many requests in the mean: with 30 its rate is known to a fifth.
const REQUESTS: f64 = 30.0;
/// Windows of a day.
const OF_A_DAY: Seconds = Seconds(600.0);

/// Fits a trace. Mask its gaps first.
pub fn fit(trace: &Trace) -> Fitted {
    let (window, rates) = rates(trace);
    let shared = reuse::shared(trace);
    let count = trace.requests.len();
    let sampled = count.min(SAMPLES);
    // Evenly over the trace, so that all times of it are there.
    let samples = (0..sampled).map(|i| i * count / sampled).map(|i| {
        let request = &trace.requests[i];
        Sample {
            prompt: request.prompt,
            output: request.output,
            blocks: request.blocks.len() as u32,
            shared: shared[i],
            patience: request.patience,
        }
    });
    let variation = rescaled_variation(trace, window, &rates);
    let samples = samples.collect();
    Fitted { window, rates, variation, samples, block_tokens: trace.block_tokens }
}

/// Rates of the windows of one period. Where there is no data stands the mean of the rest.
fn rates(trace: &Trace) -> (Seconds, Vec<f64>) {
    let span = trace.span().max(Seconds(1e-3));
    let daily = span >= Seconds::DAY * 2.0;
    let (window, period) = if daily {
        (OF_A_DAY, (Seconds::DAY.get() / OF_A_DAY.get()) as usize)
    } else {
        let count = (trace.requests.len() as f64 / REQUESTS).floor().clamp(1.0, WINDOWS);
        (span / count, count as usize)
    };
    // The last request stands at the very end, so that rounding may lose the last window.
    let series = RateSeries::of_trace(trace, window * (1.0 - 1e-12));
    let mut sums = vec![(0.0, 0.0); period];
    for (place, rate) in series.rates.iter().enumerate() {
        if let Some(rate) = rate {
            let (sum, count) = &mut sums[place % period];
            *sum += rate;
            *count += 1.0;
        }
    }
    let (sum, count) = sums.iter().fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
    let mean = if count > 0.0 { sum / count } else { 0.0 };
    let of = |(sum, count): &(f64, f64)| if *count > 0.0 { sum / count } else { mean };
    (window, sums.iter().map(of).collect())
}

/// The variation of distances counted in expected requests instead of seconds: a rush hour is
/// then no burst.
fn rescaled_variation(trace: &Trace, window: Seconds, rates: &[f64]) -> f64 {
    // A quiet window must not stretch to nothing what little came in it.
    let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    let rate = |place: usize| rates[place % rates.len()].max(mean * 1e-3);
    let expected = |begin: f64, end: f64| {
        let (first, last) = ((begin / window.get()) as usize, (end / window.get()) as usize);
        (first..=last)
            .map(|place| {
                let from = begin.max(place as f64 * window.get());
                let to = end.min((place + 1) as f64 * window.get());
                (to - from).max(0.0) * rate(place)
            })
            .sum::<f64>()
    };
    let pairs = trace.requests.windows(2).map(|pair| (pair[0].at, pair[1].at));
    let known = pairs.filter(|(a, b)| trace.gap_within(*a, *b) == Seconds::ZERO);
    let distances: Vec<f64> = known.map(|(a, b)| expected(a.get(), b.get())).collect();
    variation(&distances).unwrap_or(1.0)
}
