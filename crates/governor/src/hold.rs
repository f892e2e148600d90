//! How many accelerators a pool holds for all its models together.
//!
//! Where a replica that finds an accelerator starts in seconds, it is the accelerator that has to
//! be asked for ahead. Models rarely peak together, so the sum of their work moves less than each
//! of them: holding for the sum is what makes a shared pool cheaper than pools apart.

use crate::forecast::Forecaster;
use crate::scale::{Wishes, patience_s, prices};
use crate::seat::Seat;
use crate::starts::seconds;
use flyball_core::decision::PoolDecision;
use flyball_core::ids::PoolId;
use flyball_core::snapshot::Snapshot;
use flyball_core::units::{Gpus, Timestamp};
use std::collections::BTreeMap;

/// What is remembered of one pool.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Held {
    forecaster: Forecaster,
    wishes: Wishes,
    /// The last answers of the search, for buying and for keeping.
    last: (u32, u32),
    hold: u32,
    seen_at: Option<Timestamp>,
}

/// The wait that misses an objective, where the pool stands in for many models.
const SLACK_S: f64 = 3.0;

/// What each pool should hold.
pub(crate) fn hold(
    seats: &[Seat<'_>],
    snapshot: &Snapshot,
    held: &mut BTreeMap<PoolId, Held>,
) -> Vec<PoolDecision> {
    held.retain(|id, _| snapshot.pools.contains_key(id));
    let now = snapshot.taken_at;
    let mut decided = Vec::new();
    for (id, pool) in &snapshot.pools {
        let Some(supply) = pool.supply.filter(|_| pool.can_grow) else { continue };
        let (mut wish, mut work, mut worth, mut swap_s) = (0_u32, 0.0, 0.0, 0.0_f64);
        for seat in seats {
            for (n, lane) in seat.lanes.iter().enumerate() {
                if &lane.variant.pool != id {
                    continue;
                }
                wish = wish.saturating_add(lane.target.saturating_mul(lane.gpus()));
                swap_s = swap_s.max(lane.usual_s);
                if n == seat.main {
                    let gpus = seat.work_now / lane.size * f64::from(lane.gpus());
                    work += gpus;
                    worth += gpus * seat.worth;
                }
            }
        }
        let learnt = held.entry(id.clone()).or_default();
        let supply_s = seconds(supply.point());
        if learnt.seen_at.is_none_or(|seen| seen < now) {
            learnt.seen_at = Some(now);
            learnt.forecaster.learn(work, now, supply_s + swap_s);
        }
        let limit = pool.limit.map_or(u32::MAX, Gpus::get);
        // A miss is worth what it is worth to the models, by their work.
        let worth = if work > 0.0 { worth / work } else { 1.0 };
        learnt.settle(now, wish, worth, supply_s + swap_s, limit);
        decided.push(PoolDecision { pool: id.clone(), hold: Gpus::new(learnt.hold) });
    }
    decided
}

impl Held {
    /// Up at once, down when the wish for fewer has lasted, as for a model.
    fn settle(&mut self, now: Timestamp, wish: u32, worth: f64, supply_s: f64, limit: u32) {
        let (buying, keeping) = prices(supply_s);
        let outlook = self.forecaster.outlook(0.0, SLACK_S, supply_s);
        let up = outlook.best(1.0, buying, worth, self.last.0);
        let keep = outlook.best(1.0, keeping, worth, self.last.1.max(up)).max(up);
        self.last = (up, keep);
        let (up, keep) = (up.max(wish), keep.max(wish));
        let keep = self.wishes.most(now, keep, patience_s(supply_s));
        self.hold = self.hold.clamp(up, keep.max(up)).min(limit.max(wish));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_core::testing::at;

    #[test]
    fn a_pool_holds_what_serves_and_more_the_more_the_work_moves() {
        let held = |swing: f64| {
            let mut held = Held::default();
            for tick in 0..4 * 24 * 60_u64 {
                let wave = (tick as f64 / 240.0 * std::f64::consts::TAU).sin();
                let work = 40.0 + swing * wave;
                held.forecaster.learn(work, at(tick * 15), 300.0);
                held.settle(at(tick * 15), work as u32, 30.0, 300.0, u32::MAX);
                assert!(held.hold >= work as u32);
            }
            held.hold
        };
        assert!(held(0.0) <= 42, "{}", held(0.0));
        assert!(held(20.0) > 44, "{}", held(20.0));
    }

    #[test]
    fn a_limit_holds_the_pool_but_not_below_what_serves() {
        let mut held = Held::default();
        held.forecaster.learn(20.0, at(0), 300.0);
        held.settle(at(0), 10, 30.0, 300.0, 10);
        assert_eq!(held.hold, 10);
        held.settle(at(15), 12, 30.0, 300.0, 10);
        assert_eq!(held.hold, 12);
    }
}
