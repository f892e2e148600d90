//! Asks the governor, and keeps what it needs to be asked again.
//!
//! The governor is a plain function; what it learnt and what was decided before are held here. After a
//! restart, and after another operator led, both come back from the statuses, so that nothing moves because
//! an operator did.

use crate::observe::ObservedCluster;
use crate::persist::{self, LearntError};
use crate::time;
use flyball_core::decision::{
    Bound, Decision, Expected, ModelDecision, Previous, PreviousTarget, RunAction, RunDecision,
    Target,
};
use flyball_core::ids::{ModelId, RunId, VariantId};
use flyball_core::invariants::{self, Violation};
use flyball_core::reason::Reason;
use flyball_core::snapshot::Snapshot;
use flyball_core::units::Replicas;
use flyball_estimator::Estimator;
use flyball_governor::{Memory, Policy, decide};
use std::collections::{BTreeMap, BTreeSet};

/// What is remembered from decision to decision.
#[derive(Clone, Debug, Default)]
pub struct Brain {
    previous: Previous,
    memory: Memory,
    /// Minutes that what is known of each model rests on, of this operator while it led or of the one
    /// that wrote it. What is seen without leading is less: gateways talk to the leader.
    evidence: BTreeMap<ModelId, u32>,
    stands_by: bool,
}

/// What was decided and may be carried out.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The decision. Models for which it would have broken a rule keep what they had.
    pub decision: Decision,
    /// Which rules it would have broken; there should be none.
    pub broken: Vec<Violation>,
    /// Statuses from which nothing could be restored.
    pub unread: Vec<(ModelId, LearntError)>,
}

impl Brain {
    /// Decides.
    pub fn decide(&mut self, seen: &ObservedCluster) -> Decided {
        let unread = self.restore(seen);
        self.recall(seen);
        let memory = std::mem::take(&mut self.memory);
        let (decision, memory) = decide(&seen.snapshot, &seen.policy, &self.previous, memory);
        self.memory = memory;
        let decided = Decided { unread, ..self.settle(&seen.snapshot, decision) };
        if std::mem::take(&mut self.stands_by) {
            // Not what this one would do counts when it takes over, but what the leader did last.
            self.previous = Previous::none();
        } else {
            self.evidence = self.memory.minutes().map(|(id, rests)| (id.clone(), rests)).collect();
        }
        decided
    }

    /// What was learnt of all models.
    pub const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Holds what breaks a rule, and remembers the rest. One that is held may take back what another was
    /// given of its pool, so that rules are asked again until only those are named that are held already.
    fn settle(&mut self, snapshot: &Snapshot, mut decision: Decision) -> Decided {
        let mut held: BTreeSet<ModelId> = BTreeSet::new();
        let mut found = invariants::check(snapshot, &self.previous, &decision);
        let mut broken = Vec::new();
        while !found.is_empty() {
            held.extend(found.iter().flat_map(|one| &one.models).cloned());
            if found.iter().any(|one| one.models.is_empty()) {
                self.hold_loans(snapshot, &mut decision);
            }
            broken.append(&mut found);
            for id in &held {
                self.hold(snapshot, &mut decision, id);
            }
            found = invariants::check(snapshot, &self.previous, &decision);
            found.retain(|one| one.models.iter().any(|id| !held.contains(id)));
        }
        self.previous = self.previous.after(&decision);
        Decided { decision, broken, unread: Vec::new() }
    }

    /// What is lent stays as it is.
    fn hold_loans(&self, snapshot: &Snapshot, decision: &mut Decision) {
        let held = |run: &RunId| RunDecision {
            run: run.clone(),
            gpus: self.previous.run_baseline(snapshot, run),
            reason: Reason::DecisionHeld,
            action: RunAction::Hold,
        };
        decision.runs = snapshot.runs.keys().map(held).collect();
    }

    /// Nothing changes for this model. What was considered for it stays in its receipt.
    fn hold(&self, snapshot: &Snapshot, decision: &mut Decision, id: &ModelId) {
        let place = decision.models.iter().position(|entry| entry.model == *id);
        let receipt = place.map(|place| std::mem::take(&mut decision.models[place].receipt));
        decision.models.retain(|entry| entry.model != *id);
        let Some(model) = snapshot.models.get(id) else { return };
        let targets = model.variants.keys().map(|name| {
            let variant = VariantId::new(id.clone(), name.clone());
            let replicas = self.previous.baseline(snapshot, &variant);
            let (spares, actions) = (Replicas::ZERO, Vec::new());
            Target { variant, unconstrained: replicas, replicas, spares, actions }
        });
        let held = ModelDecision {
            model: id.clone(),
            reason: Reason::DecisionHeld,
            bound: Bound::Rule,
            targets: targets.collect(),
            expected: Expected::default(),
            receipt: receipt.unwrap_or_default(),
        };
        let place = place.unwrap_or(usize::MAX).min(decision.models.len());
        decision.models.insert(place, held);
    }

