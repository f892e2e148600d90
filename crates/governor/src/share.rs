//! Who gets the accelerators of a pool that has too few, and who gives way.
//!
//! Inside a namespace they go one by one to where one avoids the most money in misses; what a model
//! has it keeps, unless another would use it for clearly more: queues as the measure flipped owners
//! every 15 s and evicted running pods (llm-d-autoscaling#1427).
//!
//! Between namespaces only the pool's owner has a say, because `min`, `missCost` and objectives are
//! numbers that tenants choose: a namespace gets back what it is guaranteed from those that have
//! more than theirs, and one of a higher priority takes what is above a guarantee. What is free goes
//! by the same order, and among equals to the namespace with the least. Kueue's quotas, cohorts and
//! priorities are the model.
//!
//! Nothing is taken for a variant whose replicas do not come when they are asked for.

use crate::model_state::ModelState;
use crate::variant_state::VariantState;
use flyball_core::decision::Bound;
use flyball_core::ids::Namespace;
use flyball_core::reason::Reason;
use flyball_core::snapshot::{Pool, Share};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

/// A variant of a model: state and variant.
pub(crate) type Place = (usize, usize);

/// Another model of the namespace must value a replica by this much more to get it.
const CLEARLY_MORE: f64 = 1.5;

/// What one got may be what another can then take, so that all are asked again, at most so often.
const PASSES: u32 = 4;

/// One pool while it is given out.
pub(crate) struct Table<'a> {
    pool: Option<&'a Pool>,
    /// Accelerators that each namespace has so far.
    has: BTreeMap<&'a Namespace, u32>,
    bound: Bound,
}

