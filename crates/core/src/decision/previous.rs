//! What one decision leaves behind for the next.

use super::Decision;
use crate::ids::{RunId, VariantId};
use crate::snapshot::Snapshot;
use crate::units::{Gpus, Replicas, Timestamp};
use std::collections::BTreeMap;

/// What earlier decisions left behind. Stability is part of being right, so this is an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Previous {
    /// The last target of each variant.
    pub targets: BTreeMap<VariantId, PreviousTarget>,
    /// The last target of each training run.
    pub runs: BTreeMap<RunId, Gpus>,
    /// What was learnt.
    pub memory: Memory,
}

/// The last target of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreviousTarget {
    /// What it should have had.
    pub replicas: Replicas,
    /// Since when.
    pub since: Timestamp,
}

/// What the decider has learnt, handed from one decision to the next.
///
/// It is a plain value that goes in with [`Previous`] and comes out with [`Decision`], so that
/// deciding stays pure and a replay learns the same. This crate carries it and reads nothing in it:
/// the governor fills it, and adds fields here when it learns more (forecast errors, cold starts).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// What was learnt about each variant. An absent one is [`VariantMemory::NEW`].
    pub variants: BTreeMap<VariantId, VariantMemory>,
}

/// What was learnt about one variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariantMemory {
    /// Capacity as measured, in millionths of what was predicted.
    pub capacity_per_million: u32,
    /// When to ask for more replicas again after nobody could provide them.
    pub back_off_until: Option<Timestamp>,
}

impl VariantMemory {
    /// Nothing was learnt: the prediction is taken as it is, and nothing is held back.
    pub const NEW: Self = Self { capacity_per_million: 1_000_000, back_off_until: None };
}

impl Memory {
    /// What was learnt about a variant.
    pub fn of(&self, id: &VariantId) -> VariantMemory {
        self.variants.get(id).copied().unwrap_or(VariantMemory::NEW)
    }
}

impl Previous {
    /// Nothing was decided before.
    pub const fn none() -> Self {
        let memory = Memory { variants: BTreeMap::new() };
        Self { targets: BTreeMap::new(), runs: BTreeMap::new(), memory }
    }

    /// What is left behind once `decision` is made: an unchanged target keeps its age, and what
    /// the decision does not name is forgotten, also in memory, which else grows without end.
    pub fn after(&self, decision: &Decision) -> Self {
        let targets = decision.models.iter().flat_map(|model| &model.targets).map(|target| {
            let replicas = target.replicas;
            let since = match self.targets.get(&target.variant) {
                Some(last) if last.replicas == replicas => last.since,
                _ => decision.id.at(),
            };
            (target.variant.clone(), PreviousTarget { replicas, since })
        });
        let targets: BTreeMap<_, _> = targets.collect();
        let mut memory = decision.memory.clone();
        memory.variants.retain(|id, _| targets.contains_key(id));
        let runs = decision.runs.iter().map(|entry| (entry.run.clone(), entry.gpus)).collect();
        Self { targets, runs, memory }
    }

    /// What "no change" means for a variant: its last target, or else the replicas it has.
    ///
    /// The target comes first because replicas follow it with a delay: counting replicas while
    /// some are still being created would quietly take a scale-up back.
    pub fn baseline(&self, snapshot: &Snapshot, id: &VariantId) -> Replicas {
        let live = || snapshot.variant(id).map_or(Replicas::ZERO, |variant| variant.live());
        self.targets.get(id).map_or_else(live, |last| last.replicas)
    }

    /// What "no change" means for a training run: its last target, or else what it holds.
    ///
    /// The target comes first here too. What a run was told to give back may be promised to a
    /// model already, and counting it as still held would let both have it.
    pub fn run_baseline(&self, snapshot: &Snapshot, id: &RunId) -> Gpus {
        let held = || snapshot.runs.get(id).map_or(Gpus::ZERO, |run| run.gpus);
        self.runs.get(id).copied().unwrap_or_else(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::RunAction;
    use crate::testing::{at, hold, model, pool, snapshot, variant};

    #[test]
    fn an_unchanged_target_keeps_its_age() {
        let mut snapshot = snapshot()
            .pool(pool("h100").gpus(8))
            .model(model("a/m").variant(variant("x", "h100").ready(2)))
            .build();
        let id: VariantId = "a/m/x".parse().unwrap();
        let first = hold(&snapshot, &Previous::none());
        let previous = Previous::none().after(&first);
        let since = previous.targets[&id].since;
        assert_eq!(since, snapshot.taken_at);

        snapshot.taken_at = at(5_000);
        let mut second = hold(&snapshot, &previous);
        assert_eq!(previous.after(&second).targets[&id].since, since);
        second.models[0].targets[0].replicas = Replicas::new(3);
        assert_eq!(previous.after(&second).targets[&id].since, at(5_000));
    }

    #[test]
    fn no_change_means_the_last_target_even_while_replicas_lag_behind() {
        let snapshot = snapshot()
            .model(model("a/m").variant(variant("x", "h100").ready(2).draining(1)))
            .build();
        let id: VariantId = "a/m/x".parse().unwrap();
        assert_eq!(Previous::none().baseline(&snapshot, &id), Replicas::new(2));
        let target = PreviousTarget { replicas: Replicas::new(6), since: at(0) };
        let previous = Previous { targets: [(id.clone(), target)].into(), ..Previous::none() };
        assert_eq!(previous.baseline(&snapshot, &id), Replicas::new(6));
    }

    #[test]
    fn a_run_is_measured_against_what_it_was_told() {
        let snapshot = snapshot().run("ml/ft", "h100", 8).build();
        let id: RunId = "ml/ft".parse().unwrap();
        assert_eq!(Previous::none().run_baseline(&snapshot, &id), Gpus::new(8));
        let mut decision = hold(&snapshot, &Previous::none());
        assert_eq!(decision.runs[0].action, RunAction::Hold);
        decision.runs[0].gpus = Gpus::new(4);
        let previous = Previous::none().after(&decision);
        assert_eq!(previous.run_baseline(&snapshot, &id), Gpus::new(4));
    }

    #[test]
    fn the_way_of_a_run_follows_its_numbers() {
        let way = |before, after| RunAction::between(Gpus::new(before), Gpus::new(after));
        assert_eq!(
            [way(4, 8), way(8, 4), way(4, 4)],
            [RunAction::Grow, RunAction::Shrink, RunAction::Hold]
        );
    }

    #[test]
    fn what_was_learnt_is_handed_on_while_its_variant_is_there() {
        let snapshot =
            snapshot().model(model("a/m").variant(variant("x", "h100").ready(2))).build();
        let [here, gone]: [VariantId; 2] = ["a/m/x", "a/m/y"].map(|id| id.parse().unwrap());
        let learnt = VariantMemory { capacity_per_million: 900_000, ..VariantMemory::NEW };
        let mut decision = hold(&snapshot, &Previous::none());
        decision.memory.variants = [(here.clone(), learnt), (gone.clone(), learnt)].into();
        let previous = Previous::none().after(&decision);
        assert_eq!(previous.memory.of(&here), learnt);
        assert_eq!(previous.memory.of(&gone), VariantMemory::NEW);
        assert_eq!(hold(&snapshot, &previous).memory, previous.memory);
    }
}
