//! What to do, and why: the only output of deciding.
//!
//! A [`Decision`] says for each model how many replicas each variant should have, the steps to get
//! there, the [`Reason`], the [`Bound`] that won, and a [`Receipt`] of what was considered. It is
//! made the same way whether it is carried out, only shown, or simulated; who receives it does
//! what it says or does not. [`Previous`] is the part of past decisions that the next one needs.
//!
//! Nothing here decides, and nothing here can be serialised.

use crate::closed::closed_enum;
use crate::ids::{DecisionId, ModelId, ReplicaId, VariantId};
use crate::interval::Interval;
use crate::reason::Reason;
use crate::snapshot::{Freshness, Purchase, Signal, Snapshot};
use crate::units::{Money, Replicas, Requests, Timestamp};
use std::collections::BTreeMap;

/// What to do for all models of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Its name.
    pub id: DecisionId,
    /// One entry per model, in the order in which they got accelerators.
    pub models: Vec<ModelDecision>,
}

/// What to do for one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelDecision {
    /// The model.
    pub model: ModelId,
    /// Why.
    pub reason: Reason,
    /// Which bound set the number of replicas.
    pub bound: Bound,
    /// What each variant should have.
    pub targets: Vec<Target>,
    /// What is expected to come of it.
    pub expected: Expected,
    /// What was considered.
    pub receipt: Receipt,
}

/// How many replicas one variant should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The variant.
    pub variant: VariantId,
    /// What demand asks for, before pools, budgets and steps cut it down.
    pub wanted: Replicas,
    /// What it should have. Replicas that drain are not counted.
    pub replicas: Replicas,
    /// The steps to get there, in order.
    pub actions: Vec<Action>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask for more replicas.
    Start {
        /// How many.
        count: Replicas,
        /// How their accelerators are paid for.
        purchase: Purchase,
    },
    /// Send a replica no new requests and let it finish those it has.
    Drain {
        /// Which.
        replica: ReplicaId,
    },
    /// Remove a replica that has no requests.
    Delete {
        /// Which.
        replica: ReplicaId,
    },
}

closed_enum! {
    /// What set the number of replicas: of all that pulled up or held down, the one that won.
    pub enum Bound {
        NeedNow => "The work that is there now.",
        LookAhead => "The work expected before a new replica could be ready.",
        Calendar => "A floor from the calendar.",
        Minimum => "The smallest number the owner allows.",
        Maximum => "The largest number the owner allows.",
        Pin => "The number a person set.",
        Freeze => "The freeze switch.",
        Staleness => "A signal that cannot be trusted.",
        BreakEven => "The time a replica must be kept to be worth its start.",
        Step => "The largest change, or soonest reversal, that one step may be.",
        Budget => "The money that is left.",
        PoolLimit => "The limit of the pool.",
        Capacity => "The accelerators that exist.",
    }
}

impl Bound {
    /// Whether this bound may hold a model below what its owner asks for at least.
    pub const fn can_starve(self) -> bool {
        matches!(self, Self::Step | Self::Budget | Self::PoolLimit | Self::Capacity)
    }
}

/// What is expected to come of a decision. `None` is "unknown", not nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// What an hour of the target costs.
    pub hourly_cost: Option<Interval<Money>>,
    /// Requests in an hour that will miss an objective.
    pub hourly_misses: Option<Interval<Requests>>,
}

/// What was considered, so that a person can check the decision and a replay can judge it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// The signals and how far each was trusted.
    pub signals: Vec<(Signal, Freshness)>,
    /// How many replicas each bound alone would have given.
    pub candidates: Vec<(Bound, Replicas)>,
    /// What a horizontal pod autoscaler would have asked for, if that can be told.
    pub hpa_would_want: Option<Replicas>,
}

/// What earlier decisions left behind. Stability is part of being right, so this is an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Previous {
    /// The last target of each variant.
    pub targets: BTreeMap<VariantId, PreviousTarget>,
}

/// The last target of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreviousTarget {
    /// What it should have had.
    pub replicas: Replicas,
    /// Since when.
    pub since: Timestamp,
}

impl Previous {
    /// Nothing was decided before.
    pub const fn none() -> Self {
        Self { targets: BTreeMap::new() }
    }

    /// What is left behind once `decision` is made: an unchanged target keeps its age, and a
    /// variant the decision does not name is forgotten.
    pub fn after(&self, decision: &Decision) -> Self {
        let targets = decision.models.iter().flat_map(|model| &model.targets).map(|target| {
            let replicas = target.replicas;
            let since = match self.targets.get(&target.variant) {
                Some(last) if last.replicas == replicas => last.since,
                _ => decision.id.at(),
            };
            (target.variant.clone(), PreviousTarget { replicas, since })
        });
        Self { targets: targets.collect() }
    }

    /// What "no change" means for a variant: its last target, or else the replicas it has.
    ///
    /// The target comes first because replicas follow it with a delay: counting replicas while
    /// some are still being created would quietly take a scale-up back.
    pub fn baseline(&self, snapshot: &Snapshot, id: &VariantId) -> Replicas {
        let live = || snapshot.variant(id).map_or(Replicas::ZERO, |variant| variant.live());
        self.targets.get(id).map_or_else(live, |last| last.replicas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let previous = Previous { targets: [(id.clone(), target)].into() };
        assert_eq!(previous.baseline(&snapshot, &id), Replicas::new(6));
    }
}
