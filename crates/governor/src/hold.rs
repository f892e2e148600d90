//! How many accelerators a pool holds ahead of demand, where any model may use any of them.
//!
//! Surprises of several models rarely come together, so the spare of a pool is smaller than the sum
//! of the spares of its models. The law is the one of a single model, asked of the sum of the work:
//! a model then looks ahead only as far as a swap takes, and the pool as far as a purchase does.

use crate::forecast::{Forecaster, horizon_s};
use crate::scale::{Wishes, patience_s, prices};
use crate::seat::Seat;
use crate::starts::seconds;
use flyball_core::decision::PoolDecision;
use flyball_core::ids::PoolId;
use flyball_core::snapshot::Snapshot;
use flyball_core::units::{Gpus, Timestamp};
use std::collections::BTreeMap;

/// What was learnt about one pool.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PoolMemory {
    seen_at: Option<Timestamp>,
    forecaster: Forecaster,
    wishes: Wishes,
    /// What was held last.
    hold: u32,
}

/// Settles how many accelerators each shared pool holds.
pub(crate) fn hold(
    seats: &[Seat<'_>],
    snapshot: &Snapshot,
    memory: &mut BTreeMap<PoolId, PoolMemory>,
) -> Vec<PoolDecision> {
    let shared = snapshot.pools.iter().filter(|(_, pool)| pool.swap.is_some() && pool.can_grow);
    let decided = shared.map(|(id, pool)| {
        let demand = Demand::of(id, seats);
        let learnt = memory.entry(id.clone()).or_default();
        let hold = learnt.decide(&demand, snapshot.taken_at);
        let limit = pool.limit.map_or(u32::MAX, Gpus::get);
        let hold = hold.min(limit).max(demand.used);
        PoolDecision { pool: id.clone(), hold: Gpus::new(hold), used: Gpus::new(demand.used) }
    });
    decided.collect()
}

/// What the models of a pool ask of it.
#[derive(Clone, Copy, Debug, Default)]
struct Demand {
    /// Work of this moment, in accelerators.
    work: f64,
    /// Accelerators of all targets.
    used: u32,
    /// Longest purchase, and the shortest wait that misses an objective.
    cold_s: f64,
    slack_s: f64,
    /// What a miss is worth on average, in prices of an accelerator.
    worth: f64,
    /// Whether the work of any model is not known.
    blind: bool,
}

impl Demand {
    fn of(pool: &PoolId, seats: &[Seat<'_>]) -> Self {
        let mut demand = Self { slack_s: f64::INFINITY, ..Self::default() };
        let mut weight = 0.0;
        for seat in seats {
            for (n, lane) in seat.lanes.iter().enumerate() {
                if &lane.variant.pool != pool {
                    continue;
                }
                demand.used = demand.used.saturating_add(lane.target.saturating_mul(lane.gpus()));
                demand.cold_s = demand.cold_s.max(lane.bought_s);
                if n != seat.main {
                    continue;
                }
                demand.blind |= seat.blind;
                let work = seat.work_now / lane.size * f64::from(lane.gpus());
                let slack_s = seat.model.objectives.first_token.map_or(2.0, seconds).max(0.1);
                demand.slack_s = demand.slack_s.min(slack_s);
                demand.work += work;
                demand.worth += work * seat.worth;
                weight += work;
            }
        }
        demand.worth = if weight > 0.0 { demand.worth / weight } else { 0.0 };
        demand
    }
}

impl PoolMemory {
    fn decide(&mut self, demand: &Demand, now: Timestamp) -> u32 {
        // Without knowing the work of all, nothing is given back.
        if demand.blind {
            return self.hold;
        }
        if self.seen_at.is_none_or(|seen| seen < now) {
            self.seen_at = Some(now);
            self.forecaster.learn(demand.work, now, demand.cold_s);
        }
        let outlook = self.forecaster.outlook(0.0, demand.slack_s, horizon_s(demand.cold_s));
        let (up, keep) = self.wishes.weigh(&outlook, 1.0, demand.worth, prices(demand.cold_s));
        let keep = self.wishes.most(now, keep, patience_s(demand.cold_s));
        self.hold = self.hold.max(up).min(keep.max(up));
        self.hold
    }
}
