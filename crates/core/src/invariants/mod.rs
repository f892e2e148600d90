//! What must hold between a snapshot and the decision made from it, stated once.
//!
//! These functions are for property tests, for a simulator after every step, and for production,
//! where a decision that breaks a rule is not carried out for the models that break it. Each has an
//! id that never changes meaning; the list is in `docs/invariants.md`.
//!
//! The invariants do not know how the decision was made. They are weaker than good sense on
//! purpose: where the world already breaks a rule (a node was lost, a limit was lowered), they ask
//! that the decision does not make it worse. Start at [`check`], then `rules.rs`.

mod change;
mod loans;
mod removal;
mod rules;
mod shares;
#[cfg(test)]
mod tests;

pub use removal::{Holding, removals};

use crate::decision::{Decision, Previous};
use crate::ids::ModelId;
use crate::snapshot::Snapshot;
use change::Changes;
use std::fmt;

/// A rule that every decision keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// `INV-01`
    ReservedWithinAllocatable,
    /// `INV-02`
    NoScaleDownBlind,
    /// `INV-03`
    ReplicasWithinBounds,
    /// `INV-04`
    NothingNegative,
    /// `INV-05`
    PoolLimitRespected,
    /// `INV-06`
    EachNamedOnce,
    /// `INV-07`
    NoRequestKilled,
    /// `INV-08`
    FrozenUnchanged,
    /// `INV-09`
    NoScaleDownWhileSilent,
    /// `INV-10`
    WaitingWorkWakes,
    /// `INV-11`
    TakenOnlyByThoseThatAct,
    /// `INV-12`
    TakenAcrossNamespacesByShare,
    /// `INV-13`
    NoWriteCutsRequests,
    /// `INV-14`
    OnlyServingCounts,
    /// `INV-15`
    PodsWithinStandard,
    /// `INV-16`
    ModelsBeforeLoans,
}

impl Invariant {
    /// Every invariant, in order of id.
    pub const ALL: &[Self] = &[
        Self::ReservedWithinAllocatable,
        Self::NoScaleDownBlind,
        Self::ReplicasWithinBounds,
        Self::NothingNegative,
        Self::PoolLimitRespected,
        Self::EachNamedOnce,
        Self::NoRequestKilled,
        Self::FrozenUnchanged,
        Self::NoScaleDownWhileSilent,
        Self::WaitingWorkWakes,
        Self::TakenOnlyByThoseThatAct,
        Self::TakenAcrossNamespacesByShare,
        Self::NoWriteCutsRequests,
        Self::OnlyServingCounts,
        Self::PodsWithinStandard,
        Self::ModelsBeforeLoans,
    ];

