//! Single requests from a model of traffic or from rates; the same seed gives the same requests.
//!
//! Distances are Gamma distributed with the wanted mean and variation. Every window starts as if
//! the stream had run for ever before it (its first distance is what is left of one that a random
//! moment fell into), so that the expected number of requests is exactly rate times length.

use std::ops::Range;

use rand::RngExt;
use rand_distr::{Distribution, Gamma};

use super::fit::{Fitted, Sample};
use super::lengths::Lengths;
use super::reuse::Shared;
use super::{Request, Trace, TrafficRates, TrafficWindow};
use crate::chance::{Chance, Purpose, stream};
use crate::seconds::Seconds;

/// Requests like those that the model was fitted to, for this long.
pub fn generate(fitted: &Fitted, seed: u64, span: Seconds) -> Trace {
    let mut trace = Trace { block_tokens: fitted.block_tokens, ..Trace::default() };
    if fitted.samples.is_empty() || fitted.rates.is_empty() {
        return trace;
    }
    let mut chance = stream(seed, Purpose::Arrivals, 0);
    let mut times = Vec::new();
    for place in 0..windows(span, fitted.window) {
        let rate = fitted.rates[place % fitted.rates.len()];
        let window = TrafficWindow { rate, variation: fitted.variation };
        arrivals(window, bounds(place, fitted.window, span), &mut chance, &mut times);
    }
    let mut chance = stream(seed, Purpose::Lengths, 0);
    let mut names = Names::default();
    for at in times {
        let sample = fitted.samples[chance.random_range(0..fitted.samples.len())];
        let blocks = names.blocks(&mut trace, Seconds(at), &sample);
        trace.requests.push(Request {
            at: Seconds(at),
            prompt: sample.prompt,
            output: sample.output,
            blocks,
            patience: sample.patience,
        });
    }
    trace
}

/// Single requests of a part of rates, each client by itself; times count from the start of the
/// part. Gaps stay gaps. A variation of zero is taken as one: it comes from windows with too few
/// requests to have any.
pub fn requests(rates: &TrafficRates, lengths: &Lengths, part: Range<Seconds>, seed: u64) -> Trace {
    let length = rates.window;
    let all = length * rates.windows() as f64;
    let (begin, end) = (part.start.max(Seconds::ZERO), part.end.min(all));
    let mut times = Vec::new();
    let first = (begin.get() / length.get()).floor() as usize;
    for (number, client) in rates.clients.iter().enumerate() {
        let mut chance = stream(seed, Purpose::Arrivals, number as u64);
        let inside = client.iter().copied().enumerate().take(windows(end, length)).skip(first);
        for (place, mut window) in inside.filter(|(place, _)| !rates.is_gap(*place)) {
            if window.variation <= 0.0 {
                window.variation = 1.0;
            }
            let mut bounds = bounds(place, length, end);
            bounds.start = bounds.start.max(begin.get());
            arrivals(window, bounds, &mut chance, &mut times);
        }
    }
    times.sort_by(f64::total_cmp);
    let mut chance = stream(seed, Purpose::Lengths, 0);
    let one = |at: f64| {
        let (prompt, output) = lengths.draw(&mut chance);
        Request { at: Seconds(at) - begin, prompt, output, blocks: 0..0, patience: None }
    };
    let gaps = rates.gaps.iter().map(|gap| {
        let from = (length * gap.start as f64).max(begin);
        let to = (length * gap.end as f64).min(end);
        from - begin..to - begin
    });
    Trace {
        requests: times.into_iter().map(one).collect(),
        gaps: gaps.filter(|gap| gap.start < gap.end).collect(),
        ..Trace::default()
    }
}

fn windows(span: Seconds, window: Seconds) -> usize {
    (span.get() / window.get()).ceil() as usize
}

/// Begin and end of a window, cut where the time ends.
fn bounds(place: usize, window: Seconds, span: Seconds) -> Range<f64> {
    let begin = place as f64 * window.get();
    begin..(begin + window.get()).min(span.get())
}

/// Below this distances are as good as equal, and the Gamma distribution's shape above 10^4.
const REGULAR: f64 = 0.01;

/// Adds the times of one stream in one window.
fn arrivals(window: TrafficWindow, bounds: Range<f64>, chance: &mut Chance, times: &mut Vec<f64>) {
    if window.rate <= 0.0 || bounds.is_empty() {
        return;
    }
    let mean = 1.0 / window.rate;
    // The variation among n distances is below the root of n, so that a larger one is a slip.
    let most = ((bounds.end - bounds.start) * window.rate).sqrt().max(1.0);
    let variation = window.variation.min(most);
    if variation < REGULAR {
        let mut at = bounds.start + chance.random::<f64>() * mean;
        while at < bounds.end {
            times.push(at);
            at += mean;
        }
        return;
    }
    let shape = 1.0 / (variation * variation);
    // Longer distances cover more moments, in proportion: that makes the shape one larger.
    let (Ok(distances), Ok(covering)) =
        (Gamma::new(shape, mean / shape), Gamma::new(shape + 1.0, mean / shape))
    else {
        return;
    };
    let mut at = bounds.start + covering.sample(chance) * chance.random::<f64>();
    while at < bounds.end {
        times.push(at);
        at += distances.sample(chance);
    }
}