impl<'a> Table<'a> {
    /// With what the variants at `places` claim.
    pub(crate) fn new(
        pool: Option<&'a Pool>,
        states: &[ModelState<'a>],
        places: &[Place],
        bound: Bound,
    ) -> Self {
        let mut table = Self { pool, has: BTreeMap::new(), bound };
        for place in places {
            let state = &states[place.0];
            table.add(states, *place, state.claimed(&state.variants[place.1]), true);
        }
        table
    }

    /// Gives out `most` accelerators, where more are wanted. Returns whether they are.
    pub(crate) fn share(
        &mut self,
        states: &mut [ModelState<'a>],
        places: &[Place],
        most: u32,
    ) -> bool {
        if gpus(states, places, |_, variant| variant.target) <= most {
            return false;
        }
        let targets: Vec<u32> = places.iter().map(|place| variant(states, *place).target).collect();
        for place in places {
            let (state, variant) = (&states[place.0], variant(states, *place));
            let (claimed, begins) =
                (state.claimed(variant), variant.target.min(held(state, variant)));
            self.add(states, *place, claimed, false);
            self.add(states, *place, begins, true);
            states[place.0].variants[place.1].target = begins;
        }
        let mut free = most.saturating_sub(gpus(states, places, |_, variant| variant.target));
        for _ in 0..PASSES {
            if !self.pass(states, places, &targets, &mut free) {
                break;
            }
        }
        self.note_bound(states, places, &targets);
        true
    }

    /// Gives until nobody who is short can get any more. Returns whether anybody got anything.
    fn pass(
        &mut self,
        states: &mut [ModelState<'a>],
        places: &[Place],
        targets: &[u32],
        free: &mut u32,
    ) -> bool {
        let mut gave = false;
        // Those who cannot be helped do not keep what is free from others.
        let mut done: BTreeSet<usize> = BTreeSet::new();
        loop {
            let short = (0..places.len())
                .filter(|n| variant(states, places[*n]).target < targets[*n] && !done.contains(n));
            let best = short
                .map(|n| (self.turn(states, places[n]), value(states, places[n], true), n))
                .max_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(b.2.cmp(&a.2)));
            let Some((_, worth, n)) = best else { return gave };
            let needs = variant(states, places[n]).gpus();
            if *free < needs {
                *free += self.take(states, places, needs - *free, worth, places[n]);
            }
            if *free < needs {
                done.insert(n);
                continue;
            }
            *free -= needs;
            self.change(states, places[n], true);
            gave = true;
        }
    }

    /// Says to those who got less than they want what stopped them.
    fn note_bound(&self, states: &mut [ModelState<'a>], places: &[Place], before: &[u32]) {
        for ((s, l), before) in places.iter().zip(before) {
            let variant = &mut states[*s].variants[*l];
            if variant.target < *before {
                variant.granted = Some(variant.target);
                states[*s].bound = self.bound;
                states[*s].reason = match self.bound {
                    Bound::PoolLimit => Reason::LimitReached,
                    _ => Reason::CapacityUnavailable,
                };
            }
        }
    }

    /// Takes replicas from others until so many accelerators are free. Returns how many were freed;
    /// none, if not enough can be.
    fn take(
        &mut self,
        states: &mut [ModelState<'a>],
        places: &[Place],
        needs: u32,
        worth: f64,
        by: Place,
    ) -> u32 {
        if !states[by.0].observed.acts() || !variant(states, by).comes() {
            return 0;
        }
        let mut taken: Vec<Place> = Vec::new();
        let mut freed = 0;
        while freed < needs {
            let next = places
                .iter()
                .filter_map(|place| Some((self.gives(states, *place, by, worth)?, *place)))
                .min_by(|a, b| a.0.order(&b.0).then(a.1.cmp(&b.1)));
            let Some((_, place)) = next else {
                for place in taken {
                    self.change(states, place, true);
                }
                return 0;
            };
            self.change(states, place, false);
            taken.push(place);
            freed += variant(states, place).gpus();
        }
        freed
    }

    /// What a replica of here is to who would take it, if it may be taken.
    fn gives(
        &self,
        states: &[ModelState<'a>],
        place: Place,
        by: Place,
        worth: f64,
    ) -> Option<Gift> {
        let (state, variant, taker) = (&states[place.0], variant(states, place), &states[by.0]);
        if place.0 == by.0 || state.blind || !state.observed.acts() || variant.target == 0 {
            return None;
        }
        let value = value(states, place, false);
        let (from, to) = (state.id.namespace(), taker.id.namespace());
        if from == to {
            let recent = variant.is_recent(variant.last.and_then(|last| last.started), state.now);
            let spare = state.observed.pinned.is_none() && state.target() > state.floor().max(1);
            let gives = spare && !recent && value * CLEARLY_MORE < worth;
            return gives.then_some(Gift { priority: None, value });
        }
        // Neither `min` nor a pin holds against another namespace: both are tenants' words.
        let (of, priority) = (self.of(from), self.of(from).priority);
        let right = priority < self.of(to).priority || self.is_owed(states, by);
        let left = self.has(from).checked_sub(variant.gpus());
        let spare = left.is_some_and(|left| left >= of.guaranteed.get());
        (right && spare).then_some(Gift { priority: Some(priority), value })
    }

    /// The order in which variants get what is free: those that come, those below their guarantee,
    /// then by priority, then whoever's namespace has least above its guarantee.
    fn turn(&self, states: &[ModelState<'a>], place: Place) -> (bool, bool, i32, Reverse<u32>) {
        let namespace = states[place.0].id.namespace();
        let share = self.of(namespace);
        let above = self.has(namespace).saturating_sub(share.guaranteed.get());
        let comes = variant(states, place).comes();
        (comes, self.is_owed(states, place), share.priority, Reverse(above))
    }

    /// Whether one more replica is within what its namespace is guaranteed.
    fn is_owed(&self, states: &[ModelState<'a>], place: Place) -> bool {
        let namespace = states[place.0].id.namespace();
        let has = self.has(namespace).saturating_add(variant(states, place).gpus());
        has <= self.of(namespace).guaranteed.get()
    }

    fn of(&self, namespace: &Namespace) -> Share {
        self.pool.map(|pool| pool.share_of(namespace)).unwrap_or_default()
    }

    fn has(&self, namespace: &Namespace) -> u32 {
        self.has.get(namespace).copied().unwrap_or(0)
    }

    /// One replica more, or one fewer.
    fn change(&mut self, states: &mut [ModelState<'a>], place: Place, more: bool) {
        self.add(states, place, 1, more);
        let target = &mut states[place.0].variants[place.1].target;
        *target = if more { *target + 1 } else { *target - 1 };
    }

    /// Counts replicas of a variant for its namespace, or no longer does.
    fn add(&mut self, states: &[ModelState<'a>], place: Place, replicas: u32, more: bool) {
        let gpus = replicas.saturating_mul(variant(states, place).gpus());
        let has = self.has.entry(states[place.0].id.namespace()).or_default();
        *has = if more { has.saturating_add(gpus) } else { has.saturating_sub(gpus) };
    }
}

/// A replica that may be taken.
struct Gift {
    /// That of its namespace, if it is another than the taker's.
    priority: Option<i32>,
    value: f64,
}

impl Gift {
    /// Of another namespace first, and of them the lowest priority; then what avoids least.
    fn order(&self, other: &Self) -> Ordering {
        let own = self.priority.is_none().cmp(&other.priority.is_none());
        own.then(self.priority.cmp(&other.priority)).then(self.value.total_cmp(&other.value))
    }
}

/// What a variant has before anything is given out. What was asked for and never came is not had.
/// What is shown for a model is held where nobody can tell that less would do, and else begins anew
/// with what is there.
fn held(state: &ModelState<'_>, variant: &VariantState<'_>) -> u32 {
    if state.observed.frozen || state.blind || (state.observed.acts() && variant.comes()) {
        return variant.baseline;
    }
    if state.observed.acts() { variant.baseline.min(variant.live()) } else { variant.live() }
}

/// Accelerators of variants, by how many replicas of each are counted.
pub(crate) fn gpus<'s>(
    states: &[ModelState<'s>],
    places: &[Place],
    of: impl Fn(&ModelState<'s>, &VariantState<'s>) -> u32,
) -> u32 {
    let each = places.iter().map(|(s, l)| {
        let variant = &states[*s].variants[*l];
        of(&states[*s], variant).saturating_mul(variant.gpus())
    });
    each.fold(0, u32::saturating_add)
}

fn variant<'a, 'b>(states: &'b [ModelState<'a>], place: Place) -> &'b VariantState<'a> {
    &states[place.0].variants[place.1]
}

/// Money per hour and accelerator that the next replica of a variant avoids in misses, or that
/// the last one does.
fn value(states: &[ModelState<'_>], (s, l): Place, next: bool) -> f64 {
    let state = &states[s];
    // Below the owner's floor there is nothing to weigh.
    let total = state.target();
    if state.observed.pinned.is_some() || (next && total < state.floor().max(1)) {
        return f64::MAX;
    }
    let capacity = state.alone(|variant| variant.target);
    let variant = &state.variants[l];
    let price = state.variants[state.main].price();
    let Some(outlook) = &state.outlook else { return price / f64::from(variant.gpus().max(1)) };
    let (low, high) = if next {
        (capacity, capacity + variant.size)
    } else {
        (capacity - variant.size, capacity)
    };
    let low = low.max(0.0);
    let misses = |alone: f64| outlook.misses(state.together(alone));
    let fewer = |to: f64| (misses(low) - misses(to)).max(0.0);
    // Far below what is needed everything misses, and one replica more changes nothing by itself. It
    // counts as its part of all that are missing, or whoever is starved would stay so.
    let goal = state.goal.filter(|goal| *goal > high);
    let part = goal.map_or(0.0, |goal| fewer(goal) * variant.size / (goal - low));
    let avoided = fewer(high).max(part);
    avoided * state.worth * price / f64::from(variant.gpus().max(1))
}
