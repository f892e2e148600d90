//! The rules, one function each. A function returns one text per place where its rule is broken.

use super::change::{Change, Changes, VariantChange};
use crate::decision::{Action, Decision};
use crate::ids::{ReplicaId, RunId, VariantId};
use crate::snapshot::{ReplicaState, Snapshot, Variant};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn reserved_within_allocatable(
    snapshot: &Snapshot,
    changes: &Changes<'_>,
) -> Vec<String> {
    // Pools that are named but nobody has seen count too: what they have is unknown.
    let pools: BTreeSet<_> = snapshot.pools.keys().chain(changes.pools()).collect();
    let broken = pools.into_iter().filter_map(|id| {
        let pool = snapshot.pools.get(id);
        if pool.is_some_and(|pool| pool.can_grow) {
            return None;
        }
        let (before, after) = changes.reserved(id);
        let allocatable = pool.and_then(|pool| pool.total_allocatable().last_seen().copied());
        let fits = after <= before || allocatable.is_some_and(|gpus| after <= gpus);
        let room = allocatable.map_or_else(|| "unknown".to_owned(), |gpus| gpus.to_string());
        (!fits).then(|| format!("pool {id}: {after} reserved, was {before}, allocatable {room}"))
    });
    broken.collect()
}

pub(super) fn pool_limit_respected(snapshot: &Snapshot, changes: &Changes<'_>) -> Vec<String> {
    let broken = snapshot.pools.iter().filter_map(|(id, pool)| {
        let limit = pool.limit?;
        let (before, after) = changes.reserved(id);
        (after > before && after > limit)
            .then(|| format!("pool {id}: {after} reserved, was {before}, limit {limit}"))
    });
    broken.collect()
}

