//! Where a source has no data although there was traffic.
//!
//! A replay that takes a failed collector for a quiet hour rewards policies that scale down in
//! it, so such windows are masked and nothing is scored in them.

use std::ops::Range;

use super::{Trace, TrafficRates};
use crate::seconds::Seconds;

/// A window with less than this share of what is usual around it is near zero. `ServeGen`'s lost
/// windows have below 0.02 of it, and its quietest real ones 0.25.
const NEAR_ZERO: f64 = 0.05;
/// Beside a gap there is at least this share of what is usual: traffic that ebbs away passes
/// through the values between, a collector that stops does not.
const CLIFF: f64 = 0.15;
/// What is usual is the median over this time before and after, which is a day in all and so has
/// as much night as day.
const AROUND: Seconds = Seconds(12.0 * 3600.0);
/// With fewer requests expected in a window, few may be chance: 100 expected and fewer than 5
/// come by chance once in 10^36 windows.
const EXPECTED: f64 = 100.0;

/// No shorter silence is a gap: collectors that restart in less lose what queues smooth anyway.
const SHORTEST_SILENCE: Seconds = Seconds(60.0);
/// A silence counts as a gap if it is so many times longer than the fifth longest around it. An
/// outage is rare; what comes five times in ten thousand requests is the rhythm of the clients
/// (Azure's trace of a coding service has 34 silences of 20 to 217 seconds in an hour).
const BEYOND_RHYTHM: f64 = 10.0;
const FIFTH: usize = 5;
/// Distances before and after a silence that are its rhythm.
const NEIGHBOURS: usize = 5000;
/// With fewer requests there is no rhythm to compare with.
const FEWEST: usize = 1000;

impl TrafficRates {
    /// Adds windows whose total is near zero while their neighbours are not to the gaps, and says
    /// how many there are then.
    pub fn mask_gaps(&mut self) -> usize {
        let count = self.windows();
        let mut gap: Vec<bool> = (0..count).map(|window| self.is_gap(window)).collect();
        let totals: Vec<f64> = (0..count).map(|window| self.total(window)).collect();
        let reach = (AROUND.get() / self.window.get()).ceil().max(3.0) as usize;
        let usual: Vec<f64> = (0..count).map(|i| median_around(&totals, &gap, i, reach)).collect();
        let near_zero = |i: usize| {
            let enough = usual[i] * self.window.get() >= EXPECTED;
            gap[i] || enough && totals[i] < NEAR_ZERO * usual[i]
        };
        let candidates = runs((0..count).map(near_zero));
        for run in candidates {
            let beside = [run.start.checked_sub(1), Some(run.end).filter(|end| *end < count)];
            let steep = |i: &usize| totals[*i] >= CLIFF * usual[*i];
            if beside.iter().flatten().all(steep) {
                gap[run].fill(true);
            }
        }
        self.gaps = runs(gap.into_iter());
        self.gaps.iter().map(ExactSizeIterator::len).sum()
    }
}

impl Trace {
    /// Adds silences far longer than the rhythm around them to the gaps, and says how many gaps
    /// there are then.
    pub fn mask_gaps(&mut self) -> usize {
        let times = self.requests.iter().map(|request| request.at.get());
        let times: Vec<f64> = times.collect();
        let apart: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        for (i, silence) in apart.iter().enumerate() {
            if *silence < SHORTEST_SILENCE.get() {
                continue;
            }
            let around = i.saturating_sub(NEIGHBOURS)..apart.len().min(i + NEIGHBOURS + 1);
            if around.len() < FEWEST {
                continue;
            }
            let mut near = apart[around].to_vec();
            near.sort_by(|a, b| b.total_cmp(a));
            let gap = Seconds(times[i])..Seconds(times[i + 1]);
            if *silence > BEYOND_RHYTHM * near[FIFTH - 1] && !self.gaps.contains(&gap) {
                self.gaps.push(gap);
            }
        }
        self.gaps.sort_by_key(|gap| gap.start);
        self.gaps.len()
    }
}

/// Runs of true, as ranges.
pub(crate) fn runs(flags: impl Iterator<Item = bool>) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (i, _) in flags.enumerate().filter(|(_, flag)| *flag) {
        match runs.last_mut() {
            Some(run) if run.end == i => run.end = i + 1,
            _ => runs.push(i..i + 1),
        }
    }
    runs
}

fn median_around(totals: &[f64], gap: &[bool], i: usize, reach: usize) -> f64 {
    let around = i.saturating_sub(reach)..totals.len().min(i + reach + 1);
    let mut near: Vec<f64> = around.filter(|j| !gap[*j]).map(|j| totals[j]).collect();
    if near.is_empty() {
        return 0.0;
    }
    let middle = near.len() / 2;
    *near.select_nth_unstable_by(middle, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::{Request, TrafficWindow};

    fn rates(totals: &[f64]) -> TrafficRates {
        let client =
            totals.iter().map(|rate| TrafficWindow { rate: *rate, variation: 1.0 }).collect();
        TrafficRates { window: Seconds(600.0), clients: vec![client], gaps: Vec::new() }
    }

    #[test]
    fn a_cliff_is_a_gap_and_an_ebb_is_not() {
        let mut cliff = rates(&[10.0, 11.0, 0.1, 0.0, 9.0, 10.0, 10.0, 10.0]);
        assert_eq!((cliff.mask_gaps(), cliff.gaps.first()), (2, Some(&(2..4))));
        assert_eq!(cliff.mask_gaps(), 2, "a second time changes nothing");
        let mut ebb = rates(&[10.0, 8.0, 4.0, 1.2, 0.4, 1.2, 4.0, 8.0, 10.0, 10.0, 10.0]);
        assert_eq!(ebb.mask_gaps(), 0);
        let mut rare = rates(&[0.02, 0.02, 0.0, 0.02, 0.02, 0.02]);
        assert_eq!(rare.mask_gaps(), 0);
    }

    fn every(distances: impl Iterator<Item = f64>) -> Trace {
        let mut trace = Trace::default();
        let mut at = 0.0;
        for distance in distances {
            at += distance;
            let at = Seconds(at);
            trace.requests.push(Request { at, prompt: 1, output: 1, blocks: 0..0, patience: None });
        }
        trace
    }

    #[test]
    fn one_long_silence_is_a_gap_and_many_are_a_rhythm() {
        let mut once = every((0..3000).map(|i| if i == 1500 { 600.0 } else { 1.0 }));
        assert_eq!(once.mask_gaps(), 1);
        assert_eq!(once.gaps, [Seconds(1500.0)..Seconds(2100.0)]);
        assert_eq!(once.mask_gaps(), 1, "a second time changes nothing");
        let mut often = every((0..3000).map(|i| if i % 100 == 0 { 600.0 } else { 1.0 }));
        assert_eq!(often.mask_gaps(), 0);
        let mut short = every((0..3000).map(|i| if i == 1500 { 50.0 } else { 1.0 }));
        assert_eq!(short.mask_gaps(), 0);
    }
}
