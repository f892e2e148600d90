//! Searches the settings of a policy on one part of the data; the rest is for testing it.

use crate::fluid::{FluidWorld, run};
use crate::policy::ScalingPolicy;
use crate::score::Outcome;

/// One setting of a policy that can be tried.
pub struct TuneCandidate {
    /// Which policy it is a setting of.
    pub policy: String,
    /// The setting in words, such as `target 0.8, down after 300 s`.
    pub setting: String,
    /// Makes it afresh: policies remember, and each replay starts with an empty memory.
    pub make: Box<dyn Fn() -> Box<dyn ScalingPolicy>>,
}

/// What a setting came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TuneResult {
    /// Accelerator time paid for, in hours.
    pub gpu_hours: f64,
    /// Share of requests that missed, 0 to 1.
    pub missed: f64,
}

impl TuneResult {
    /// What an outcome came to.
    pub fn of(outcome: &Outcome) -> Self {
        Self { gpu_hours: outcome.gpu_seconds / 3600.0, missed: outcome.missed_share() }
    }

    /// The mean over several replays.
    pub fn mean(all: &[Self]) -> Self {
        let count = all.len().max(1) as f64;
        Self {
            gpu_hours: all.iter().map(|one| one.gpu_hours).sum::<f64>() / count,
            missed: all.iter().map(|one| one.missed).sum::<f64>() / count,
        }
    }
}

/// Tries a candidate on worlds that differ in their seed.
pub fn try_on(candidate: &TuneCandidate, worlds: &[FluidWorld]) -> TuneResult {
    let all: Vec<TuneResult> = worlds
        .iter()
        .map(|world| TuneResult::of(&run(world, (candidate.make)().as_mut())))
        .collect();
    TuneResult::mean(&all)
}

/// The cheapest that misses no more than allowed; where none does, the one that misses least.
pub fn best(tried: &[TuneResult], allowed: f64) -> Option<usize> {
    let keeps = |one: &TuneResult| one.missed <= allowed;
    let indexed = || tried.iter().enumerate();
    let cheapest = indexed()
        .filter(|(_, one)| keeps(one))
        .min_by(|(_, a), (_, b)| a.gpu_hours.total_cmp(&b.gpu_hours));
    let least = || {
        indexed().min_by(|(_, a), (_, b)| {
            a.missed.total_cmp(&b.missed).then(a.gpu_hours.total_cmp(&b.gpu_hours))
        })
    };
    cheapest.or_else(least).map(|(index, _)| index)
}

/// Those that no other beats in both cost and misses, by cost.
pub fn front(tried: &[TuneResult]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tried.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (&tried[*a], &tried[*b]);
        a.gpu_hours.total_cmp(&b.gpu_hours).then(a.missed.total_cmp(&b.missed))
    });
    let mut fewest = f64::INFINITY;
    order.retain(|index| {
        let better = tried[*index].missed < fewest;
        fewest = fewest.min(tried[*index].missed);
        better
    });
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(pairs: &[(f64, f64)]) -> Vec<TuneResult> {
        pairs
            .iter()
            .map(|(gpu_hours, missed)| TuneResult { gpu_hours: *gpu_hours, missed: *missed })
            .collect()
    }

    #[test]
    fn the_cheapest_that_keeps_the_limit_wins() {
        let all = tried(&[(10.0, 0.02), (12.0, 0.009), (11.0, 0.01), (15.0, 0.0)]);
        assert_eq!(best(&all, 0.01), Some(2));
        assert_eq!(best(&all, 0.001), Some(3));
        assert_eq!(best(&all[..2], 0.001), Some(1));
        assert_eq!(best(&[], 0.01), None);
    }

    #[test]
    fn the_front_leaves_out_what_is_beaten() {
        let all = tried(&[(10.0, 0.02), (12.0, 0.009), (13.0, 0.01), (15.0, 0.0), (9.0, 0.05)]);
        assert_eq!(front(&all), [4, 0, 1, 3]);
    }
}
