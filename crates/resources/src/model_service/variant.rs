//! The ways to run a model.

use flyball_engines::Engine;
use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One way to run a model: a workload that exists, or an engine that Flyball starts.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.targetRef) != has(self.engine)")
        .message("exactly one of `targetRef` and `engine` must be set"),
    validation = Rule::new("has(self.targetRef) == has(oldSelf.targetRef)")
        .message("the type of a variant must not change: remove it and add one with another name")
)]
pub struct VariantSpec {
    /// Name of the variant, unique within the model.
    #[serde(default = "main")]
    #[schemars(length(min = 1, max = 40), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// The Pool that its replicas run on. If absent, prices and limits are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub pool: Option<String>,
    /// Accelerators per replica.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 1_024))]
    pub gpus_per_replica: i32,
    /// A workload in the same namespace whose `scale` Flyball reads, and sets if the mode is Act.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_ref: Option<TargetRef>,
    /// An engine that Flyball starts and manages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineSpec>,
    /// Capacity of one replica within the objectives, if you know it better than Flyball's
    /// prediction. Measurements correct it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<CapacityPrior>,
    /// Expected cold start in seconds, until one is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub cold_start_seconds: Option<i32>,
}

/// A workload that has a number of replicas.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self == oldSelf")
        .message("`targetRef` must not change: remove the variant and add one with another name")
)]
pub struct TargetRef {
    /// Its kind.
    pub kind: TargetKind,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Workloads that can be adopted.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum TargetKind {
    /// `apps/v1`.
    Deployment,
    /// `apps/v1`.
    StatefulSet,
    /// `leaderworkerset.x-k8s.io/v1`: a replica of several pods.
    LeaderWorkerSet,
}

/// An engine that Flyball starts: a Deployment of its own, a Service, and settings without which
/// requests would be cut when a pod ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EngineSpec {
    /// Engine type, which decides arguments, metric names and draining. vLLM must be 0.18 or newer, the
    /// first version with `--shutdown-timeout`.
    #[serde(with = "kind")]
    #[schemars(schema_with = "kind::schema")]
    pub kind: Engine,
    /// The image.
    #[schemars(length(min = 1, max = 512))]
    pub image: String,
    /// The command, if it differs from the image's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 1_024)), extend("x-kubernetes-list-type" = "atomic"))]
    pub command: Vec<String>,
    /// Arguments in addition to those that Flyball sets (model, served names, host, port, tensor
    /// parallel size, shutdown timeout, metrics); all arguments if `command` is set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), inner(length(max = 4_096)), extend("x-kubernetes-list-type" = "atomic"))]
    pub args: Vec<String>,
    /// Port of the engine's API.
    #[serde(default = "port")]
    #[schemars(range(min = 1, max = 65_535))]
    pub port: i32,
    /// Maximum drain time of a replica, in seconds. Grace period, preStop hook and the engine's
    /// shutdown timeout are derived from it.
    #[serde(default = "drain")]
    #[schemars(range(min = 1, max = 3_600))]
    pub drain_seconds: i32,
    /// Additions to the pod template that Flyball creates: objects are merged, and lists of named items
    /// (`containers`, `initContainers`, `env`, `volumes`) are merged by name. It can only add, and only
    /// fields that give the pod no extra rights: environment, placement, volumes, resources other than
    /// accelerators, pull secrets, the user, more init containers. Any other field stalls the model with
    /// `SpecRefused`; docs/guides/operator.md has the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub pod_overlay: Option<Map<String, Value>>,
}

/// An engine by its word in resources.
mod kind {
    use flyball_engines::Engine;
    use schemars::{Schema, SchemaGenerator, json_schema};
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(engine: &Engine, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(engine.facts().kind)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Engine, D::Error> {
        let word = String::deserialize(from)?;
        Engine::of_kind(&word).ok_or_else(|| {
            let kinds = Engine::ALL.map(|engine| engine.facts().kind).join(", ");
            serde::de::Error::custom(format!("unknown engine {word}; known are {kinds}"))
        })
    }

    pub(super) fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Engine::ALL.map(|engine| engine.facts().kind) })
    }
}

/// What one replica can do within the objectives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityPrior {
    /// Prompt tokens per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000_000))]
    pub prefill_tokens_per_second: Option<i64>,
    /// Output tokens per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000_000))]
    pub decode_tokens_per_second: Option<i64>,
    /// Tokens of running requests that fit in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000_000_000_i64))]
    pub resident_tokens: Option<i64>,
}

fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

fn main() -> String {
    "main".to_owned()
}

const fn one() -> i32 {
    1
}

const fn port() -> i32 {
    8_000
}

const fn drain() -> i32 {
    120
}
