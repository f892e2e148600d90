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
        .message("a variant must stay what it is: remove it and add one of another name")
)]
pub struct VariantSpec {
    /// Its name among the variants of this model.
    #[serde(default = "main")]
    #[schemars(length(min = 1, max = 40), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// The Pool that its replicas run on. Without, prices and limits are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub pool: Option<String>,
    /// The accelerators of one replica.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 1_024))]
    pub gpus_per_replica: i32,
    /// A workload in the same namespace whose `scale` is read, and set if the mode is Act.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_ref: Option<TargetRef>,
    /// An engine that Flyball starts and owns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineSpec>,
    /// What one replica can do within the objectives, where its owner knows better than Flyball's
    /// prediction. It is corrected by what is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<CapacityPrior>,
    /// How long a replica takes from being asked for to serving, in seconds, until it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub cold_start_seconds: Option<i32>,
}

/// A workload that has a number of replicas.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self == oldSelf")
        .message("`targetRef` must not change: remove the variant and add one of another name")
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
    /// Which engine; it decides arguments, metric names and how it is drained. vLLM from 0.18 on, which
    /// is the first to take `--shutdown-timeout`.
    #[serde(with = "kind")]
    #[schemars(schema_with = "kind::schema")]
    pub kind: Engine,
    /// The image.
    #[schemars(length(min = 1, max = 512))]
    pub image: String,
    /// The program, if not the image's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 1_024)), extend("x-kubernetes-list-type" = "atomic"))]
    pub command: Vec<String>,
    /// Arguments beside those that Flyball sets itself (model, served names, host, port, tensor parallel
    /// size, shutdown timeout, metrics); all of them where `command` is set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), inner(length(max = 4_096)), extend("x-kubernetes-list-type" = "atomic"))]
    pub args: Vec<String>,
    /// The port that it answers on.
    #[serde(default = "port")]
    #[schemars(range(min = 1, max = 65_535))]
    pub port: i32,
    /// The longest that a request may take to finish once its replica is to go, in seconds. Grace
    /// period, preStop and the engine's own shutdown timeout follow from it.
    #[serde(default = "drain")]
    #[schemars(range(min = 1, max = 3_600))]
    pub drain_seconds: i32,
    /// More of the pod, laid over the template that Flyball makes: objects are merged, and lists of things
    /// with a name (`containers`, `initContainers`, `env`, `volumes`) by it. It adds and takes nothing
    /// away, and only fields that give the pod no more rights than others have may be set: environment,
    /// placement, volumes, resources beside accelerators, pull secrets, the user, more init containers. A
    /// field that may not be set stalls the model with `SpecRefused`; docs/guides/operator.md has the list.
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
    /// Prompt tokens that it reads in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000_000))]
    pub prefill_tokens_per_second: Option<i64>,
    /// Tokens that it writes in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000_000))]
    pub decode_tokens_per_second: Option<i64>,
    /// Tokens of running requests that it holds in memory.
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