/// So many requests before and after the wanted moment are looked at for one with enough blocks.
const STEPS: usize = 2048;

/// Gives names to the blocks of prompts.
#[derive(Default)]
struct Names {
    /// The next name that nobody has.
    unused: u64,
    /// By request: blocks at its start that a later one had too.
    taken: Vec<u32>,
}

impl Names {
    /// The first blocks as in an earlier request of about the right age, the others new.
    fn blocks(&mut self, trace: &mut Trace, now: Seconds, sample: &Sample) -> Range<u32> {
        let begin = trace.blocks.len();
        let Shared { blocks, ago } = sample.shared;
        if let Some(earlier) = self.earlier(trace, now - ago, blocks) {
            let range = trace.requests[earlier].blocks.clone();
            let shared = blocks.min(range.len() as u32);
            self.taken[earlier] = self.taken[earlier].max(shared);
            trace.blocks.extend_from_within(range.start as usize..(range.start + shared) as usize);
        }
        while trace.blocks.len() - begin < sample.blocks as usize {
            trace.blocks.push(self.unused);
            self.unused += 1;
        }
        self.taken.push(0);
        begin as u32..trace.blocks.len() as u32
    }

    /// The request nearest to the moment that has so many blocks and was the last to use them, as
    /// the next turn of a conversation follows the last. If there is none, one that has the
    /// blocks; else the one with most.
    fn earlier(&self, trace: &Trace, moment: Seconds, blocks: u32) -> Option<usize> {
        let count = trace.requests.len();
        if blocks == 0 || count == 0 {
            return None;
        }
        let middle = trace.requests.partition_point(|request| request.at <= moment);
        let has = |place: usize| trace.requests[place].blocks.len() as u32;
        let mut best: Option<usize> = None;
        for step in 0..STEPS {
            let before = middle.checked_sub(step + 1);
            let after = Some(middle + step).filter(|place| *place < count);
            if before.is_none() && after.is_none() {
                break;
            }
            for place in [before, after].into_iter().flatten() {
                if has(place) >= blocks && self.taken[place] < blocks {
                    return Some(place);
                }
                let more = |known| has(place).min(blocks) > has(known).min(blocks);
                if best.is_none_or(more) {
                    best = Some(place);
                }
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::shape::TrafficShape;
    use proptest::prelude::*;

    fn rates(windows: &[(f64, f64)]) -> TrafficRates {
        let client = windows
            .iter()
            .map(|(rate, variation)| TrafficWindow { rate: *rate, variation: *variation });
        TrafficRates { window: Seconds(600.0), clients: vec![client.collect()], gaps: Vec::new() }
    }

    fn lengths() -> Lengths {
        Lengths::Pairs(vec![(100, 10)])
    }

    #[test]
    fn rates_and_variations_come_out_as_they_went_in() {
        for variation in [0.0, 0.5, 1.0, 3.0] {
            let rates = rates(&[(20.0, variation); 20]);
            let trace = requests(&rates, &lengths(), Seconds::ZERO..Seconds(12_000.0), 1);
            let shape = TrafficShape::of_trace(&trace);
            // 240,000 requests: three deviations of the count are 2 % even at a variation of 3.
            assert!((shape.mean_rate / 20.0 - 1.0).abs() < 0.02, "{shape:?}");
            let expected = if variation == 0.0 { 1.0 } else { variation };
            let found = shape.variation.unwrap();
            assert!((found / expected - 1.0).abs() < 0.1, "{found} for {expected}");
        }
    }

    #[test]
    fn short_bursty_windows_have_no_bias() {
        // Starting each window with a request would add (9 - 1) / 2 = 4 to the 6 expected.
        let rates = rates(&[(0.01, 3.0); 20_000]);
        let all = rates.window * 20_000.0;
        let trace = requests(&rates, &lengths(), Seconds::ZERO..all, 3);
        let mean = trace.requests.len() as f64 / 20_000.0;
        assert!((mean - 6.0).abs() < 0.2, "{mean}");
    }

    #[test]
    fn gaps_stay_gaps_and_parts_count_from_their_start() {
        let mut rates = rates(&[(5.0, 1.0), (9.0, 1.0), (5.0, 1.0)]);
        rates.gaps.push(1..2);
        let trace = requests(&rates, &lengths(), Seconds(300.0)..Seconds(9_999.0), 1);
        assert_eq!(trace.gaps.first(), Some(&(Seconds(300.0)..Seconds(900.0))));
        assert!(trace.requests.iter().all(|one| !trace.gaps[0].contains(&one.at)));
        assert!(trace.span() > Seconds(1_400.0) && trace.span() < Seconds(1_500.0));
    }

    proptest! {
        #[test]
        fn requests_are_in_order_and_inside(
            windows in prop::collection::vec((0.0..2.0, 0.0..50.0), 1..5),
            begin in 0.0..2000.0, length in 0.0..2000.0, seed: u64,
        ) {
            let part = Seconds(begin)..Seconds(begin + length);
            let trace = requests(&rates(&windows), &lengths(), part, seed);
            prop_assert!(trace.requests.is_sorted_by_key(|request| request.at));
            let inside = |one: &Request| (0.0..length).contains(&one.at.get());
            prop_assert!(trace.requests.iter().all(inside));
        }
    }
}
