//! How many accelerators a pool holds for all its models together.
//!
//! Where a replica that finds an accelerator starts in seconds, it is the accelerator that has to
//! be asked for ahead. Each model is asked twice: what it wants now, a swap ahead, and what it
//! would want if it had to buy. The difference is its spare. Models are rarely surprised together,
//! and spares that are independent add up like deviations do: by the root of the sum of squares.
//! That is what makes a shared pool cheaper than pools apart.

use crate::fleet::Fleet;
use crate::memory::{Ahead, HeldPool};
use crate::model_state::ModelState;
use crate::recommendations::{patience_s, weigh};
use flyball_core::decision::PoolDecision;
use flyball_core::ids::PoolId;
use flyball_core::snapshot::Snapshot;
use flyball_core::units::{Gpus, Timestamp};
use std::collections::BTreeMap;

/// What each pool should hold.
pub(crate) fn hold(
    states: &[ModelState<'_>],
    snapshot: &Snapshot,
    held: &mut BTreeMap<PoolId, HeldPool>,
) -> Vec<PoolDecision> {
    held.retain(|id, _| snapshot.pools.contains_key(id));
    let now = snapshot.taken_at;
    let mut decided = Vec::new();
    for (id, pool) in &snapshot.pools {
        let Some(supply) = pool.supply.filter(|_| pool.can_grow) else { continue };
        let learnt = held.entry(id.clone()).or_default();
        let new = learnt.seen_at.is_none_or(|seen| seen < now);
        learnt.seen_at = learnt.seen_at.max(Some(now));
        learnt.models.retain(|model, _| snapshot.models.contains_key(model));
        let mut sum = Sum::default();
        for state in states {
            learnt.add(&mut sum, state, id, supply.point().as_seconds(), new);
        }
        let limit = pool.limit.map_or(u32::MAX, Gpus::get);
        learnt.settle(now, &sum, supply.point().as_seconds(), limit);
        decided.push(PoolDecision { pool: id.clone(), hold: Gpus::new(learnt.hold) });
    }
    decided
}

/// What the models of a pool want together, in accelerators; each as for buying and for keeping.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    /// Of all targets.
    targets: u32,
    /// A swap ahead.
    recommended: (f64, f64),
    /// Squares of the spares.
    spares: (f64, f64),
}

impl HeldPool {
    fn add(
        &mut self,
        sum: &mut Sum,
        state: &ModelState<'_>,
        pool: &PoolId,
        supply_s: f64,
        new: bool,
    ) {
        for (n, variant) in state.variants.iter().enumerate() {
            if &variant.observed.pool != pool {
                continue;
            }
            let gpus = f64::from(variant.gpus());
            let target = state.claimed(variant).saturating_mul(variant.gpus());
            sum.targets = sum.targets.saturating_add(target);
            let speaks = n == state.main && state.observed.acts();
            let Some((up, keep)) = state.recommended.filter(|_| speaks) else {
                // It does not act, nothing is known of it, or another variant speaks for it: it
                // keeps what it has.
                sum.recommended.0 += f64::from(target);
                sum.recommended.1 += f64::from(target);
                continue;
            };
            if !self.models.contains_key(state.id) {
                self.models.insert(state.id.clone(), Ahead::default());
            }
            let ahead = self.models.get_mut(state.id).expect("it was just put there");
            let far = ahead.recommend(state, &variant.fleet(), supply_s + variant.usual_s, new);
            // A burst of noise may ask for hundreds; its owner's maximum holds here too.
            let most = state.ceiling();
            let [up, keep, far_up, far_keep] = [up, keep, far.0, far.1].map(|n| n.min(most));
            let square = |far: u32, near: u32| (f64::from(far.saturating_sub(near)) * gpus).powi(2);
            sum.recommended.0 += f64::from(up) * gpus;
            sum.recommended.1 += f64::from(keep) * gpus;
            sum.spares.0 += square(far_up, up);
            sum.spares.1 += square(far_keep, keep);
        }
    }

    /// Up at once, down when the recommendation for fewer has lasted, as for a model.
    fn settle(&mut self, now: Timestamp, sum: &Sum, supply_s: f64, limit: u32) {
        let whole = |recommended: f64, spares: f64| {
            ((recommended + spares.sqrt() - 0.5).ceil().max(0.0) as u32).max(sum.targets)
        };
        let up = whole(sum.recommended.0, sum.spares.0);
        let keep = whole(sum.recommended.1, sum.spares.1).max(up);
        let keep = self.recommendations.most(now, keep, patience_s(supply_s));
        self.hold = self.hold.clamp(up, keep.max(up)).min(limit.max(sum.targets));
    }
}

impl Ahead {
    /// How many replicas would be worth buying, and keeping, if each had to be bought.
    fn recommend(
        &mut self,
        state: &ModelState<'_>,
        fleet: &Fleet,
        supply_s: f64,
        new: bool,
    ) -> (u32, u32) {
        if new {
            self.forecaster.learn(
                state.work_now,
                state.work_now,
                state.now,
                supply_s,
                state.slack_s(),
            );
        }
        let outlook = self.forecaster.outlook(0.0, state.slack_s(), supply_s);
        weigh(&outlook, fleet, state.worth, supply_s, &mut self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_core::testing::at;

    fn sum(targets: u32, recommended: f64, spares: [f64; 3]) -> Sum {
        let squares: f64 = spares.iter().map(|spare| spare * spare).sum();
        Sum { targets, recommended: (recommended, recommended), spares: (squares, squares) }
    }

    #[test]
    fn spares_add_up_like_deviations() {
        let mut held = HeldPool::default();
        held.settle(at(0), &sum(30, 30.0, [3.0, 4.0, 0.0]), 300.0, u32::MAX);
        assert_eq!(held.hold, 35);
    }

    #[test]
    fn a_lower_recommendation_must_last() {
        let mut held = HeldPool::default();
        held.settle(at(0), &sum(30, 30.0, [0.0; 3]), 300.0, u32::MAX);
        held.settle(at(15), &sum(20, 20.0, [0.0; 3]), 300.0, u32::MAX);
        assert_eq!(held.hold, 30);
        for second in (30..=330).step_by(15) {
            held.settle(at(second), &sum(20, 20.0, [0.0; 3]), 300.0, u32::MAX);
        }
        assert_eq!(held.hold, 20);
    }

    #[test]
    fn a_limit_holds_the_pool_but_not_below_what_serves() {
        let mut held = HeldPool::default();
        held.settle(at(0), &sum(10, 10.0, [8.0, 0.0, 0.0]), 300.0, 10);
        assert_eq!(held.hold, 10);
        held.settle(at(15), &sum(12, 12.0, [0.0; 3]), 300.0, 10);
        assert_eq!(held.hold, 12);
    }
}
