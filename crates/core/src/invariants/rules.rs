//! The rules, one function each. A function returns one [`Broken`] per place where its rule is broken.

use super::change::{Change, Changes, VariantChange};
use crate::decision::{Action, Decision};
use crate::ids::{ModelId, PoolId, ReplicaId, RunId, VariantId};
use crate::snapshot::{ReplicaState, Snapshot, Variant};
use std::collections::{BTreeMap, BTreeSet};

/// Where a rule is broken: the models whose decisions break it, and what is wrong in words.
pub(super) type Broken = (Vec<ModelId>, String);

/// By the decision about one model.
fn by(model: &ModelId, text: String) -> Broken {
    (vec![model.clone()], text)
}

pub(super) fn reserved_within_allocatable(
    snapshot: &Snapshot,
    changes: &Changes<'_>,
) -> Vec<Broken> {
    // Pools that are named but nobody has seen count too: what they have is unknown.
    let pools: BTreeSet<_> = snapshot.pools.keys().chain(changes.pools()).collect();
    let broken = pools.into_iter().filter_map(|id| {
        let pool = snapshot.pools.get(id);
        if pool.is_some_and(|pool| pool.can_grow) {
            return None;
        }
        let (before, after) = changes.reserved(id);
        let available = pool.and_then(|pool| pool.available().last_seen().copied());
        let fits = after <= before || available.is_some_and(|gpus| after <= gpus);
        let room = available.map_or_else(|| "unknown".to_owned(), |gpus| gpus.to_string());
        let text = || format!("pool {id}: {after} reserved, was {before}, available {room}");
        (!fits).then(|| (growing(changes, id), text()))
    });
    broken.collect()
}

/// Models that get more of a pool: without their decisions no more of it is reserved than before.
fn growing(changes: &Changes<'_>, pool: &PoolId) -> Vec<ModelId> {
    let grows = |change: &&Change<'_>| {
        let variants = change.variants.iter();
        variants.filter(|one| &one.variant.pool == pool).any(|one| one.after > one.before)
    };
    changes.models.iter().filter(grows).map(|change| change.id.clone()).collect()
}

pub(super) fn pool_limit_respected(snapshot: &Snapshot, changes: &Changes<'_>) -> Vec<Broken> {
    let broken = snapshot.pools.iter().filter_map(|(id, pool)| {
        let limit = pool.limit?;
        let (before, after) = changes.reserved(id);
        let text = || format!("pool {id}: {after} reserved, was {before}, limit {limit}");
        (after > before && after > limit).then(|| (growing(changes, id), text()))
    });
    broken.collect()
}

