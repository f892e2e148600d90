//! Before and after, side by side: the form in which most rules read a decision.

use crate::decision::{Action, Decision, ModelDecision, Previous};
use crate::ids::{ModelId, PoolId, VariantId};
use crate::snapshot::{Model, Snapshot, Variant};
use crate::units::{Gpus, Replicas};
use std::collections::BTreeMap;

/// One model of the snapshot, with what was decided for it.
pub(super) struct Change<'a> {
    pub(super) id: &'a ModelId,
    pub(super) model: &'a Model,
    pub(super) decided: Option<&'a ModelDecision>,
    pub(super) variants: Vec<VariantChange<'a>>,
}

/// One variant before and after. What the decision does not name stays as it is.
pub(super) struct VariantChange<'a> {
    pub(super) id: VariantId,
    pub(super) variant: &'a Variant,
    pub(super) before: Replicas,
    pub(super) after: Replicas,
    pub(super) actions: &'a [Action],
}

impl<'a> Change<'a> {
    pub(super) fn all(
        snapshot: &'a Snapshot,
        previous: &Previous,
        decision: &'a Decision,
    ) -> Vec<Self> {
        // An index, because searching the list once per model is quadratic in the models. Of a
        // name that stands there twice, which breaks a rule of its own, the last entry is read.
        let entries: BTreeMap<&ModelId, &'a ModelDecision> =
            decision.models.iter().map(|entry| (&entry.model, entry)).collect();
        let change = |(id, model): (&'a ModelId, &'a Model)| {
            let decided = entries.get(id).copied();
            let variants = model.variants.iter().map(|(name, variant)| {
                let id = VariantId::new(id.clone(), name.clone());
                let before = previous.baseline(snapshot, &id);
                let target =
                    decided.and_then(|entry| entry.targets.iter().find(|t| t.variant == id));
                VariantChange {
                    after: target.map_or(before, |target| target.replicas),
                    actions: target.map_or(&[], |target| &target.actions),
                    id,
                    variant,
                    before,
                }
            });
            Self { id, model, decided, variants: variants.collect() }
        };
        snapshot.models.iter().map(change).collect()
    }

    pub(super) fn total_before(&self) -> Replicas {
        self.variants.iter().map(|variant| variant.before).sum()
    }

    pub(super) fn total_after(&self) -> Replicas {
        self.variants.iter().map(|variant| variant.after).sum()
    }

    /// The most replicas a person allows.
    pub(super) fn ceiling(&self) -> Replicas {
        self.model.pinned.unwrap_or(self.model.bounds.max)
    }

    /// The fewest replicas a person asks for.
    pub(super) fn floor(&self) -> Replicas {
        self.model.pinned.unwrap_or(self.model.bounds.min.min(self.model.bounds.max))
    }
}

/// GPUs of a pool that are reserved before and after, training included.
///
/// Replicas that drain are left out: their GPUs are promised to whoever comes next, and the
/// cluster's scheduler holds the newcomer back until they are free.
pub(super) fn reserved(snapshot: &Snapshot, pool: &PoolId, changes: &[Change<'_>]) -> (Gpus, Gpus) {
    let training: Gpus =
        snapshot.runs.values().filter(|run| &run.pool == pool).map(|run| run.gpus).sum();
    let variants = changes.iter().flat_map(|change| &change.variants);
    variants.filter(|change| &change.variant.pool == pool).fold(
        (training, training),
        |(before, after), change| {
            let gpus = |replicas| Gpus::for_replicas(change.variant.gpus_per_replica, replicas);
            (before.saturating_add(gpus(change.before)), after.saturating_add(gpus(change.after)))
        },
    )
}
