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
    /// The workloads exist.
    TargetFound,
    /// What is known about demand is recent.
    SignalsFresh,
    /// What is wanted can be had.
    CapacityAvailable,
    /// Requests are answered as fast as the objectives say.
    ObjectivesMet,
    /// Pods get the time to finish what they have; there only where the engine is known.
    DrainsSafely,
    /// No other ModelService has one of its public names; there only while one has.
    NamesUnique,
    /// Every replica serves or comes up in time, on a node that stays, and as fast as others; there only while
    /// that is not so.
    ReplicasHealthy,
    /// What a replica carries is known; there only while it is not.
    CapacityKnown,
    /// Some number of replicas reaches the objectives; there only while none does.
    ObjectivesReachable,
    /// Something changes; there only while it does.
    Reconciling,
    /// Nothing will change until a person acts; there only while that is so.
    Stalled,
}

impl ConditionKind {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 12] = [
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
            Self::Reconciling => "Reconciling",
            Self::Stalled => "Stalled",
        }
    }

    /// What it says where it is True.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Ready => "It serves or may sleep, and nothing of the others is in the way.",
            Self::TargetFound => "The workloads exist.",
            Self::SignalsFresh => "What is known about demand is recent.",
            Self::CapacityAvailable => "What is wanted can be had.",
            Self::ObjectivesMet => "Requests are answered as fast as the objectives say.",
            Self::DrainsSafely => {
                "Pods get the time to finish their requests; there only where the engine is known."
            }
            Self::NamesUnique => {
                "No other ModelService has one of its public names; there only while one has."
            }
            Self::ReplicasHealthy => {
                "Every replica serves or comes up in time, on a node that stays, and as fast as others; there only while \
                 that is not so."
            }
            Self::CapacityKnown => "What a replica carries is known; there only while it is not.",
            Self::ObjectivesReachable => {
                "Some number of replicas reaches the objectives; there only while none does."
            }
            Self::Reconciling => "Something changes; there only while it does.",
            Self::Stalled => {
                "Nothing will change until a person acts; there only while that is so."
            }
        }
    }
}

/// What is said about one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// About what.
    pub kind: ConditionKind,
    /// Whether it is so; `None` is "unknown".
    pub so: Option<bool>,
    /// Why.
    pub reason: Reason,
    /// The same in a sentence.
    pub message: String,
}

/// The conditions as they are to be stored: the time of one that did not turn stays.
pub fn merge(
    before: &[Condition],
    said: &[Said],
    generation: Option<i64>,
    now: jiff::Timestamp,
) -> Vec<Condition> {
    let condition = |said: &Said| {
        let status = match said.so {
            Some(true) => "True",
            Some(false) => "False",
            None => "Unknown",
        };
        let same = before.iter().find(|one| one.type_ == said.kind.name() && one.status == status);
        Condition {
            type_: said.kind.name().to_owned(),
            status: status.to_owned(),
            reason: said.reason.name().to_owned(),
            message: said.message.clone(),
            observed_generation: generation,
            last_transition_time: same
                .map_or_else(|| Time(now), |one| one.last_transition_time.clone()),
        }
    };
    said.iter().map(condition).collect()
}
