//! Who gets the accelerators of a pool, and what training is lent of the rest.
//!
//! Where there are enough, everybody gets what it wants. Where not, they go one by one to where
//! one avoids the most money in misses, which is what makes one price for all models of a pool.
//! What a model has it keeps, unless another would use it for clearly more: queues as the measure
//! flipped owners every 15 s and evicted running pods (llm-d-autoscaling#1427).
//!
//! A model that does not act has the replicas that are there. What is shown for it takes nothing:
//! it is what the others leave free, and several that are shown something share that.

use crate::lane::Lane;
use crate::policy::Lending;
use crate::seat::Seat;
use flyball_core::decision::{Bound, Previous, RunAction, RunDecision};
use flyball_core::ids::{PoolId, RunId};
use flyball_core::reason::Reason;
use flyball_core::snapshot::{Freshness, Pool, Snapshot, TrainingRun};
use flyball_core::units::{Gpus, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Another model must value a replica by this much more to get it.
const CLEARLY_MORE: f64 = 1.5;

/// So often those who got nothing are asked again.
const PASSES: u32 = 3;

/// A variant of a model: seat and lane.
type Place = (usize, usize);

/// Cuts wishes down to what pools have. Returns whether any was cut.
pub(crate) fn ration(
    seats: &mut [Seat<'_>],
    snapshot: &Snapshot,
    previous: &Previous,
    lending: &Lending,
) -> bool {
    let mut cut = false;
    for (id, places) in &places(seats) {
        let room = Room::of(id, places, seats, snapshot, previous);
        let training = if lending.on { 0 } else { room.training };
        let (acting, shown): (Vec<Place>, Vec<Place>) =
            places.iter().partition(|(s, _)| seats[*s].model.acts());
        let aside = gpus(seats, &shown, Seat::claimed).saturating_add(training);
        cut |= share(seats, &acting, room.ceiling.saturating_sub(aside), room.bound);
        let taken = gpus(seats, &acting, Seat::claimed).saturating_add(aside);
        let free = room.has.map_or(u32::MAX, |has| has.saturating_sub(taken));
        let there = gpus(seats, &shown, |_, lane| lane.target.min(lane.live()));
        cut |= share(seats, &shown, there.saturating_add(free), room.bound);
    }
    cut
}

/// Makes up for replicas that do not serve, where the pool has room for others.
pub(crate) fn spare(seats: &mut [Seat<'_>], snapshot: &Snapshot, previous: &Previous) {
    let failing = |seat: &Seat<'_>| seat.lanes.iter().any(Lane::has_failing);
    if !seats.iter().any(failing) {
        return;
    }
    for (id, places) in &places(seats) {
        let room = Room::of(id, places, seats, snapshot, previous);
        let planned = |seat: &Seat<'_>, lane: &Lane<'_>| {
            if seat.model.acts() { lane.planned() } else { seat.claimed(lane) }
        };
        let planned = gpus(seats, places, planned).saturating_add(room.training);
        let mut free = room.has.map_or(u32::MAX, |has| has.saturating_sub(planned));
        // What is only shown takes nothing, and so makes up for nothing.
        for (s, l) in places {
            if seats[*s].model.acts() {
                seats[*s].lanes[*l].spare(&mut free);
            }
        }
    }
}

/// Lends what is left.
pub(crate) fn lend(
    seats: &[Seat<'_>],
    snapshot: &Snapshot,
    previous: &Previous,
    lending: &Lending,
    lent_at: &mut BTreeMap<PoolId, Timestamp>,
) -> Vec<RunDecision> {
    if snapshot.runs.is_empty() {
        return Vec::new();
    }
    let places = places(seats);
    let mut pools: BTreeMap<&PoolId, Vec<(&RunId, &TrainingRun)>> = BTreeMap::new();
    for (id, run) in &snapshot.runs {
        pools.entry(&run.pool).or_default().push((id, run));
    }
    let mut decided = BTreeMap::new();
    for (id, mut runs) in pools {
        let none = Vec::new();
        let here = places.get(id).unwrap_or(&none);
        let room = Room::of(id, here, seats, snapshot, previous);
        let serving = gpus(seats, here, Seat::claimed);
        let left = room.left(serving, lending);
        // Kept longest: what must be done first, then what would lose most work.
        runs.sort_by_key(|(id, run)| {
            let no_deadline = run.deadline.is_none();
            (no_deadline, run.deadline, run.last_saved.last_seen().copied(), *id)
        });
        let now = snapshot.taken_at;
        let settled = lent_at
            .get(id)
            .is_none_or(|last| now.since(*last).is_some_and(|age| age >= lending.settle));
        let may_grow = lending.on && settled && room.lends;
        let mut left = left;
        let mut changed = false;
        for (run_id, run) in runs {
            let before = previous.run_baseline(snapshot, run_id).get();
            let most = if may_grow { run.most.get().max(before) } else { before };
            let mut gets = most.min(left);
            if gets < run.least.get() && gets < before {
                gets = 0;
            }
            if gets < run.least.get() && before == 0 {
                gets = 0;
            }
            changed |= gets != before;
            left -= gets;
            decided.insert(run_id, (Gpus::new(before), Gpus::new(gets)));
        }
        if changed {
            lent_at.insert(id.clone(), now);
        }
    }
    let decision = |(run, (before, gpus)): (&RunId, (Gpus, Gpus))| {
        let action = RunAction::between(before, gpus);
        let reason = match action {
            RunAction::Grow => Reason::Lent,
            RunAction::Shrink => Reason::TakenBack,
            RunAction::Hold => Reason::Steady,
        };
        RunDecision { run: run.clone(), gpus, reason, action }
    };
    decided.into_iter().map(decision).collect()
}

/// What a pool has.
struct Room {
    /// The most that may be reserved: what there is, or what is reserved already.
    ceiling: u32,
    /// What there is, where that is known and ends.
    has: Option<u32>,
    /// What training holds.
    training: u32,
    /// Whether anything may be lent: the pool is seen, freshly, and cannot grow.
    lends: bool,
    /// What stops growth.
    bound: Bound,
}

impl Room {
    fn of(
        id: &PoolId,
        places: &[Place],
        seats: &[Seat<'_>],
        snapshot: &Snapshot,
        previous: &Previous,
    ) -> Self {
        let runs = snapshot.runs.iter().filter(|(_, run)| &run.pool == id);
        let training = runs.map(|(id, _)| previous.run_baseline(snapshot, id).get());
        let training = training.fold(0, u32::saturating_add);
        let before = gpus(seats, places, Seat::held).saturating_add(training);
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
    fn left(&self, serving: u32, lending: &Lending) -> u32 {
        match self.has.filter(|_| self.lends && lending.on) {
            Some(has) => has.saturating_sub(lending.keep_free.get()).saturating_sub(serving),
            None => self.ceiling.saturating_sub(serving).min(self.training),
        }
    }
}

fn places<'a>(seats: &[Seat<'a>]) -> BTreeMap<&'a PoolId, Vec<Place>> {
    let mut places: BTreeMap<&PoolId, Vec<Place>> = BTreeMap::new();
    for (s, seat) in seats.iter().enumerate() {
        for (l, lane) in seat.lanes.iter().enumerate() {
            places.entry(&lane.variant.pool).or_default().push((s, l));
        }
    }
    places
}

fn gpus<'s>(seats: &[Seat<'s>], places: &[Place], of: impl Fn(&Seat<'s>, &Lane<'s>) -> u32) -> u32 {
    let each = places.iter().map(|(s, l)| {
        let lane = &seats[*s].lanes[*l];
        of(&seats[*s], lane).saturating_mul(lane.gpus())
    });
    each.fold(0, u32::saturating_add)
}

/// What a lane has before anything is given out. What is shown for a model is held where nobody can
/// tell that less would do, and else begins anew with what is there.
fn kept(seat: &Seat<'_>, lane: &Lane<'_>) -> u32 {
    let holds = seat.model.acts() || seat.model.frozen || seat.blind;
    if holds { lane.baseline } else { lane.live() }
}

/// Gives out `most` accelerators, where more are wanted. Returns whether they are.
fn share(seats: &mut [Seat<'_>], places: &[Place], most: u32, bound: Bound) -> bool {
    if gpus(seats, places, |_, lane| lane.target) <= most {
        return false;
    }
    let wanted: Vec<u32> = places.iter().map(|(s, l)| seats[*s].lanes[*l].target).collect();
    for (s, l) in places {
        let kept = kept(&seats[*s], &seats[*s].lanes[*l]);
        let lane = &mut seats[*s].lanes[*l];
        lane.target = lane.target.min(kept);
    }
    let mut free = most.saturating_sub(gpus(seats, places, |_, lane| lane.target));
    // Who cannot be helped does not keep what is free from others. What one got may be what another can
    // then take, so that they are asked again.
    let (mut done, mut gave, mut passes) = (BTreeSet::new(), false, 0);
    loop {
        let short = (0..places.len())
            .filter(|n| seat_lane(seats, places[*n]).target < wanted[*n] && !done.contains(n));
        let best = short
            .map(|n| (value(&seats[places[n].0], places[n].1, true), n))
            .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        let Some((worth, n)) = best else {
            if !gave || passes == PASSES {
                break;
            }
            (done, gave, passes) = (BTreeSet::new(), false, passes + 1);
            continue;
        };
        let needs = seat_lane(seats, places[n]).gpus();
        if free < needs {
            free += take(seats, places, needs - free, worth, places[n]);
        }
        if free < needs {
            done.insert(n);
            continue;
        }
        (free, gave) = (free - needs, true);
        seats[places[n].0].lanes[places[n].1].target += 1;
    }
    for (n, (s, l)) in places.iter().enumerate() {
        let lane = &mut seats[*s].lanes[*l];
        if lane.target < wanted[n] {
            lane.granted = Some(lane.target);
            seats[*s].bound = bound;
            seats[*s].reason = match bound {
                Bound::PoolLimit => Reason::LimitReached,
                _ => Reason::CapacityUnavailable,
            };
        }
    }
    true
}

fn seat_lane<'a, 'b>(seats: &'b [Seat<'a>], place: Place) -> &'b Lane<'a> {
    &seats[place.0].lanes[place.1]
}

/// Takes replicas from models that value them clearly less, until so many accelerators are free.
/// Returns how many were freed; none, if not enough can be.
fn take(seats: &mut [Seat<'_>], places: &[Place], needs: u32, worth: f64, by: Place) -> u32 {
    if !seats[by.0].model.acts() {
        return 0;
    }
    let mut taken: Vec<Place> = Vec::new();
    let mut freed = 0;
    while freed < needs {
        let givers = places.iter().filter(|place| place.0 != by.0 && gives(seats, **place));
        let least = givers
            .map(|place| (value(&seats[place.0], place.1, false), *place))
            .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let Some((least, place)) = least.filter(|(least, _)| least * CLEARLY_MORE < worth) else {
            for place in taken {
                seats[place.0].lanes[place.1].target += 1;
            }
            return 0;
        };
        debug_assert!(least.is_finite());
        seats[place.0].lanes[place.1].target -= 1;
        taken.push(place);
        freed += seat_lane(seats, place).gpus();
    }
    freed
}

/// Whether a replica may be taken from here.
fn gives(seats: &[Seat<'_>], place: Place) -> bool {
    let (seat, lane) = (&seats[place.0], seat_lane(seats, place));
    let free = !seat.blind && !seat.model.frozen && seat.model.pinned.is_none();
    let recent = lane.is_recent(lane.last.and_then(|last| last.started), seat.now);
    free && !recent && lane.target > 0 && seat.target() > seat.floor().max(1)
}

/// Money per hour and accelerator that the next replica of a variant avoids in misses, or that
/// the last one does.
fn value(seat: &Seat<'_>, lane: usize, next: bool) -> f64 {
    // Below the owner's floor there is nothing to weigh.
    let total = seat.target();
    if seat.model.pinned.is_some() || (next && total < seat.floor().max(1)) {
        return f64::MAX;
    }
    let capacity: f64 = seat.lanes.iter().map(|lane| f64::from(lane.target) * lane.size).sum();
    let lane = &seat.lanes[lane];
    let price = seat.lanes[seat.main].price();
    let Some(outlook) = &seat.outlook else { return price / f64::from(lane.gpus().max(1)) };
    let (low, high) =
        if next { (capacity, capacity + lane.size) } else { (capacity - lane.size, capacity) };
    let avoided = (outlook.misses(low.max(0.0)) - outlook.misses(high)).max(0.0);
    avoided * seat.worth * price / f64::from(lane.gpus().max(1))
}
