//! Conditions of our kinds: a closed list of types, and the standard form of Kubernetes.
//!
//! `Ready`, `Reconciling` and `Stalled` mean what kstatus says, so that `kubectl wait`, Flux and Argo
//! CD understand them: the last two are there only while they are true.

use flyball_core::reason::Reason;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// What a condition is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConditionKind {
    /// All of the others together.
    Ready,
    /// The target workloads exist.
    TargetFound,
    /// Demand signals are fresh.
    SignalsFresh,
    /// The desired capacity is available.
    CapacityAvailable,
    /// Requests meet the objectives.
    ObjectivesMet,
    /// Pods get the time to finish what they have; there only where the engine is known.
    DrainsSafely,
    /// No other ModelService has one of its public names; set only while one has.
    NamesUnique,
    /// Every replica is ready or starts in time, on a stable node, and as fast as the others; set only while
    /// that is false.
    ReplicasHealthy,
    /// The capacity of a replica is known; set only while it is not.
    CapacityKnown,
    /// Some number of replicas reaches the objectives; set only while none does.
    ObjectivesReachable,
    /// Every budget of a Tenant is below its alert thresholds and lasts until it resets, and a training run has spent less
    /// than its budget and costs no more than its value; set only while that is not so.
    WithinBudget,
    /// The heartbeats of a training run arrive.
    HeartbeatFresh,
    /// A training run is expected to end by its deadline.
    DeadlineMet,
    /// What was decided about a training run is carried out.
    PlacementApplied,
    /// A training run has ended; false if it failed, and set only then.
    Complete,
    /// A change is in progress; set only then.
    Reconciling,
    /// Nothing will change until a person acts; set only then.
    Stalled,
}

impl ConditionKind {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 17] = [
        Self::Ready,
        Self::TargetFound,
        Self::SignalsFresh,
        Self::CapacityAvailable,
        Self::ObjectivesMet,
        Self::DrainsSafely,
        Self::NamesUnique,
        Self::ReplicasHealthy,
        Self::CapacityKnown,
        Self::ObjectivesReachable,
        Self::WithinBudget,
        Self::HeartbeatFresh,
        Self::DeadlineMet,
        Self::PlacementApplied,
        Self::Complete,
        Self::Reconciling,
        Self::Stalled,
    ];

    /// Its name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::TargetFound => "TargetFound",
            Self::SignalsFresh => "SignalsFresh",
            Self::CapacityAvailable => "CapacityAvailable",
            Self::ObjectivesMet => "ObjectivesMet",
            Self::DrainsSafely => "DrainsSafely",
            Self::NamesUnique => "NamesUnique",
            Self::ReplicasHealthy => "ReplicasHealthy",
            Self::CapacityKnown => "CapacityKnown",
            Self::ObjectivesReachable => "ObjectivesReachable",
            Self::WithinBudget => "WithinBudget",
            Self::HeartbeatFresh => "HeartbeatFresh",
            Self::DeadlineMet => "DeadlineMet",
            Self::PlacementApplied => "PlacementApplied",
            Self::Complete => "Complete",
            Self::Reconciling => "Reconciling",
            Self::Stalled => "Stalled",
        }
    }

    /// What it says where it is True.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Ready => {
                "The model serves or may sleep, the tenant is accepted, or the training run progresses or has ended with \
                 success; and no other condition prevents it."
            }
            Self::TargetFound => "The target workloads exist.",
            Self::SignalsFresh => "Demand signals are fresh.",
            Self::CapacityAvailable => "The desired capacity is available.",
            Self::ObjectivesMet => "Requests meet the objectives.",
            Self::DrainsSafely => {
                "Pods have enough time to drain; set only if the engine is known."
            }
            Self::NamesUnique => {
                "No other ModelService has one of its public names; set only while one has."
            }
            Self::ReplicasHealthy => {
                "Every replica is ready or starts in time, on a stable node, and as fast as the \
                 others; set only while that is false."
            }
            Self::CapacityKnown => "The capacity of a replica is known; set only while it is not.",
            Self::ObjectivesReachable => {
                "Some number of replicas reaches the objectives; set only while none does."
            }
            Self::WithinBudget => {
                "Every budget of a Tenant is below its alert thresholds and lasts until it resets, or a training run has \
                 spent less than its budget and costs no more than its value; set only while that is not so."
            }
            Self::HeartbeatFresh => {
                "The heartbeats of a training run arrive; unknown if it reports none."
            }
            Self::DeadlineMet => {
                "A training run is expected to end by its deadline; set only if it has one."
            }
            Self::PlacementApplied => "The decision about a training run is carried out.",
            Self::Complete => {
                "A training run has ended: true if with success, false if it failed; set only then."
            }
            Self::Reconciling => "A change is in progress; set only then.",
            Self::Stalled => "Nothing will change until a person acts; set only then.",
        }
    }
}

/// What is said about one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionValue {
    /// About what.
    pub kind: ConditionKind,
    /// Whether it is so; `None` is "unknown".
    pub so: Option<bool>,
    /// Why.
    pub reason: Reason,
    /// The reason in a sentence.
    pub message: String,
}

/// The conditions as they are to be stored: the time of one that did not turn stays.
pub fn merge(
    before: &[Condition],
    values: &[ConditionValue],
    generation: Option<i64>,
    now: jiff::Timestamp,
) -> Vec<Condition> {
    let condition = |values: &ConditionValue| {
        let status = match values.so {
            Some(true) => "True",
            Some(false) => "False",
            None => "Unknown",
        };
        let same =
            before.iter().find(|one| one.type_ == values.kind.name() && one.status == status);
        Condition {
            type_: values.kind.name().to_owned(),
            status: status.to_owned(),
            reason: values.reason.name().to_owned(),
            message: values.message.clone(),
            observed_generation: generation,
            last_transition_time: same
                .map_or_else(|| Time(now), |one| one.last_transition_time.clone()),
        }
    };
    values.iter().map(condition).collect()
}
