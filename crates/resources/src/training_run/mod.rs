//! TrainingRun: a job with a deadline, what it may use, and how it tells how far it is.
//!
//! Six lines adopt a JobSet, Job or TrainJob that exists; see `docs/guides/training.md`. `workload` has what runs,
//! `checkpoint` how it tells, `status` what Flyball says about it.

mod checkpoint;
mod status;
mod workload;

pub use checkpoint::{CheckpointSpec, HeartbeatSource, LogPatternsSpec};
pub use status::{
    ExpectedEnd, RunAccount, RunAttempt, RunCandidate, RunCost, RunLoan, RunLosses, RunPlacement,
    RunPreemption, RunProgress, RunSize, TrainingRunDecision, TrainingRunStatus,
};
pub use workload::{CheckpointVolume, RunJobSpec, RunWorkloadKind, RunWorkloadRef};

use crate::model_service::MoneySpec;
use crate::pool::PurchaseSpec;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A training run.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "flyball.dev",
    version = "v1alpha1",
    kind = "TrainingRun",
    namespaced,
    status = "TrainingRunStatus",
    derive = "PartialEq",
    shortname = "trun",
    category = "flyball",
    doc = "A training run: the job, its deadline, the machines that it may use, how far it is, and what Flyball recommends \
           or does.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason"
    ),
    printcolumn(name = "Step", type_ = "integer", json_path = ".status.progress.step"),
    printcolumn(name = "Done", type_ = "string", json_path = ".status.progress.percent"),
    printcolumn(name = "End", type_ = "string", json_path = ".status.expectedEnd.likely"),
    printcolumn(name = "Cost", type_ = "string", json_path = ".status.cost.spent"),
    printcolumn(name = "Advice", type_ = "string", json_path = ".status.decision.choice"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Mode", type_ = "string", json_path = ".spec.mode", priority = 1),
    printcolumn(name = "Deadline", type_ = "string", json_path = ".spec.deadline", priority = 1),
    printcolumn(
        name = "Saved",
        type_ = "integer",
        json_path = ".status.progress.savedStep",
        priority = 1
    ),
    printcolumn(
        name = "Goodput",
        type_ = "string",
        json_path = ".status.goodputPercent",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.workloadRef) != has(self.job)")
        .message("exactly one of `workloadRef` and `job` must be set"),
    validation = Rule::new("has(self.workloadRef) == has(oldSelf.workloadRef)")
        .message("`workloadRef` and `job` must not replace each other: create another TrainingRun"),
    validation = Rule::new("!has(self.deadline) || self.purchases.exists(one, one != 'Spot')")
        .message("`purchases` must have more than Spot if `deadline` is set: spot machines alone are never sure"),
    validation = Rule::new("!self.borrow || has(self.pool)")
        .message("`pool` must be set if `borrow` is: it names the Pool that lends"),
    validation = Rule::new("!has(self.elastic) || !has(self.job) || (self.elastic.minNodes <= self.job.nodes && self.job.nodes <= self.elastic.maxNodes)")
        .message("`job.nodes` must lie between `elastic.minNodes` and `elastic.maxNodes`")
)]
pub struct TrainingRunSpec {
    /// A JobSet, Job or TrainJob of the same namespace that runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_ref: Option<RunWorkloadRef>,
    /// A job from which Flyball makes a JobSet, if the mode is Act.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<RunJobSpec>,
    /// Time by which the run must have ended, its last save included; RFC 3339. If absent, nothing is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("format" = "date-time"))]
    pub deadline: Option<String>,
    /// What it is worth that the run ends in time. Loans go to what is worth more for each accelerator and hour; of runs that
    /// a preemption would make late, one of less value goes first. A run whose remaining cost is higher is told so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<MoneySpec>,
    /// What the run may cost. Once so much is spent it is not started again; machines that it has are not taken from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<MoneySpec>,
    /// The Pool of its accelerators, with their prices. If absent, the Pool whose nodes its pods run on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub pool: Option<String>,
    /// Whether the run has no accelerators of its own and borrows those that models of `pool` do not need. It starts once that
    /// Pool has enough to lend, and stops when models need them back.
    #[serde(default)]
    pub borrow: bool,
    /// Purchase options that it may use.
    #[serde(default = "both")]
    #[schemars(length(min = 1, max = 3), extend("x-kubernetes-list-type" = "set"))]
    pub purchases: Vec<PurchaseSpec>,
    /// Zones in which it may use spot machines, by the label `topology.kubernetes.io/zone`. If empty, every zone in which
    /// the Pool has nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        inner(length(min = 1, max = 63)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub zones: Vec<String>,
    /// Numbers of nodes that it can run on. The status recommends one; the run keeps the nodes that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elastic: Option<ElasticSpec>,
    /// Whether Flyball only recommends, or acts.
    #[serde(default)]
    pub mode: RunMode,
    /// Steps of the whole run. What its heartbeats say counts more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_000_i64))]
    pub steps: Option<i64>,
    /// Time of the whole run on its machines in seconds, without restarts and saves; for runs that report no steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_i64))]
    pub work_seconds: Option<i64>,
    /// How the run reports its progress, and what is assumed about saves until it does.
    #[serde(default)]
    pub checkpoint: CheckpointSpec,
}

/// Whether decisions about a run are carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RunMode {
    /// Decisions are shown; nothing is changed.
    #[default]
    Recommend,
    /// Decisions are carried out.
    Act,
}

impl RunMode {
    /// The name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Recommend => "Recommend",
            Self::Act => "Act",
        }
    }
}

/// Numbers of nodes that a run can use.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.minNodes <= self.maxNodes")
        .message("`minNodes` must be at most `maxNodes`")
)]
pub struct ElasticSpec {
    /// Minimum nodes.
    #[schemars(range(min = 1, max = 100_000))]
    pub min_nodes: i32,
    /// Maximum nodes.
    #[schemars(range(min = 1, max = 100_000))]
    pub max_nodes: i32,
}

fn both() -> Vec<PurchaseSpec> {
    vec![PurchaseSpec::OnDemand, PurchaseSpec::Spot]
}