    /// What would be decided under hypothetical conditions, without remembering it. Variants that are `gone` have no
    /// target to hold on to.
    pub fn imagine(
        &self,
        snapshot: &Snapshot,
        policy: &Policy,
        gone: impl Fn(&VariantId) -> bool,
    ) -> Decision {
        let mut previous = self.previous.clone();
        previous.targets.retain(|id, _| !gone(id));
        decide(snapshot, policy, &previous, self.memory.clone()).0
    }

    /// Takes targets over from statuses where nothing is remembered: after a restart, or when another
    /// operator led meanwhile.
    fn recall(&mut self, seen: &ObservedCluster) {
        for (id, _) in seen.snapshot.variants() {
            if self.previous.targets.contains_key(&id) {
                continue;
            }
            if let Some(target) = recalled(seen, &id) {
                self.previous.targets.insert(id, target);
            }
        }
    }

    /// Takes over what was learnt where no decision yet and the status knows more. Returns where it
    /// could not.
    fn restore(&mut self, seen: &ObservedCluster) -> Vec<(ModelId, LearntError)> {
        let decided: BTreeSet<&ModelId> =
            self.previous.targets.keys().map(VariantId::model).collect();
        self.evidence.retain(|id, _| seen.snapshot.models.contains_key(id));
        let mut unread = Vec::new();
        for id in seen.snapshot.models.keys().filter(|id| !decided.contains(id)) {
            let service = seen.models.get(id).map(|model| &model.service);
            let status = service.and_then(|service| service.status.as_ref());
            let Some(text) = status.and_then(|status| status.learnt.as_ref()) else { continue };
            let known = self.evidence.get(id).copied().unwrap_or(0);
            match persist::read(text).map(|persisted| persisted.learnt) {
                Ok(learnt) if learnt.minutes <= known => {}
                Ok(learnt) if self.memory.restore(id, &learnt) => {
                    self.evidence.insert(id.clone(), learnt.minutes);
                }
                Ok(_) => unread.push((id.clone(), LearntError::Impossible)),
                Err(error) => unread.push((id.clone(), error)),
            }
        }
        unread
    }

    /// What was learnt about a model, for its status.
    pub fn learnt(&self, id: &ModelId, estimator: &Estimator) -> Option<String> {
        persist::write(&self.memory.learnt(id)?, &estimator.learnt(id).unwrap_or_default())
    }

    /// Forgets what was decided, because another operator leads: its word stands in the statuses.
    pub fn stand_by(&mut self) {
        self.previous = Previous::none();
        self.stands_by = true;
    }
}

