//! What there is of a pool for models. What training is lent of the rest says `lend`.
//!
//! Where there is enough, everybody gets what it wants. Where not, `share` says who does.
//!
//! A model that does not act has the replicas that are there. What is shown for it takes nothing:
//! it is what the others leave free, and several that are shown something share that.

use crate::model_state::ModelState;
use crate::policy::{Lending, Policy};
use crate::share::{Place, Table, gpus};
use crate::variant_state::VariantState;
use flyball_core::decision::{Bound, Previous};
use flyball_core::ids::PoolId;
use flyball_core::snapshot::{Freshness, Pool, Snapshot};
use flyball_core::units::Gpus;
use std::collections::BTreeMap;

/// Cuts recommendations down to what pools have. Returns whether any was cut.
pub(crate) fn ration<'a>(
    states: &mut [ModelState<'a>],
    snapshot: &'a Snapshot,
    previous: &Previous,
    policy: &Policy,
) -> bool {
    let mut cut = false;
    for (id, places) in &places(states) {
        let lending = policy.lending_of(id);
        let room = Room::of(id, places, states, snapshot, previous);
        let training = if lending.on { 0 } else { room.training };
        let (acting, shown): (Vec<Place>, Vec<Place>) =
            places.iter().partition(|(s, _)| states[*s].observed.acts());
        let aside = gpus(states, &shown, ModelState::claimed).saturating_add(training);
        let mut table = Table::new(snapshot.pools.get(*id), states, places, room.bound);
        cut |= table.share(states, &acting, room.ceiling.saturating_sub(aside));
        let taken = gpus(states, &acting, ModelState::claimed).saturating_add(aside);
        let free = room.has.map_or(u32::MAX, |has| has.saturating_sub(taken));
        let there = gpus(states, &shown, |_, variant| variant.target.min(variant.live()));
        cut |= table.share(states, &shown, there.saturating_add(free));
    }
    cut
}

/// Makes up for replicas that do not serve, where the pool has room for others.
pub(crate) fn spare(states: &mut [ModelState<'_>], snapshot: &Snapshot, previous: &Previous) {
    let failing = |state: &ModelState<'_>| state.variants.iter().any(VariantState::has_failing);
    if !states.iter().any(failing) {
        return;
    }
    for (id, places) in &places(states) {
        let room = Room::of(id, places, states, snapshot, previous);
        let planned = |state: &ModelState<'_>, variant: &VariantState<'_>| {
            if state.observed.acts() { variant.planned() } else { state.claimed(variant) }
        };
        let planned = gpus(states, places, planned).saturating_add(room.training);
        let mut free = room.has.map_or(u32::MAX, |has| has.saturating_sub(planned));
        // What is only shown takes nothing, and so makes up for nothing.
        for (s, l) in places {
            if states[*s].observed.acts() {
                states[*s].variants[*l].spare(&mut free);
            }
        }
    }
}

/// What a pool has.
pub(crate) struct Room {
    /// The most that may be reserved: what there is, or what is reserved already.
    ceiling: u32,
    /// What there is, where that is known and ends.
    has: Option<u32>,
    /// What training holds.
    training: u32,
    /// Whether anything may be lent: the pool is seen, freshly, and cannot grow.
    pub(crate) lends: bool,
    /// What stops growth.
    bound: Bound,
}

impl Room {
    pub(crate) fn of(
        id: &PoolId,
        places: &[Place],
        states: &[ModelState<'_>],
        snapshot: &Snapshot,
        previous: &Previous,
    ) -> Self {
        let runs = snapshot.runs.iter().filter(|(_, run)| &run.pool == id && run.acts);
        let training = runs.map(|(id, _)| previous.run_baseline(snapshot, id).get());
        let training = training.fold(0, u32::saturating_add);
        let before = gpus(states, places, ModelState::held).saturating_add(training);
        let pool = snapshot.pools.get(id);
        let limit = pool.and_then(|pool| pool.limit).map(Gpus::get);
        let there = match pool {
            Some(Pool { can_grow: true, .. }) => None,
            Some(pool) => Some(pool.available().last_seen().map_or(0, |gpus| gpus.get())),
            None => Some(0),
        };
        let fresh = pool
            .is_some_and(|pool| !pool.can_grow && pool.available().freshness() == Freshness::Fresh);
        let has = match (there, limit) {
            (Some(there), Some(limit)) => Some(there.min(limit)),
            (there, limit) => there.or(limit),
        };
        let bound = match (there, limit) {
            (Some(there), Some(limit)) if limit < there => Bound::PoolLimit,
            (None, Some(_)) => Bound::PoolLimit,
            _ => Bound::Capacity,
        };
        Self {
            ceiling: has.map_or(u32::MAX, |has| has.max(before)),
            has,
            training,
            lends: fresh,
            bound,
        }
    }

    /// What training may hold beside so much serving.
    pub(crate) fn left(&self, serving: u32, lending: &Lending) -> u32 {
        match self.has.filter(|_| self.lends && lending.on) {
            Some(has) => has.saturating_sub(lending.keep_free.get()).saturating_sub(serving),
            None => self.ceiling.saturating_sub(serving).min(self.training),
        }
    }
}

/// Variants by their pool.
pub(crate) fn places<'a>(states: &[ModelState<'a>]) -> BTreeMap<&'a PoolId, Vec<Place>> {
    let mut places: BTreeMap<&PoolId, Vec<Place>> = BTreeMap::new();
    for (s, state) in states.iter().enumerate() {
        for (l, variant) in state.variants.iter().enumerate() {
            places.entry(&variant.observed.pool).or_default().push((s, l));
        }
    }
    places
}