    /// The id, as logs, metrics and documents show it.
    pub const fn id(self) -> &'static str {
        match self {
            Self::ReservedWithinAllocatable => "INV-01",
            Self::NoScaleDownBlind => "INV-02",
            Self::ReplicasWithinBounds => "INV-03",
            Self::NothingNegative => "INV-04",
            Self::PoolLimitRespected => "INV-05",
            Self::EachNamedOnce => "INV-06",
            Self::NoRequestKilled => "INV-07",
            Self::FrozenUnchanged => "INV-08",
            Self::NoScaleDownWhileSilent => "INV-09",
            Self::WaitingWorkWakes => "INV-10",
            Self::TakenOnlyByThoseThatAct => "INV-11",
            Self::TakenAcrossNamespacesByShare => "INV-12",
            Self::NoWriteCutsRequests => "INV-13",
            Self::OnlyServingCounts => "INV-14",
            Self::PodsWithinStandard => "INV-15",
            Self::ModelsBeforeLoans => "INV-16",
        }
    }

    /// The rule in one sentence.
    pub const fn statement(self) -> &'static str {
        match self {
            Self::ReservedWithinAllocatable => {
                "In a pool that cannot grow, no decision raises the reserved GPUs above what is \
                 allocatable and not used by others; where that is unknown, no decision raises \
                 them at all."
            }
            Self::NoScaleDownBlind => {
                "On a missing or stale signal, or if the capacity of a replica is unknown, nothing \
                 scales down, except to a manually set number."
            }
            Self::ReplicasWithinBounds => {
                "A model has between its minimum and maximum of replicas, or exactly the pinned \
                 number; fewer only where a step, a budget, a limit or capacity is named as the \
                 bound, or where it may sleep."
            }
            Self::NothingNegative => "No expected cost is negative.",
            Self::PoolLimitRespected => {
                "No decision raises the reserved GPUs of a pool above its limit."
            }
            Self::EachNamedOnce => {
                "A decision names each variant and each training run of the snapshot exactly \
                 once, and no variant, run or replica that is not in it."
            }
            Self::NoRequestKilled => {
                "No replica is deleted unless it was never ready, or has drained and was observed \
                 without requests."
            }
            Self::FrozenUnchanged => "Nothing changes for a frozen model.",
            Self::NoScaleDownWhileSilent => {
                "While a gateway or an engine of a model does not report, nothing scales down, \
                 except to a manually set number."
            }
            Self::WaitingWorkWakes => {
                "A model without replicas and with queued work gets one, even if another source \
                 does not report; none only if its owner allows none, or if a budget, a limit or \
                 capacity is named as the bound."
            }
            Self::TakenOnlyByThoseThatAct => {
                "A ready replica that is still needed is taken only for another model of the same \
                 pool that is in mode Act and gets more; a model in Recommend mode, a frozen one, \
                 or one whose replicas Flyball cannot set takes nothing."
            }
            Self::TakenAcrossNamespacesByShare => {
                "A namespace loses ready replicas that are still needed to another only by its \
                 pool's shares: to one that gets its guarantee or has a higher priority, and never \
                 below its own guarantee."
            }
            Self::NoWriteCutsRequests => {
                "No write removes a replica, or lets Kubernetes choose one, unless it was never \
                 ready, was observed empty, or has drained while no gateway sends to it and its \
                 grace period covers the rest."
            }
            Self::OnlyServingCounts => {
                "No decision counts a replica as ready that is not ready or whose node is lost, \
                 and none starts more spares than there are such replicas."
            }
            Self::PodsWithinStandard => {
                "No pod that Flyball creates violates the Pod Security Standards: all of baseline, \
                 and all of restricted except the user that an image names."
            }
            Self::ModelsBeforeLoans => {
                "No run is lent more of a pool in which a model that acts gets fewer replicas than \
                 it needs because the pool has no more."
            }
        }
    }

    /// Finds where this one rule is broken.
    fn violations(
        self,
        snapshot: &Snapshot,
        changes: &Changes<'_>,
        decision: &Decision,
    ) -> impl Iterator<Item = Violation> + use<> {
        let broken = match self {
            Self::ReservedWithinAllocatable => {
                rules::reserved_within_allocatable(snapshot, changes)
            }
            Self::NoScaleDownBlind => rules::no_scale_down_blind(&changes.models),
            Self::ReplicasWithinBounds => rules::replicas_within_bounds(&changes.models),
            Self::NothingNegative => rules::nothing_negative(decision),
            Self::PoolLimitRespected => rules::pool_limit_respected(snapshot, changes),
            Self::EachNamedOnce => rules::each_named_once(snapshot, decision),
            Self::NoRequestKilled => rules::no_request_killed(snapshot, decision),
            Self::FrozenUnchanged => rules::frozen_unchanged(&changes.models),
            Self::NoScaleDownWhileSilent => rules::no_scale_down_while_silent(&changes.models),
            Self::WaitingWorkWakes => rules::waiting_work_wakes(&changes.models),
            Self::TakenOnlyByThoseThatAct => shares::taken_only_by_those_that_act(changes),
            Self::TakenAcrossNamespacesByShare => {
                shares::taken_across_namespaces_by_share(snapshot, changes)
            }
            // Not about decisions: see `removals`.
            Self::NoWriteCutsRequests => Vec::new(),
            Self::OnlyServingCounts => rules::only_serving_counts(&changes.models),
            // A decision has no pods; the operator looks at each that it is about to make.
            Self::PodsWithinStandard => Vec::new(),
            Self::ModelsBeforeLoans => loans::models_before_loans(changes),
        };
        let violation = move |(models, detail)| Violation { invariant: self, models, detail };
        broken.into_iter().map(violation)
    }
}

/// Finds where any rule is broken; empty when the decision keeps them all.
pub fn check(snapshot: &Snapshot, previous: &Previous, decision: &Decision) -> Vec<Violation> {
    let changes = Changes::new(snapshot, previous, decision);
    let all = Invariant::ALL.iter();
    all.flat_map(|invariant| invariant.violations(snapshot, &changes, decision)).collect()
}

/// One place where a decision breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub invariant: Invariant,
    /// The models whose decisions break it: if nothing is done for them, it holds.
    pub models: Vec<ModelId>,
    /// What is wrong, with names and numbers.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant.id(), self.detail)
    }
}