pub(super) fn no_scale_down_blind(changes: &[Change<'_>]) -> Vec<Broken> {
    scaled_down(changes, |change| change.blind())
}

pub(super) fn no_scale_down_while_silent(changes: &[Change<'_>]) -> Vec<Broken> {
    scaled_down(changes, |change| {
        let silent = change.model.demand.sources.silent;
        (silent > 0).then(|| format!("{silent} silent"))
    })
}

pub(super) fn waiting_work_wakes(changes: &[Change<'_>]) -> Vec<Broken> {
    let broken = changes.iter().filter_map(|change| {
        let backlog = change.model.demand.backlog.fresh().filter(|backlog| !backlog.is_zero())?;
        // A frozen model keeps what it has, and one without variants cannot have anything.
        let may = !change.model.frozen && !change.variants.is_empty();
        let may = may && !change.ceiling().is_zero();
        let starved = change.decided.is_some_and(|decided| decided.bound.can_starve());
        let asleep = change.total_before().is_zero() && change.total_after().is_zero();
        (may && asleep && !starved)
            .then(|| by(change.id, format!("model {}: {backlog} wait and it gets none", change.id)))
    });
    broken.collect()
}

/// Where replicas go although something forbids it.
fn scaled_down(changes: &[Change<'_>], why: impl Fn(&Change<'_>) -> Option<String>) -> Vec<Broken> {
    let mut broken = Vec::new();
    for change in changes {
        let Some(why) = why(change) else { continue };
        let (before, after, ceiling) =
            (change.total_before(), change.total_after(), change.ceiling());
        // A pin or a lowered maximum is an order and not a signal, so it is followed even now,
        // but not beyond what it says.
        if before > ceiling {
            if after < ceiling {
                let text = format!("model {}: {after} below the {ceiling} set", change.id);
                broken.push(by(change.id, text));
            }
            continue;
        }
        for variant in &change.variants {
            let VariantChange { id, before, after, .. } = variant;
            if after < before {
                let text = format!("variant {id}: from {before} to {after}, {why}");
                broken.push(by(change.id, text));
            }
            for replica in taken_from_service(variant) {
                broken.push(by(change.id, format!("variant {id}: {replica} removed, {why}")));
            }
        }
    }
    broken
}

/// Replicas that serve or may come to, and that the actions drain or delete. One that is replaced leaves
/// another in its place.
fn taken_from_service<'a>(change: &'a VariantChange<'_>) -> impl Iterator<Item = &'a ReplicaId> {
    let gone = change.actions.iter().filter(|action| !matches!(action, Action::Replace { .. }));
    gone.filter_map(replica_of).filter(|id| {
        let replica = change.variant.replicas.get(*id);
        replica.is_some_and(|replica| match replica.state {
            ReplicaState::Pending
            | ReplicaState::Starting
            | ReplicaState::Ready
            | ReplicaState::Unready => true,
            ReplicaState::Failed
            | ReplicaState::Lost
            | ReplicaState::Leaving
            | ReplicaState::Draining => false,
        })
    })
}

pub(super) fn replicas_within_bounds(changes: &[Change<'_>]) -> Vec<Broken> {
    // A frozen model keeps what it has, and one without variants cannot have anything.
    let judged = changes.iter().filter(|c| !c.model.frozen && !c.variants.is_empty());
    let broken = judged.filter_map(|change| {
        let (after, floor, ceiling) = (change.total_after(), change.floor(), change.ceiling());
        let asleep =
            after.is_zero() && change.model.bounds.may_sleep && change.model.pinned.is_none();
        let starved = change.decided.is_some_and(|decided| decided.bound.can_starve());
        let fits = after <= ceiling && (after >= floor || asleep || starved);
        let text = || format!("model {}: {after}, allowed {floor} to {ceiling}", change.id);
        (!fits).then(|| by(change.id, text()))
    });
    broken.collect()
}

pub(super) fn nothing_negative(decision: &Decision) -> Vec<Broken> {
    // Counts cannot be negative by type. The low end is the smallest of an interval.
    let broken = decision.models.iter().filter_map(|entry| {
        let cost = entry.expected.hourly_cost?;
        let text = || format!("model {}: cost {cost}", entry.model);
        cost.low().is_negative().then(|| by(&entry.model, text()))
    });
    broken.collect()
}

pub(super) fn each_named_once(snapshot: &Snapshot, decision: &Decision) -> Vec<Broken> {
    let mut broken = Vec::new();
    let mut named: BTreeMap<VariantId, u32> = snapshot.variants().map(|(id, _)| (id, 0)).collect();
    let mut models = BTreeSet::new();
    for entry in &decision.models {
        if !models.insert(&entry.model) {
            broken.push(by(&entry.model, format!("model {} is named twice", entry.model)));
        }
        if !snapshot.models.contains_key(&entry.model) {
            broken.push(by(&entry.model, format!("model {} is not in the snapshot", entry.model)));
        }
        for target in &entry.targets {
            if target.variant.model() != &entry.model {
                let text = format!("variant {} is under model {}", target.variant, entry.model);
                broken.push((vec![entry.model.clone(), target.variant.model().clone()], text));
            }
            match named.get_mut(&target.variant) {
                Some(count) => *count += 1,
                None => {
                    let text = format!("variant {} is not in the snapshot", target.variant);
                    broken.push(by(&entry.model, text));
                }
            }
        }
    }
    let wrong = named.iter().filter(|(_, count)| **count != 1);
    broken.extend(
        wrong.map(|(id, count)| by(id.model(), format!("variant {id} is named {count} times"))),
    );
    broken.extend(each_run_once(snapshot, decision));
    let strangers = replicas_named(snapshot, decision)
        .filter(|named| !named.variant.replicas.contains_key(named.replica));
    broken.extend(
        strangers.map(|named| {
            by(named.model, format!("replica {} is not in the snapshot", named.replica))
        }),
    );
    broken
}

fn each_run_once(snapshot: &Snapshot, decision: &Decision) -> Vec<Broken> {
    let mut broken = Vec::new();
    let mut named: BTreeMap<&RunId, u32> = snapshot.runs.keys().map(|id| (id, 0)).collect();
    for entry in &decision.runs {
        match named.get_mut(&entry.run) {
            Some(count) => *count += 1,
            None => broken.push(of_run(format!("run {} is not in the snapshot", entry.run))),
        }
    }
    let wrong = named.iter().filter(|(_, count)| **count != 1);
    broken.extend(wrong.map(|(id, count)| of_run(format!("run {id} is named {count} times"))));
    broken
}

/// By the decision about a training run: no model is to blame.
const fn of_run(text: String) -> Broken {
    (Vec::new(), text)
}

pub(super) fn no_request_killed(snapshot: &Snapshot, decision: &Decision) -> Vec<Broken> {
    let deleted = replicas_named(snapshot, decision)
        .filter(|named| matches!(named.action, Action::Delete { .. } | Action::Replace { .. }));
    let broken = deleted.filter_map(|named| {
        let replica = named.variant.replicas.get(named.replica)?;
        let (id, state) = (named.replica, replica.state);
        let text = || format!("replica {id} is {state} and may hold requests");
        (!replica.is_safe_to_delete()).then(|| by(named.model, text()))
    });
    broken.collect()
}

/// An action on a replica of a known variant.
struct Named<'a> {
    model: &'a ModelId,
    action: &'a Action,
    variant: &'a Variant,
    replica: &'a ReplicaId,
}

/// Every such action.
fn replicas_named<'a>(
    snapshot: &'a Snapshot,
    decision: &'a Decision,
) -> impl Iterator<Item = Named<'a>> {
    let targets = decision.models.iter().flat_map(|entry| {
        let model = &entry.model;
        entry.targets.iter().map(move |target| (model, target))
    });
    targets
        .filter_map(|(model, target)| Some((model, target, snapshot.variant(&target.variant)?)))
        .flat_map(|(model, target, variant)| {
            let named =
                move |action| Some(Named { model, action, variant, replica: replica_of(action)? });
            target.actions.iter().filter_map(named)
        })
}

const fn replica_of(action: &Action) -> Option<&ReplicaId> {
    match action {
        Action::Drain { replica } | Action::Delete { replica } | Action::Replace { replica } => {
            Some(replica)
        }
        Action::Start { .. } => None,
    }
}

pub(super) fn only_serving_counts(changes: &[Change<'_>]) -> Vec<Broken> {
    let mut broken = Vec::new();
    for change in changes {
        let serve = change.variants.iter().map(|one| one.variant.count(ReplicaState::Ready)).sum();
        let counted = change.decided.and_then(|decided| decided.receipt.work);
        if let Some(ready) = counted.map(|work| work.ready).filter(|ready| *ready > serve) {
            let text = format!("model {}: {ready} counted, {serve} serve", change.id);
            broken.push(by(change.id, text));
        }
        for VariantChange { id, variant, spares, .. } in &change.variants {
            let others = variant.live().get() - variant.count(ReplicaState::Ready).get();
            if spares.get() > others {
                let text =
                    format!("variant {id}: {spares} to spare for {others} that do not serve");
                broken.push(by(id.model(), text));
            }
        }
    }
    broken
}

pub(super) fn frozen_unchanged(changes: &[Change<'_>]) -> Vec<Broken> {
    let frozen = changes.iter().filter(|change| change.model.frozen);
    let broken = frozen.flat_map(|change| &change.variants).filter_map(|variant| {
        let VariantChange { id, before, after, actions, .. } = variant;
        let steps = actions.len();
        let text = || format!("variant {id}: from {before} to {after} in {steps} steps");
        (before != after || steps > 0).then(|| by(id.model(), text()))
    });
    broken.collect()
}
