//! What Flyball says about a model. Written when a decision changes, not with every tick.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What Flyball says about a model. What is absent is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelServiceStatus {
    /// Generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Replicas over all variants that are ready or will be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Ready replicas over all variants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Recommended replicas over all variants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommended_replicas: Option<i32>,
    /// Label selector of the model's pods, for the `scale` subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// Share of the last hour's requests that met the objectives, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attainment_percent: Option<String>,
    /// Hourly cost of the running replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hourly_cost: Option<String>,
    /// Hourly cost of the recommended replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommended_hourly_cost: Option<String>,
    /// Currency of the costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Expected demand, in replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Band>,
    /// Each variant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub variants: Vec<VariantStatus>,
    /// Engines of each `targetRef` workload, for gateways.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["variant"]))]
    pub adopted: Vec<AdoptedStatus>,
    /// The last decision and its inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<ReceiptStatus>,
    /// State that the operator has learnt about the model, for the next leader. Its format may change
    /// with any version; without it the operator learns again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4_096))]
    pub learnt: Option<String>,
    /// Conditions in the standard Kubernetes form; the reference lists the types.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// One variant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VariantStatus {
    /// Its name.
    pub name: String,
    /// Recommended replicas.
    pub recommended: i32,
    /// Since when, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Pending replicas, without a node.
    pub pending: i32,
    /// Starting replicas: on a node and not ready yet.
    pub starting: i32,
    /// Ready replicas.
    pub ready: i32,
    /// Draining replicas.
    pub draining: i32,
    /// Failing replicas: they should be ready and are not, or their node is lost; absent if there
    /// are none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub failing: i32,
    /// Prompt tokens per second of one replica, within the objectives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefill_tokens_per_second: Option<SpanStatus>,
    /// Output tokens per second of one replica, within the objectives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decode_tokens_per_second: Option<SpanStatus>,
    /// Cold start in seconds: from requesting a replica until it is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold_start_seconds: Option<SpanStatus>,
    /// Number of measured cold starts.
    #[serde(default)]
    pub starts_measured: i32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_none(count: &i32) -> bool {
    *count == 0
}

/// Where the engines of an adopted workload answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdoptedStatus {
    /// The variant.
    pub variant: String,
    /// Label selector of its pods.
    pub selector: String,
    /// Port of the engines; absent if the containers do not reveal it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
    /// Engine type; absent if image and arguments do not reveal it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Model names that the engines expect; absent if the arguments do not reveal them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub served_as: Vec<String>,
}

/// A number with its lower and upper end and its source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpanStatus {
    /// Lower end of the interval.
    pub low: i64,
    /// Best estimate.
    pub point: i64,
    /// Upper end of the interval.
    pub high: i64,
    /// Source: Assumed, Stated, Catalogued, Modelled, Forecast or Measured.
    pub origin: String,
}

/// Current and expected demand, in replicas of the variant with the largest capacity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Band {
    /// Replicas that current demand needs; a decimal.
    pub need_now: String,
    /// Upper forecast of the replicas needed, with the probability in `quantilePercent`; a decimal.
    pub look_ahead: String,
    /// Probability that `lookAhead` is enough, in percent; a decimal.
    pub quantile_percent: String,
    /// Forecast horizon in seconds: one cold start plus the time after which a replica pays off.
    pub horizon_seconds: i64,
}

/// A decision and its inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptStatus {
    /// Id of the decision: microseconds since 1970 and the shard that made it.
    pub id: String,
    /// Time of the decision, RFC 3339. A decision that repeats the previous one keeps its time.
    pub at: String,
    /// Reason, from a fixed list; `flyball explain REASON` describes it.
    pub reason: String,
    /// The bound that set the number of replicas, from a fixed list.
    pub bound: String,
    /// The reason in a sentence.
    pub message: String,
    /// Replicas that each bound alone would allow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<CandidateStatus>,
    /// The signals and their freshness.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<SignalSeen>,
    /// Replicas that a horizontal pod autoscaler with a target of 75 % would set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hpa_would_want: Option<i32>,
    /// Requests per hour that are expected to miss an objective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_hourly_misses: Option<SpanStatus>,
    /// The law in use, if past traffic was replayed to choose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub law: Option<ChosenLawStatus>,
    /// Steps applied so far, newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<CapacityStatus>,
}

/// The law that decides for a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChosenLawStatus {
    /// Name of the law: `forecast` is Flyball's own, with a number if a miss is weighted differently.
    pub name: String,
    /// Time of the last change of law, RFC 3339; absent if it never changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Hours of past traffic replayed to choose it.
    pub replayed_hours: String,
    /// Cost of each law on that traffic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<TriedLawStatus>,
}

/// Cost of a law on past traffic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TriedLawStatus {
    /// Its name.
    pub name: String,
    /// Replica-hours.
    pub replica_hours: String,
    /// Share of requests that would have missed an objective, in percent.
    pub missed_percent: String,
}

/// Replicas that one bound alone would allow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CandidateStatus {
    /// The bound.
    pub bound: String,
    /// Replicas.
    pub replicas: i32,
}

/// Freshness of a signal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignalSeen {
    /// The signal: Prefill, Decode, Resident or Backlog.
    pub signal: String,
    /// Fresh, Stale or Missing.
    pub freshness: String,
}

/// One step of applying a decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityStatus {
    /// The variant.
    pub variant: String,
    /// Kind of step: `Start`, `Drain` or `Delete`.
    pub step: String,
    /// Number of replicas, or the pod.
    pub what: String,
}
