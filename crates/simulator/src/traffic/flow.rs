//! Requests and work per step: what fluid replays run on.

use super::{Trace, TrafficRates};
use crate::chance::{Purpose, stream};
use crate::seconds::Seconds;
use rand_distr::{Distribution as _, Gamma};
use std::ops::Range;

/// Requests and work that arrive in each step.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowLoad {
    /// Length of a step.
    pub step: Seconds,
    /// Requests that arrive in each step.
    pub requests: Vec<f32>,
    /// Work that arrives in each step, in units of one mean request.
    pub work: Vec<f32>,
    /// Steps in which the source has no data, in order. Something plausible stands there, so that
    /// a replay goes on, and it is not scored.
    pub masked: Vec<Range<usize>>,
}

impl FlowLoad {
    /// Draws arrivals from the rates of clients.
    ///
    /// In a window of rate r and variation c, the count of a renewal process has mean r·t and
    /// variance r·c²·t once t is longer than the distance between requests. Clients are
    /// independent, so means and variances add up; a Gamma count has both and is never negative.
    /// Across a gap the rate goes straight from the window before it to the one after.
    pub fn from_rates(rates: &TrafficRates, step: Seconds, seed: u64) -> Self {
        let per_window = (rates.window.get() / step.get()).round().max(1.0) as usize;
        let windows = bridged(rates);
        let mut chance = stream(seed, Purpose::Arrivals, 0);
        let mut requests = Vec::with_capacity(windows.len() * per_window);
        for (rate, per_second) in windows {
            let (mean, variance) = (rate * step.get(), per_second * step.get());
            // Gamma of shape m²/v and scale v/m has mean m and variance v.
            let counts = Gamma::new(mean * mean / variance, variance / mean);
            let draws = (0..per_window).map(|_| match &counts {
                Ok(counts) => counts.sample(&mut chance) as f32,
                Err(_) => mean as f32,
            });
            requests.extend(draws);
        }
        let masked = rates.gaps.iter().map(|gap| gap.start * per_window..gap.end * per_window);
        Self { step, work: requests.clone(), requests, masked: masked.collect() }
    }

    /// Counts the requests of a trace. `cost` says what a request costs, in any unit.
    pub fn from_trace(trace: &Trace, step: Seconds, cost: impl Fn(u32, u32) -> f64) -> Self {
        let place = |at: Seconds| (at.get() / step.get()).max(0.0) as usize;
        let steps = trace.requests.last().map_or(0, |last| place(last.at) + 1);
        let (mut requests, mut work) = (vec![0.0; steps], vec![0.0; steps]);
        let total: f64 = trace.requests.iter().map(|one| cost(one.prompt, one.output)).sum();
        let mean = total / (trace.requests.len().max(1)) as f64;
        for request in &trace.requests {
            let at = place(request.at).min(steps - 1);
            requests[at] += 1.0;
            work[at] += (cost(request.prompt, request.output) / mean) as f32;
        }
        let masked = trace.gaps.iter().map(|gap| place(gap.start)..place(gap.end).min(steps));
        Self { step, requests, work, masked: masked.collect() }
    }

    /// The part between two steps, on its own.
    #[must_use]
    pub fn part(&self, steps: Range<usize>) -> Self {
        let clip = |gap: &Range<usize>| {
            let (start, end) = (gap.start.max(steps.start), gap.end.min(steps.end));
            (start < end).then(|| start - steps.start..end - steps.start)
        };
        Self {
            step: self.step,
            requests: self.requests[steps.clone()].to_vec(),
            work: self.work[steps.clone()].to_vec(),
            masked: self.masked.iter().filter_map(clip).collect(),
        }
    }

    /// Requests per second over all that is not masked.
    pub fn mean_rate(&self) -> f64 {
        let masked = self.mask();
        let seen = self.requests.iter().zip(&masked).filter(|(_, masked)| !**masked);
        let (count, steps) =
            seen.fold((0.0, 0.0), |(sum, n), (one, _)| (sum + f64::from(*one), n + 1.0));
        if steps > 0.0 { count / (steps * self.step.get()) } else { 0.0 }
    }

    /// Whether each step is masked.
    pub fn mask(&self) -> Vec<bool> {
        let mut mask = vec![false; self.requests.len()];
        for gap in &self.masked {
            mask[gap.clone()].fill(true);
        }
        mask
    }
}

/// Rate and variance per second of all clients, by window, with gaps bridged.
fn bridged(rates: &TrafficRates) -> Vec<(f64, f64)> {
    let moments = |window: usize| {
        let clients = rates.clients.iter().filter_map(|client| client.get(window));
        clients.fold((0.0, 0.0), |(rate, variance), one| {
            (rate + one.rate, variance + one.rate * one.variation * one.variation)
        })
    };
    let mut all: Vec<(f64, f64)> = (0..rates.windows()).map(moments).collect();
    for gap in &rates.gaps {
        let before = gap.start.checked_sub(1).map(|i| all[i]);
        let after = all.get(gap.end).copied();
        let (Some(from), Some(to)) = (before.or(after), after.or(before)) else { continue };
        let length = (gap.end - gap.start + 1) as f64;
        for window in gap.clone() {
            let way = (window + 1 - gap.start) as f64 / length;
            all[window] = (from.0 + (to.0 - from.0) * way, from.1 + (to.1 - from.1) * way);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::{Request, TrafficWindow};

    fn rates(series: &[f64], variation: f64, gaps: Vec<Range<usize>>) -> TrafficRates {
        let client = series.iter().map(|rate| TrafficWindow { rate: *rate, variation }).collect();
        TrafficRates { window: Seconds(600.0), clients: vec![client], gaps }
    }

    #[test]
    fn counts_have_the_mean_and_the_variance_of_their_windows() {
        let load = FlowLoad::from_rates(&rates(&[100.0; 50], 2.0, vec![]), Seconds(5.0), 7);
        assert_eq!(load.requests.len(), 50 * 120);
        let n = load.requests.len() as f64;
        let mean = load.requests.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
        let variance =
            load.requests.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / n;
        assert!((mean / 500.0 - 1.0).abs() < 0.01, "{mean}");
        assert!((variance / 2000.0 - 1.0).abs() < 0.06, "{variance}");
    }

    #[test]
    fn a_gap_is_bridged_and_masked() {
        let source = rates(&[100.0, 0.0, 0.0, 400.0], 0.0, std::iter::once(1..3).collect());
        let load = FlowLoad::from_rates(&source, Seconds(60.0), 1);
        let rate = |window: usize| load.requests[window * 10] / 60.0;
        assert_eq!([0, 1, 2, 3].map(rate), [100.0, 200.0, 300.0, 400.0]);
        assert_eq!(load.masked.first(), Some(&(10..30)));
        assert_eq!(load.mean_rate(), 250.0);
    }

    #[test]
    fn a_trace_is_counted_by_requests_and_by_work() {
        let one = |at, prompt| Request {
            at: Seconds(at),
            prompt,
            output: 0,
            blocks: 0..0,
            patience: None,
        };
        let requests = vec![one(0.0, 100), one(1.0, 300), one(12.0, 200)];
        let trace = Trace { requests, ..Trace::default() };
        let load = FlowLoad::from_trace(&trace, Seconds(5.0), |prompt, _| f64::from(prompt));
        assert_eq!(load.requests, [2.0, 0.0, 1.0]);
        assert_eq!(load.work, [2.0, 0.0, 1.0]);
    }
}