pub(super) fn no_scale_down_blind(changes: &[Change<'_>]) -> Vec<String> {
    let mut broken = Vec::new();
    for change in changes {
        let Some(why) = change.blind() else { continue };
        let (before, after, ceiling) =
            (change.total_before(), change.total_after(), change.ceiling());
        // A pin or a lowered maximum is an order and not a signal, so it is followed even now,
        // but not beyond what it says.
        if before > ceiling {
            if after < ceiling {
                broken.push(format!("model {}: {after} below the {ceiling} set", change.id));
            }
            continue;
        }
        for variant in &change.variants {
            let VariantChange { id, before, after, .. } = variant;
            if after < before {
                broken.push(format!("variant {id}: from {before} to {after}, {why}"));
            }
            for replica in taken_from_service(variant) {
                broken.push(format!("variant {id}: {replica} removed, {why}"));
            }
        }
    }
    broken
}

/// Live replicas that the actions drain or delete.
fn taken_from_service<'a>(change: &'a VariantChange<'_>) -> impl Iterator<Item = &'a ReplicaId> {
    change.actions.iter().filter_map(replica_of).filter(|id| {
        let replica = change.variant.replicas.get(*id);
        replica.is_some_and(|replica| replica.state != ReplicaState::Draining)
    })
}

pub(super) fn replicas_within_bounds(changes: &[Change<'_>]) -> Vec<String> {
    // A frozen model keeps what it has, and one without variants cannot have anything.
    let judged = changes.iter().filter(|c| !c.model.frozen && !c.variants.is_empty());
    let broken = judged.filter_map(|change| {
        let (after, floor, ceiling) = (change.total_after(), change.floor(), change.ceiling());
        let asleep =
            after.is_zero() && change.model.bounds.may_sleep && change.model.pinned.is_none();
        let starved = change.decided.is_some_and(|decided| decided.bound.can_starve());
        let fits = after <= ceiling && (after >= floor || asleep || starved);
        (!fits).then(|| format!("model {}: {after}, allowed {floor} to {ceiling}", change.id))
    });
    broken.collect()
}

pub(super) fn nothing_negative(decision: &Decision) -> Vec<String> {
    // Counts cannot be negative by type. The low end is the smallest of an interval.
    let broken = decision.models.iter().filter_map(|entry| {
        let cost = entry.expected.hourly_cost?;
        cost.low().is_negative().then(|| format!("model {}: cost {cost}", entry.model))
    });
    broken.collect()
}

pub(super) fn each_named_once(snapshot: &Snapshot, decision: &Decision) -> Vec<String> {
    let mut broken = Vec::new();
    let mut named: BTreeMap<VariantId, u32> = snapshot.variants().map(|(id, _)| (id, 0)).collect();
    let mut models = BTreeSet::new();
    for entry in &decision.models {
        if !models.insert(&entry.model) {
            broken.push(format!("model {} is named twice", entry.model));
        }
        if !snapshot.models.contains_key(&entry.model) {
            broken.push(format!("model {} is not in the snapshot", entry.model));
        }
        for target in &entry.targets {
            if target.variant.model() != &entry.model {
                broken.push(format!("variant {} is under model {}", target.variant, entry.model));
            }
            match named.get_mut(&target.variant) {
                Some(count) => *count += 1,
                None => broken.push(format!("variant {} is not in the snapshot", target.variant)),
            }
        }
    }
    let wrong = named.iter().filter(|(_, count)| **count != 1);
    broken.extend(wrong.map(|(id, count)| format!("variant {id} is named {count} times")));
    broken.extend(each_run_once(snapshot, decision));
    let strangers = replicas_named(snapshot, decision)
        .filter(|(_, variant, id)| !variant.replicas.contains_key(*id));
    broken.extend(strangers.map(|(_, _, id)| format!("replica {id} is not in the snapshot")));
    broken
}

fn each_run_once(snapshot: &Snapshot, decision: &Decision) -> Vec<String> {
    let mut broken = Vec::new();
    let mut named: BTreeMap<&RunId, u32> = snapshot.runs.keys().map(|id| (id, 0)).collect();
    for entry in &decision.runs {
        match named.get_mut(&entry.run) {
            Some(count) => *count += 1,
            None => broken.push(format!("run {} is not in the snapshot", entry.run)),
        }
    }
    let wrong = named.iter().filter(|(_, count)| **count != 1);
    broken.extend(wrong.map(|(id, count)| format!("run {id} is named {count} times")));
    broken
}

pub(super) fn no_request_killed(snapshot: &Snapshot, decision: &Decision) -> Vec<String> {
    let deleted = replicas_named(snapshot, decision)
        .filter(|(action, _, _)| matches!(action, Action::Delete { .. }));
    let broken = deleted.filter_map(|(_, variant, id)| {
        let replica = variant.replicas.get(id)?;
        (!replica.is_safe_to_delete())
            .then(|| format!("replica {id} is {} and may hold requests", replica.state))
    });
    broken.collect()
}

/// Every action on a replica of a known variant.
fn replicas_named<'a>(
    snapshot: &'a Snapshot,
    decision: &'a Decision,
) -> impl Iterator<Item = (&'a Action, &'a Variant, &'a ReplicaId)> {
    let targets = decision.models.iter().flat_map(|entry| &entry.targets);
    targets
        .filter_map(|target| Some((target, snapshot.variant(&target.variant)?)))
        .flat_map(|(target, variant)| target.actions.iter().map(move |action| (action, variant)))
        .filter_map(|(action, variant)| Some((action, variant, replica_of(action)?)))
}

const fn replica_of(action: &Action) -> Option<&ReplicaId> {
    match action {
        Action::Drain { replica } | Action::Delete { replica } => Some(replica),
        Action::Start { .. } => None,
    }
}

pub(super) fn frozen_unchanged(changes: &[Change<'_>]) -> Vec<String> {
    let frozen = changes.iter().filter(|change| change.model.frozen);
    let broken = frozen.flat_map(|change| &change.variants).filter_map(|variant| {
        let VariantChange { id, before, after, actions, .. } = variant;
        let steps = actions.len();
        (before != after || steps > 0)
            .then(|| format!("variant {id}: from {before} to {after} in {steps} steps"))
    });
    broken.collect()
}
