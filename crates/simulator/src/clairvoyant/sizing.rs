//! The best plan of one variant when a missed request has a price.
//!
//! Each further replica saves fewer misses than the one before, so the layers of [`super::layers`]
//! stay independent: layer k is worth, in each step, the misses it saves less the time it costs.
//! One pass forward keeps for each layer how much dearer it is to be on than off; a start can
//! always mend "off", a stop "on", so that number stays between nothing and one start. One pass
//! back then keeps the plan between the layers that must be on and those that may be. This is the
//! optimum of Lin, Wierman, Andrew and Thereska (INFOCOM 2011) for whole replicas.

use super::{ClairvoyantPlan, carry, layers, paid, stretches};
use crate::seconds::Seconds;

/// What one variant has to serve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizedLoad<'a> {
    /// Requests that arrive, per step. Any unit of work will do, tokens too.
    pub requests: &'a [f64],
    /// Steps without data; empty for none.
    pub masked: &'a [bool],
    /// Length of a step.
    pub step: Seconds,
    /// Requests that one replica serves in a step. What a step brings beyond that is missed.
    pub served_per_step: f64,
    /// Time from the order to the first answer, paid in full.
    pub cold_start: Seconds,
    /// Replicas before the first step.
    pub initial: u32,
    /// Replicas there must always be.
    pub floor: u32,
}

impl SizedLoad<'_> {
    /// Requests outside gaps.
    pub fn total(&self) -> f64 {
        let scored = |step: &usize| self.masked.get(*step) != Some(&true);
        (0..self.requests.len()).filter(scored).map(|step| self.requests[step]).sum()
    }

    /// Replicas needed to miss nothing, per step.
    pub fn need(&self) -> Vec<u32> {
        self.requests.iter().map(|&requests| whole(requests / self.served_per_step)).collect()
    }
}

/// The plan of least `replica seconds + price x missed requests`. With an infinite price it is
/// the cheapest that misses nothing.
pub fn best(load: &SizedLoad<'_>, price_of_a_miss: f64) -> ClairvoyantPlan {
    let stretches = stretches(load.requests.len(), load.masked);
    let need = load.need();
    let mut replicas = vec![0; load.requests.len()];
    if price_of_a_miss.is_infinite() {
        let SizedLoad { masked, step, cold_start, initial, floor, .. } = *load;
        let ask = layers::LayerRequest { need: &need, masked, step, cold_start, initial, floor };
        return layers::cheapest(&ask);
    }
    let served = load.served_per_step;
    for stretch in &stretches {
        let requests = &load.requests[stretch.steps.clone()];
        let most =
            need[stretch.steps.clone()].iter().fold(load.floor, |most, &need| most.max(need));
        let sizing = Sizing {
            steps: requests.len(),
            layers: most as usize,
            start_cost: load.cold_start.get(),
            initial: stretch.initial(load.initial),
        };
        let plan = right_size(&sizing, |step, dearer| {
            let (must, may) = dearer.split_at_mut(load.floor as usize);
            must.fill(f64::NEG_INFINITY);
            for (layer, dearer) in may.iter_mut().enumerate() {
                let below = (load.floor as usize + layer) as f64 * served;
                let saved = (requests[step] - below).clamp(0.0, served);
                *dearer += load.step.get() - price_of_a_miss * saved;
            }
        });
        replicas[stretch.steps.clone()].copy_from_slice(&plan);
    }
    let (replica_seconds, starts) =
        paid(&replicas, &stretches, load.step.get(), load.cold_start.get(), load.initial);
    let scored = stretches.iter().flat_map(|stretch| stretch.steps.clone());
    let missed =
        scored.map(|t| (load.requests[t] - f64::from(replicas[t]) * served).max(0.0)).sum();
    carry(&mut replicas, load.masked);
    ClairvoyantPlan { replicas, replica_seconds, starts, missed }
}

/// One problem of right-sizing, as layers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizing {
    pub(super) steps: usize,
    pub(super) layers: usize,
    pub(super) start_cost: f64,
    pub(super) initial: u32,
}

/// The best sizes. `add` adds to each layer what it costs to have it on in the step, which must
/// not fall from a layer to the next; infinities force.
pub(super) fn right_size(sizing: &Sizing, add: impl FnMut(usize, &mut [f64])) -> Vec<u32> {
    right_size_at(sizing, |_| sizing.start_cost, add)
}

