//! What runs: something that exists, or a block from which a JobSet is made.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A workload that trains.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self == oldSelf")
        .message("`workloadRef` must not change: create another TrainingRun")
)]
pub struct RunWorkloadRef {
    /// Its kind.
    pub kind: RunWorkloadKind,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Kinds of workloads that train.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum RunWorkloadKind {
    /// A JobSet.
    JobSet,
    /// A Job of Kubernetes.
    Job,
    /// A TrainJob of Kubeflow Trainer, which makes a JobSet of the same name.
    TrainJob,
}

impl RunWorkloadKind {
    /// The name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::JobSet => "JobSet",
            Self::Job => "Job",
            Self::TrainJob => "TrainJob",
        }
    }
}

/// A job from which Flyball makes a JobSet with one pod per node.
///
/// Pods get what `torchrun` reads (`PET_NNODES`, `PET_NPROC_PER_NODE`, `PET_NODE_RANK`, `PET_MASTER_ADDR`,
/// `PET_MASTER_PORT`) and `FLYBALL_HEARTBEAT_PORT`, `FLYBALL_SAVE_EVERY_SECONDS`.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self == oldSelf")
        .message("`job` must not change: create another TrainingRun")
)]
pub struct RunJobSpec {
    /// Container image.
    #[schemars(length(min = 1, max = 1_024))]
    pub image: String,
    /// Program and arguments; the image's own if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 64),
        inner(length(max = 4_096)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub command: Vec<String>,
    /// Nodes, with one pod each.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100_000))]
    pub nodes: i32,
    /// Accelerators of each pod.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 1_024))]
    pub gpus_per_node: i32,
    /// Kueue LocalQueue that admits it. If absent, it starts without Kueue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub queue: Option<String>,
    /// User id of the process; with it, pods keep to the Pod Security Standard `restricted`. If absent, the image's user,
    /// and `restricted` refuses the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647_i64))]
    pub run_as_user: Option<i64>,
    /// Volume for checkpoints, shared by all pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoints: Option<CheckpointVolume>,
}

/// A volume for checkpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointVolume {
    /// PersistentVolumeClaim of the same namespace.
    #[schemars(length(min = 1, max = 253))]
    pub claim: String,
    /// Folder at which pods see it.
    #[serde(default = "folder")]
    #[schemars(length(min = 1, max = 256), regex(pattern = r"^/[^:]*$"))]
    pub mount_path: String,
}

const fn one() -> i32 {
    1
}

fn folder() -> String {
    "/checkpoints".to_owned()
}
