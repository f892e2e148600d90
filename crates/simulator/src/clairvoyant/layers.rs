//! The cheapest plan of one variant that misses nothing.
//!
//! Replicas are stacked in layers: layer k must be on while k or more are needed. Between two such
//! times it stays on if that costs no more than a start. A pause of a layer lies within a pause of
//! the layer above, so the layers stay nested, and the best of each is the best of all.

use super::{ClairvoyantPlan, carry, paid, stretches};
use crate::seconds::Seconds;

/// What is needed of one variant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerRequest<'a> {
    /// Replicas needed, per step.
    pub need: &'a [u32],
    /// Steps without data; empty for none.
    pub masked: &'a [bool],
    /// Length of a step.
    pub step: Seconds,
    /// Time from the order to the first answer, paid in full.
    pub cold_start: Seconds,
    /// Replicas before the first step.
    pub initial: u32,
    /// Replicas there must always be.
    pub floor: u32,
}

/// The cheapest plan with `replicas[t] >= need[t]`. Time and memory grow with the steps only.
pub fn cheapest(ask: &LayerRequest<'_>) -> ClairvoyantPlan {
    let stretches = stretches(ask.need.len(), ask.masked);
    let mut replicas = vec![0; ask.need.len()];
    let mut bridges = Vec::new();
    for stretch in &stretches {
        let need = &ask.need[stretch.steps.clone()];
        let plan = &mut replicas[stretch.steps.clone()];
        fill(ask, need, stretch.initial(ask.initial), &mut bridges, plan);
    }
    let (replica_seconds, starts) =
        paid(&replicas, &stretches, ask.step.get(), ask.cold_start.get(), ask.initial);
    carry(&mut replicas, ask.masked);
    ClairvoyantPlan { replicas, replica_seconds, starts, missed: 0.0 }
}

/// Layers above the present need up to `top`, off since the same step.
struct Idle {
    top: u32,
    since: usize,
}

fn fill(
    ask: &LayerRequest<'_>,
    need: &[u32],
    initial: u32,
    bridges: &mut Vec<i64>,
    plan: &mut [u32],
) {
    // Changes in how many layers are on though nothing needs them.
    bridges.clear();
    bridges.resize(need.len() + 1, 0);
    // Lowest layers last: those went off last and are the first to be needed again.
    let mut idle = vec![Idle { top: initial, since: 0 }];
    let mut on = 0;
    for (step, &need) in need.iter().enumerate() {
        let need = need.max(ask.floor);
        if need < on {
            idle.push(Idle { top: on, since: step });
        }
        while on < need {
            let Some(lowest) = idle.last() else { break };
            let upto = lowest.top.min(need);
            if ask.step.get() * (step - lowest.since) as f64 <= ask.cold_start.get() {
                let bridged = i64::from(upto.saturating_sub(on));
                bridges[lowest.since] += bridged;
                bridges[step] -= bridged;
            }
            on = on.max(upto);
            if lowest.top <= need {
                idle.pop();
            }
        }
        on = need;
    }
    let mut extra = 0;
    for (step, n) in plan.iter_mut().enumerate() {
        extra += bridges[step];
        *n = need[step].max(ask.floor) + u32::try_from(extra).expect("layers end after they begin");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ask<'a>(need: &'a [u32], cold_start: f64) -> LayerRequest<'a> {
        let (step, cold_start) = (Seconds(1.0), Seconds(cold_start));
        LayerRequest { need, masked: &[], step, cold_start, initial: 0, floor: 0 }
    }

    #[test]
    fn a_pause_is_bridged_when_it_is_no_longer_than_a_start() {
        let bridged = cheapest(&ask(&[2, 0, 0, 2], 2.0));
        assert_eq!(bridged.replicas, [2, 2, 2, 2]);
        assert_eq!((bridged.replica_seconds, bridged.starts), (12.0, 2));
        let left = cheapest(&ask(&[2, 0, 0, 0, 2], 2.0));
        assert_eq!(left.replicas, [2, 0, 0, 0, 2]);
        assert_eq!((left.replica_seconds, left.starts), (12.0, 4));
    }

    #[test]
    fn what_a_gap_hides_costs_nothing() {
        let masked = [false, true, true, false];
        let plan = cheapest(&LayerRequest { masked: &masked, ..ask(&[1, 9, 9, 3], 100.0) });
        assert_eq!(plan.replicas, [1, 1, 1, 3]);
        assert_eq!((plan.replica_seconds, plan.starts), (104.0, 1));
    }

    /// Every plan, one after the other. More than the largest need is never of use.
    fn brute(ask: &LayerRequest<'_>) -> f64 {
        let steps = ask.need.len();
        let base = 1 + ask.need.iter().fold(ask.floor, |most, &need| most.max(need));
        let mut best = f64::INFINITY;
        for code in 0..base.pow(steps as u32) {
            let plan: Vec<u32> = (0..steps).map(|t| code / base.pow(t as u32) % base).collect();
            let masked = |t: usize| ask.masked.get(t) == Some(&true);
            let enough = |t: usize| masked(t) || plan[t] >= ask.need[t].max(ask.floor);
            if !(0..steps).all(enough) {
                continue;
            }
            let mut cost = 0.0;
            for t in (0..steps).filter(|&t| !masked(t)) {
                let before = if t == 0 { ask.initial } else { plan[t - 1] };
                cost += f64::from(plan[t]) * ask.step.get();
                cost += f64::from(plan[t].saturating_sub(before)) * ask.cold_start.get();
            }
            best = best.min(cost);
        }
        best
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn no_plan_is_cheaper(
            steps in prop_oneof![
                prop::collection::vec((0_u32..=4, prop::bool::weighted(0.15)), 1..=6),
                prop::collection::vec((0_u32..=2, prop::bool::weighted(0.15)), 7..=8),
            ],
            cold_start in 0_u32..=12, initial in 0_u32..=4, floor in 0_u32..=1,
        ) {
            let (need, masked): (Vec<_>, Vec<_>) = steps.into_iter().unzip();
            let (step, cold_start) = (Seconds(2.0), Seconds(f64::from(cold_start)));
            let ask = LayerRequest { need: &need, masked: &masked, step, cold_start, initial, floor };
            let plan = cheapest(&ask);
            prop_assert_eq!(plan.replica_seconds, brute(&ask));
            for t in 0..need.len() {
                prop_assert!(masked[t] || plan.replicas[t] >= need[t].max(floor));
            }
        }
    }
}
