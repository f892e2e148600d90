//! Before and after, side by side: the form in which most rules read a decision.

use crate::decision::{Action, Decision, ModelDecision, Previous};
use crate::ids::{ModelId, PoolId, RunId, VariantId};
use crate::snapshot::{Freshness, Model, ReplicaState, Snapshot, TrainingRun, Variant};
use crate::units::{Gpus, Replicas};
use std::collections::BTreeMap;

/// All models and training runs of the snapshot.
pub(super) struct Changes<'a> {
    pub(super) models: Vec<Change<'a>>,
    pub(super) runs: Vec<RunChange<'a>>,
}

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
    pub(super) unconstrained: Replicas,
    pub(super) spares: Replicas,
    pub(super) actions: &'a [Action],
}

/// One training run before and after. What the decision does not name stays as it is.
pub(super) struct RunChange<'a> {
    pub(super) id: &'a RunId,
    pub(super) run: &'a TrainingRun,
    pub(super) before: Gpus,
    pub(super) after: Gpus,
}

impl<'a> Changes<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, previous: &Previous, decision: &'a Decision) -> Self {
        Self {
            models: Change::all(snapshot, previous, decision),
            runs: RunChange::all(snapshot, previous, decision),
        }
    }

    /// GPUs of a pool that are reserved before and after, training included. Of a model that does
    /// not act that is what its replicas use, whatever is shown for it; a run that does not act is one of the others.
    ///
    /// Replicas that drain are left out: their GPUs are promised to whoever comes next, and the
    /// cluster's scheduler holds the newcomer back until they are free.
    pub(super) fn reserved(&self, pool: &PoolId) -> (Gpus, Gpus) {
        let serving = self.in_pool(pool).map(|(model, change)| {
            let gpus = |replicas| Gpus::for_replicas(change.variant.gpus_per_replica, replicas);
            if model.model.acts() {
                (gpus(change.before), gpus(change.after))
            } else {
                let held = gpus(change.variant.live());
                (held, held)
            }
        });
        let training = self.loans(pool).map(|run| (run.before, run.after));
        serving.chain(training).fold((Gpus::ZERO, Gpus::ZERO), |(before, after), (was, is)| {
            (before.saturating_add(was), after.saturating_add(is))
        })
    }

    /// Every run that borrows of a pool and acts.
    pub(super) fn loans<'b>(&'b self, pool: &'b PoolId) -> impl Iterator<Item = &'b RunChange<'a>> {
        self.runs.iter().filter(move |change| &change.run.pool == pool && change.run.acts)
    }

    /// Every variant in a pool, with its model.
    pub(super) fn in_pool<'b>(
        &'b self,
        pool: &'b PoolId,
    ) -> impl Iterator<Item = (&'b Change<'a>, &'b VariantChange<'a>)> {
        let all =
            self.models.iter().flat_map(|model| model.variants.iter().map(move |v| (model, v)));
        all.filter(move |(_, change)| &change.variant.pool == pool)
    }

    /// Every pool that a variant or a run is in, whether or not anybody has seen the pool.
    pub(super) fn pools(&self) -> impl Iterator<Item = &'a PoolId> {
        let variants = self.models.iter().flat_map(|change| &change.variants);
        variants
            .map(|change| &change.variant.pool)
            .chain(self.runs.iter().map(|change| &change.run.pool))
    }
}

impl VariantChange<'_> {
    /// Replicas that serve, that were meant to go on doing so, that are still wanted, and that go.
    pub(super) fn loss(&self) -> Replicas {
        let ready = self.variant.count(ReplicaState::Ready);
        self.before.min(ready).min(self.unconstrained).saturating_sub(self.after)
    }
}

impl<'a> RunChange<'a> {
    fn all(snapshot: &'a Snapshot, previous: &Previous, decision: &Decision) -> Vec<Self> {
        let targets: BTreeMap<&RunId, Gpus> =
            decision.runs.iter().map(|entry| (&entry.run, entry.gpus)).collect();
        let runs = snapshot.runs.iter().map(|(id, run)| {
            let before = previous.run_baseline(snapshot, id);
            let after = targets.get(id).copied().unwrap_or(before);
            Self { id, run, before, after }
        });
        runs.collect()
    }
}

impl<'a> Change<'a> {
    fn all(snapshot: &'a Snapshot, previous: &Previous, decision: &'a Decision) -> Vec<Self> {
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
                    unconstrained: target.map_or(before, |target| target.unconstrained),
                    spares: target.map_or(Replicas::ZERO, |target| target.spares),
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

    /// Replicas that serve, that were meant to go on doing so, that are still wanted, and that go
    /// without another variant in their place.
    ///
    /// None where a person lowered the maximum: that too takes replicas, and of whichever variant.
    pub(super) fn loss(&self) -> Replicas {
        if self.total_before() > self.ceiling() {
            return Replicas::ZERO;
        }
        let serves = |change: &VariantChange<'_>| change.variant.count(ReplicaState::Ready);
        let ready = self.variants.iter().map(serves).sum();
        let unconstrained: Replicas =
            self.variants.iter().map(|variant| variant.unconstrained).sum();
        let keeps = self.total_before().min(ready).min(unconstrained);
        keeps.saturating_sub(self.total_after())
    }

    /// The most replicas a person allows.
    pub(super) fn ceiling(&self) -> Replicas {
        self.model.pinned.unwrap_or(self.model.bounds.max)
    }

    /// The fewest replicas a person asks for.
    pub(super) fn floor(&self) -> Replicas {
        self.model.pinned.unwrap_or(self.model.bounds.min.min(self.model.bounds.max))
    }

    /// Why it cannot be told that fewer replicas would do, if so.
    ///
    /// A variant that neither has replicas nor gets any carries nothing, so it need not be known.
    pub(super) fn blind(&self) -> Option<String> {
        let freshness = self.model.demand.freshness();
        if freshness != Freshness::Fresh {
            return Some(format!("demand {freshness}"));
        }
        let used = |change: &&VariantChange<'_>| !change.before.max(change.after).is_zero();
        let mut used = self.variants.iter().filter(used);
        let unknown = used.find(|change| !change.variant.capacity.is_known())?;
        Some(format!("capacity of {} unknown", unknown.id.name()))
    }
}
