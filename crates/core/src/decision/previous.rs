//! What one decision leaves behind for the next.

use super::{Action, Decision};
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
}

/// The last target of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreviousTarget {
    /// What it should have had.
    pub replicas: Replicas,
    /// Since when.
    pub since: Timestamp,
    /// When replicas were last asked for. What was asked for a moment ago may not be seen yet.
    pub started: Option<Timestamp>,
    /// When its target last fell. Together with the above this tells a reversal.
    pub lowered: Option<Timestamp>,
}

impl PreviousTarget {
    /// A target of which only the number and its age are known.
    pub const fn new(replicas: Replicas, since: Timestamp) -> Self {
        Self { replicas, since, started: None, lowered: None }
    }
}

impl Previous {
    /// Nothing was decided before.
    pub const fn none() -> Self {
        Self { targets: BTreeMap::new(), runs: BTreeMap::new() }
    }

    /// What is left behind once `decision` is made: an unchanged target keeps its age, and what
    /// the decision does not name is forgotten, because it else grows without end.
    pub fn after(&self, decision: &Decision) -> Self {
        let now = decision.id.at();
        let targets = decision.models.iter().flat_map(|model| &model.targets).map(|target| {
            let last = self.targets.get(&target.variant);
            let replicas = target.replicas;
            let starts = target.actions.iter().any(|action| matches!(action, Action::Start { .. }));
            let fell = last.is_some_and(|last| replicas < last.replicas);
            let next = PreviousTarget {
                replicas,
                since: last.filter(|last| last.replicas == replicas).map_or(now, |last| last.since),
                started: if starts { Some(now) } else { last.and_then(|last| last.started) },
                lowered: if fell { Some(now) } else { last.and_then(|last| last.lowered) },
            };
            (target.variant.clone(), next)
        });
        let runs = decision.runs.iter().map(|entry| (entry.run.clone(), entry.gpus));
        Self { targets: targets.collect(), runs: runs.collect() }
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
    use crate::snapshot::Purchase;
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
        let target = PreviousTarget::new(Replicas::new(6), at(0));
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
    fn starts_and_lowered_targets_are_remembered_with_their_time() {
        let mut snapshot = snapshot()
            .pool(pool("h100").gpus(8))
            .model(model("a/m").variant(variant("x", "h100").ready(2)))
            .build();
        let id: VariantId = "a/m/x".parse().unwrap();
        let mut first = hold(&snapshot, &Previous::none());
        let count = Replicas::new(2);
        first.models[0].targets[0].replicas = Replicas::new(4);
        first.models[0].targets[0].actions =
            vec![Action::Start { count, purchase: Purchase::OnDemand }];
        let previous = Previous::none().after(&first);
        assert_eq!(previous.targets[&id].started, Some(snapshot.taken_at));
        assert_eq!(previous.targets[&id].lowered, None);

        snapshot.taken_at = at(5_000);
        let mut second = hold(&snapshot, &previous);
        second.models[0].targets[0].replicas = Replicas::new(3);
        let previous = previous.after(&second);
        assert_eq!(previous.targets[&id].started, Some(at(1_000)));
        assert_eq!(previous.targets[&id].lowered, Some(at(5_000)));
        // A variant that is gone is forgotten.
        second.models.clear();
        assert_eq!(previous.after(&second), Previous::none());
    }
}