/// The best sizes where a start costs more in some steps than in others.
pub(super) fn right_size_at(
    sizing: &Sizing,
    start_cost: impl Fn(usize) -> f64,
    mut add: impl FnMut(usize, &mut [f64]),
) -> Vec<u32> {
    let there = |layer: usize| layer < sizing.initial as usize;
    let mut dearer: Vec<f64> =
        (0..sizing.layers).map(|layer| if there(layer) { 0.0 } else { start_cost(0) }).collect();
    let mut bounds = Vec::with_capacity(sizing.steps);
    for step in 0..sizing.steps {
        add(step, &mut dearer);
        let next_start = if step + 1 < sizing.steps { start_cost(step + 1) } else { 0.0 };
        // Layers that are on if nothing follows; layers that are on if the next step wants them.
        let (mut must, mut may) = (0_u32, 0_u32);
        for dearer in &mut dearer {
            must += u32::from(*dearer < 0.0);
            may += u32::from(*dearer <= next_start);
            *dearer = dearer.clamp(0.0, next_start);
        }
        bounds.push((must, may));
    }
    let mut plan = vec![0; sizing.steps];
    let mut next = 0;
    for (size, &(must, may)) in plan.iter_mut().zip(&bounds).rev() {
        next = next.clamp(must, may);
        *size = next;
    }
    plan
}

/// Rounded up to whole replicas, but for what is only the rounding of a float.
pub(super) fn whole(replicas: f64) -> u32 {
    (replicas - 1e-9).ceil().max(0.0) as u32
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A small case, owned.
    #[derive(Clone, Debug)]
    pub(in super::super) struct Case {
        requests: Vec<f64>,
        masked: Vec<bool>,
        cold_start: u32,
        initial: u32,
        floor: u32,
    }

    impl Case {
        pub(in super::super) fn load(&self) -> SizedLoad<'_> {
            SizedLoad {
                requests: &self.requests,
                masked: &self.masked,
                step: Seconds(2.0),
                served_per_step: 4.0,
                cold_start: Seconds(f64::from(self.cold_start)),
                initial: self.initial,
                floor: self.floor,
            }
        }
    }

    pub(in super::super) fn cases() -> impl Strategy<Value = Case> {
        let step = |most: u32| (0..=most, prop::bool::weighted(0.1));
        let steps = prop_oneof![
            prop::collection::vec(step(16), 1..=5),
            prop::collection::vec(step(8), 6..=8),
        ];
        (steps, 0_u32..=12, 0_u32..=3, 0_u32..=1).prop_map(|(steps, cold_start, initial, floor)| {
            let requests = steps.iter().map(|step| f64::from(step.0)).collect();
            let masked = steps.iter().map(|step| step.1).collect();
            Case { requests, masked, cold_start, initial, floor }
        })
    }

    /// Cost and misses of every plan.
    pub(in super::super) fn every(load: &SizedLoad<'_>) -> Vec<(f64, f64)> {
        let steps = load.requests.len();
        let base = 1 + load.need().iter().fold(load.floor, |most, &need| most.max(need));
        let masked = |t: usize| load.masked.get(t) == Some(&true);
        let mut found = Vec::new();
        'plans: for code in 0..base.pow(steps as u32) {
            let (mut cost, mut missed, mut before) = (0.0, 0.0, load.initial);
            for t in 0..steps {
                let now = code / base.pow(t as u32) % base;
                if !masked(t) {
                    if now < load.floor {
                        continue 'plans;
                    }
                    cost += f64::from(now) * load.step.get();
                    cost += f64::from(now.saturating_sub(before)) * load.cold_start.get();
                    missed += (load.requests[t] - f64::from(now) * load.served_per_step).max(0.0);
                }
                before = now;
            }
            found.push((cost, missed));
        }
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn no_plan_is_better_at_the_price(case in cases(), price in 0.0..6.0_f64) {
            let load = case.load();
            let plan = best(&load, price);
            let least = every(&load)
                .into_iter()
                .map(|(cost, missed)| cost + price * missed)
                .fold(f64::INFINITY, f64::min);
            let mine = plan.replica_seconds + price * plan.missed;
            prop_assert!((mine - least).abs() < 1e-9 * (1.0 + least), "{mine} and {least}");
        }
    }

    #[test]
    fn a_high_price_is_the_plan_without_misses() {
        let requests = [5.0, 0.0, 9.0, 1.0, 0.0, 0.0, 0.0, 4.0];
        let load = SizedLoad {
            requests: &requests,
            masked: &[],
            step: Seconds(10.0),
            served_per_step: 4.0,
            cold_start: Seconds(20.0),
            initial: 0,
            floor: 0,
        };
        let (high, without) = (best(&load, 1e6), best(&load, f64::INFINITY));
        assert_eq!(high, without);
        assert_eq!(high.missed, 0.0);
    }
}
