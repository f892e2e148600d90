//! How many accelerators a pool holds for all its models together.
//!
//! Where a replica that finds an accelerator starts in seconds, it is the accelerator that has to
//! be asked for ahead. Models rarely peak together, so the sum of their wishes moves less than
//! each of them: holding for the sum is what makes a shared pool cheaper than pools apart.

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
    hold: u32,
    seen_at: Option<Timestamp>,
}

/// What a missing accelerator of the pool is worth, in its own prices. The same as the work of a
/// replica missed at one request in a hundred, since that is what is missed without it.
const WORTH: f64 = 30.0;

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
        let lanes = seats.iter().flat_map(|seat| &seat.lanes);
        let here = lanes.filter(|lane| &lane.variant.pool == id);
        let (mut wish, mut swap_s) = (0_u32, 0.0_f64);
        for lane in here {
            wish = wish.saturating_add(lane.target.saturating_mul(lane.gpus()));
            swap_s = swap_s.max(lane.usual_s);
        }
        let learnt = held.entry(id.clone()).or_default();
        let supply_s = seconds(supply.point());
        if learnt.seen_at.is_none_or(|seen| seen < now) {
            learnt.seen_at = Some(now);
            learnt.forecaster.learn_total(f64::from(wish), now, supply_s + swap_s);
        }
        let limit = pool.limit.map_or(u32::MAX, Gpus::get);
        learnt.settle(now, wish, supply_s, limit);
        decided.push(PoolDecision { pool: id.clone(), hold: Gpus::new(learnt.hold) });
    }
    decided
}

impl Held {
    /// Up at once, down when the wish for fewer has lasted, as for a model.
    fn settle(&mut self, now: Timestamp, wish: u32, supply_s: f64, limit: u32) {
        let (buying, keeping) = prices(supply_s);
        let total = |price: f64| {
            let share = 1.0 - price / WORTH;
            let most = self.forecaster.total(f64::from(wish), share);
            ((most - 0.5).ceil().max(0.0) as u32).max(wish)
        };
        let (up, keep) = (total(buying), total(keeping));
        let keep = self.wishes.most(now, keep.max(up), patience_s(supply_s));
        self.hold = self.hold.clamp(up, keep.max(up)).min(limit.max(wish));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_core::testing::at;

    #[test]
    fn a_pool_holds_the_wish_and_more_the_more_the_wish_moves() {
        let held = |swing: f64| {
            let mut held = Held::default();
            for tick in 0..4 * 24 * 60_u64 {
                let wave = (tick as f64 / 240.0 * std::f64::consts::TAU).sin();
                let wish = (40.0 + swing * wave).round() as u32;
                held.forecaster.learn_total(f64::from(wish), at(tick * 15), 300.0);
                held.settle(at(tick * 15), wish, 300.0, u32::MAX);
                assert!(held.hold >= wish);
            }
            held.hold
        };
        assert_eq!(held(0.0), 40);
        assert!(held(20.0) > 44, "{}", held(20.0));
    }

    #[test]
    fn a_limit_holds_the_pool_but_not_below_what_serves() {
        let mut held = Held::default();
        held.forecaster.learn_total(10.0, at(0), 300.0);
        held.settle(at(0), 10, 300.0, 10);
        assert_eq!(held.hold, 10);
        held.settle(at(15), 12, 300.0, 10);
        assert_eq!(held.hold, 12);
    }
}
