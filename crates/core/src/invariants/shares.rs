//! The rules about what models take from each other in a pool.
//!
//! What is taken is counted in replicas that serve and are still wanted. A replica may be larger than
//! what was missing for another, so that a little more may go than is gained.

use super::change::{Change, Changes, VariantChange};
use super::rules::Broken;
use crate::ids::{ModelId, Namespace, PoolId};
use crate::snapshot::{Pool, Share, Snapshot};
use crate::units::{Gpus, Replicas};
use std::collections::BTreeSet;

/// A variant in a pool, with its model.
type Part<'a> = (&'a Change<'a>, &'a VariantChange<'a>);

pub(super) fn taken_only_by_those_that_act(changes: &Changes<'_>) -> Vec<Broken> {
    let pools: BTreeSet<_> = changes.pools().collect();
    let broken = pools.into_iter().filter_map(|pool| {
        let all: Vec<_> = changes.in_pool(pool).filter(|(model, _)| model.model.acts()).collect();
        let (taken, largest) = taken(&all);
        let most = gained(&all, largest);
        let text = || {
            format!(
                "pool {pool}: {taken} taken from models that serve with them, for at most {most}"
            )
        };
        (taken > most).then(|| (losers(&all), text()))
    });
    broken.collect()
}

pub(super) fn taken_across_namespaces_by_share(
    snapshot: &Snapshot,
    changes: &Changes<'_>,
) -> Vec<Broken> {
    let pools: BTreeSet<_> = changes.pools().collect();
    let broken = pools.into_iter().flat_map(|id| {
        let pool = snapshot.pools.get(id);
        let all: Vec<_> = changes.in_pool(id).filter(|(model, _)| model.model.acts()).collect();
        let names: BTreeSet<&Namespace> = all.iter().map(namespace).collect();
        let each = names.iter().filter_map(|name| lost(id, pool, changes, &all, name));
        each.collect::<Vec<_>>()
    });
    broken.collect()
}

/// What is wrong with what one namespace loses to others.
fn lost(
    id: &PoolId,
    pool: Option<&Pool>,
    changes: &Changes<'_>,
    all: &[Part<'_>],
    name: &Namespace,
) -> Option<Broken> {
    let share = |name: &Namespace| pool.map_or_else(Share::default, |pool| pool.share_of(name));
    let (own, others): (Vec<_>, Vec<_>) =
        all.iter().copied().partition(|part| namespace(part) == name);
    let (taken, largest) = taken(&own);
    let across = taken.saturating_sub(gained(&own, largest));
    // What nobody else gets is not taken by another namespace: that is the rule above.
    if across.is_zero() || gained(&others, largest).is_zero() {
        return None;
    }
    let names: BTreeSet<&Namespace> = others.iter().map(namespace).collect();
    let most = names.into_iter().map(|other| {
        let theirs: Vec<_> =
            others.iter().filter(|part| namespace(part) == other).copied().collect();
        let above = share(other).priority > share(name).priority;
        let owed = held(changes, id, other, stays) < share(other).guaranteed;
        if above || owed { gained(&theirs, largest) } else { Gpus::ZERO }
    });
    let most = most.fold(Gpus::ZERO, Gpus::saturating_add);
    let after = held(changes, id, name, |change| change.after);
    // Where it moves them inside, the rest of a large replica may be too small for anybody of it.
    let below = after < share(name).guaranteed && gained(&own, largest).is_zero();
    let text = || {
        let guaranteed = share(name).guaranteed;
        format!(
            "pool {id}: {across} taken from namespace {name}, by shares at most {most}; \
             it is left {after}, guaranteed {guaranteed}"
        )
    };
    (across > most || below).then(|| (losers(&own), text()))
}

/// GPUs of a namespace, by how many replicas of a variant are counted. Of a model that does not act,
/// what is there.
fn held(
    changes: &Changes<'_>,
    pool: &PoolId,
    name: &Namespace,
    of: impl Fn(&VariantChange<'_>) -> Replicas,
) -> Gpus {
    let own = changes.in_pool(pool).filter(|part| namespace(part) == name);
    let each = own.map(|(model, change)| {
        let replicas = if model.model.acts() { of(change) } else { change.variant.live() };
        Gpus::for_replicas(change.variant.gpus_per_replica, replicas)
    });
    each.fold(Gpus::ZERO, Gpus::saturating_add)
}

/// Replicas that were meant to be there, are, and stay.
fn stays(change: &VariantChange<'_>) -> Replicas {
    change.before.min(change.after).min(change.variant.live())
}

fn namespace<'a>(part: &Part<'a>) -> &'a Namespace {
    part.0.id.namespace()
}

/// Models that lose replicas that serve and are still wanted: without their decisions nothing is taken.
fn losers(parts: &[Part<'_>]) -> Vec<ModelId> {
    let lost = parts.iter().filter(|(model, change)| !change.loss().min(model.loss()).is_zero());
    let losers = lost.map(|(model, _)| model.id.clone());
    losers.collect::<BTreeSet<_>>().into_iter().collect()
}

/// GPUs that models lose with replicas that serve and are still wanted, and the largest such replica.
fn taken(parts: &[Part<'_>]) -> (Gpus, Gpus) {
    let lost = parts.iter().map(|(model, change)| {
        let fell = change.loss().min(model.loss());
        let each = change.variant.gpus_per_replica;
        (Gpus::for_replicas(each, fell), if fell.is_zero() { Gpus::ZERO } else { each })
    });
    lost.fold((Gpus::ZERO, Gpus::ZERO), |(sum, largest), (gpus, each)| {
        (sum.saturating_add(gpus), largest.max(each))
    })
}

/// The most GPUs that may have to be taken, in replicas of at most this size, for what models gain:
/// the last that is taken for a replica may be larger than what was still missing.
fn gained(parts: &[Part<'_>], largest: Gpus) -> Gpus {
    let spare = largest.saturating_sub(Gpus::new(1));
    let gains = parts.iter().map(|(_, change)| {
        let each = change.variant.gpus_per_replica.saturating_add(spare);
        Gpus::for_replicas(each, change.after.saturating_sub(change.before))
    });
    gains.fold(Gpus::ZERO, Gpus::saturating_add)
}