fn recalled(seen: &ObservedCluster, id: &VariantId) -> Option<PreviousTarget> {
    let status = seen.models.get(id.model())?.service.status.as_ref()?;
    let variant = status.variants.iter().find(|variant| variant.name == id.name().as_str())?;
    let since = variant.since.as_ref()?.parse::<jiff::Timestamp>().ok()?;
    let replicas = Replicas::new(u32::try_from(variant.recommended).ok()?);
    Some(PreviousTarget::new(replicas, time::of_date(since)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_core::decision::Action;
    use flyball_core::ids::ReplicaId;
    use flyball_core::invariants::Invariant;
    use flyball_core::testing::{hold, model, pool, snapshot, variant};

    /// Two models in a pool of 8, and one elsewhere; each has two replicas.
    fn world() -> Snapshot {
        let two = |pool| variant("x", pool).ready(2);
        snapshot()
            .pool(pool("shared").gpus(8))
            .pool(pool("own").can_grow())
            .model(model("a/one").between(1, 9).variant(two("shared")))
            .model(model("a/two").between(1, 9).variant(two("shared")))
            .model(model("b/three").between(1, 9).variant(two("own")))
            .build()
    }

    /// What becomes of a decision that wants these numbers; the reason and number of each model.
    fn settled(
        brain: &mut Brain,
        desired: [u32; 3],
        spoil: impl Fn(&mut Decision),
    ) -> (Vec<(Reason, u32)>, Vec<Invariant>) {
        let snapshot = world();
        let mut decision = hold(&snapshot, &Previous::none());
        for (entry, desired) in decision.models.iter_mut().zip(desired) {
            let desired = Replicas::new(desired);
            (entry.targets[0].replicas, entry.targets[0].unconstrained) = (desired, desired);
            entry.reason = Reason::ScaledUp;
        }
        spoil(&mut decision);
        let Decided { decision, broken, .. } = brain.settle(&snapshot, decision);
        let models = decision.models.iter();
        let models = models.map(|entry| (entry.reason, entry.targets[0].replicas.get()));
        (models.collect(), broken.iter().map(|one| one.invariant).collect())
    }

    const HELD: (Reason, u32) = (Reason::DecisionHeld, 2);

    #[test]
    fn a_model_whose_decision_breaks_a_rule_keeps_its_target_and_others_go_on() {
        let mut brain = Brain::default();
        let (models, broken) = settled(&mut brain, [10, 3, 4], |_| {});
        assert_eq!(models, [HELD, HELD, (Reason::ScaledUp, 4)], "the pool has 8");
        let both = [Invariant::ReservedWithinAllocatable, Invariant::ReplicasWithinBounds];
        assert_eq!(broken, both);
        let previous = |id: &str| brain.previous.targets[&id.parse().unwrap()].replicas.get();
        assert_eq!((previous("a/one/x"), previous("b/three/x")), (2, 4));
        // Only those that grow are to blame for a pool that is too small.
        let (models, _) = settled(&mut Brain::default(), [8, 1, 4], |_| {});
        assert_eq!(models, [HELD, (Reason::ScaledUp, 1), (Reason::ScaledUp, 4)]);
        // Unless one gives what it wants to one that does not get it.
        let gives = |decision: &mut Decision| {
            decision.models[1].targets[0].unconstrained = Replicas::new(2)
        };
        let (models, broken) = settled(&mut Brain::default(), [8, 1, 4], gives);
        assert_eq!(models, [HELD, HELD, (Reason::ScaledUp, 4)]);
        assert_eq!(broken.last(), Some(&Invariant::TakenOnlyByThoseThatAct));
    }

    #[test]
    fn loans_that_break_a_rule_stay_as_they_are() {
        let mut snapshot = world();
        let run = flyball_core::testing::snapshot().run("ml/ft", "shared", 2).build().runs;
        snapshot.runs = run;
        let mut decision = hold(&snapshot, &Previous::none());
        decision.runs[0].gpus = flyball_core::units::Gpus::new(6);
        let mut brain = Brain::default();
        let Decided { decision, broken, .. } = brain.settle(&snapshot, decision);
        assert_eq!(broken[0].invariant, Invariant::ReservedWithinAllocatable);
        assert_eq!(
            (decision.runs[0].gpus.get(), decision.runs[0].reason),
            (2, Reason::DecisionHeld)
        );
        let models = decision.models.iter().map(|entry| entry.reason);
        assert!(models.into_iter().all(|reason| reason != Reason::DecisionHeld));
    }

    #[test]
    fn what_one_that_is_held_keeps_is_not_given_to_another() {
        // None is fewer than the first may have; the second was given what that would free.
        let (models, broken) = settled(&mut Brain::default(), [0, 8, 4], |_| {});
        assert_eq!(models, [HELD, HELD, (Reason::ScaledUp, 4)]);
        let in_turn = [Invariant::ReplicasWithinBounds, Invariant::ReservedWithinAllocatable];
        assert_eq!(broken, in_turn);
    }

    #[test]
    fn a_replica_that_may_hold_requests_is_not_deleted() {
        let delete = |decision: &mut Decision| {
            let replica = ReplicaId::new("b", "three-x-0").unwrap();
            decision.models[2].targets[0].actions.push(Action::Delete { replica });
        };
        let mut brain = Brain::default();
        let snapshot = world();
        let mut decision = hold(&snapshot, &Previous::none());
        delete(&mut decision);
        let held = brain.settle(&snapshot, decision).decision;
        assert_eq!(held.models[2].bound, Bound::Rule);
        assert!(held.models[2].targets[0].actions.is_empty());
        assert_eq!(held.models[0].bound, Bound::NeedNow);
    }

    #[test]
    fn a_model_that_is_named_twice_not_at_all_or_unknown_is_held() {
        let twice = |decision: &mut Decision| decision.models.push(decision.models[0].clone());
        let (models, _) = settled(&mut Brain::default(), [3, 3, 3], twice);
        assert_eq!(models, [HELD, (Reason::ScaledUp, 3), (Reason::ScaledUp, 3)]);
        let missing = |decision: &mut Decision| drop(decision.models.remove(0));
        let (models, _) = settled(&mut Brain::default(), [3, 3, 3], missing);
        assert_eq!(models, [(Reason::ScaledUp, 3), (Reason::ScaledUp, 3), HELD]);
        let stranger = |decision: &mut Decision| {
            let mut other = decision.models[0].clone();
            (other.model, other.targets) = ("c/none".parse().unwrap(), Vec::new());
            decision.models.push(other);
        };
        let (models, _) = settled(&mut Brain::default(), [3, 3, 3], stranger);
        assert_eq!(models, [(Reason::ScaledUp, 3); 3]);
    }
}
