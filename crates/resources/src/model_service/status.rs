//! What Flyball says about a model. Written when a decision changes, not with every tick.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What Flyball says about a model. What is absent is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelServiceStatus {
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Replicas over all variants that serve or will serve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Replicas over all variants that serve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Replicas over all variants that there should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommended_replicas: Option<i32>,
    /// The pods of the model, as a label selector in text, for the `scale` subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// The share of requests of the last hour that met the objectives, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attainment_percent: Option<String>,
    /// What an hour of the replicas that run costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hourly_cost: Option<String>,
    /// What an hour of the replicas that there should be costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommended_hourly_cost: Option<String>,
    /// The currency of both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// The work that is expected, in replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Band>,
    /// Each variant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub variants: Vec<VariantStatus>,
    /// Where the engines of each workload of `targetRef` answer, for gateways.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["variant"]))]
    pub adopted: Vec<AdoptedStatus>,
    /// The last decision and what it rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<ReceiptStatus>,
    /// What an operator has learnt about the model, for the operator that leads next. Its form may change
    /// with any version; without it everything is learnt again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4_096))]
    pub learnt: Option<String>,
    /// What is so, in the standard form; see the reference for the types.
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
    /// Replicas that it should have.
    pub recommended: i32,
    /// Since when, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Replicas without a node.
    pub pending: i32,
    /// Replicas that have a node and do not serve yet.
    pub starting: i32,
    /// Replicas that serve.
    pub ready: i32,
    /// Replicas that finish what they have.
    pub draining: i32,
    /// Replicas that should serve and do not, or whose node is lost; absent if there are none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub failing: i32,
    /// Prompt tokens that one replica reads in a second, within the objectives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefill_tokens_per_second: Option<SpanStatus>,
    /// Tokens that one replica writes in a second, within the objectives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decode_tokens_per_second: Option<SpanStatus>,
    /// From asking for a replica until it serves, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold_start_seconds: Option<SpanStatus>,
    /// Starts that were measured.
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
    /// Its pods, as a label selector in text.
    pub selector: String,
    /// The port of its engines; absent where its containers do not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
    /// What they are; absent where image and arguments do not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// The names by which they know the model; absent where arguments do not show it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub served_as: Vec<String>,
}

/// A number with its low and high end, and where it came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpanStatus {
    /// How low it may be.
    pub low: i64,
    /// The best guess.
    pub point: i64,
    /// How high it may be.
    pub high: i64,
    /// Where it came from: Assumed, Stated, Catalogued, Modelled, Forecast or Measured.
    pub origin: String,
}

/// The work that is there and that is expected, in replicas of the variant that carries most.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Band {
    /// What the work of this moment takes; a decimal.
    pub need_now: String,
    /// What it will take at most, as likely as `quantilePercent` says; a decimal.
    pub look_ahead: String,
    /// How likely `lookAhead` is enough, in percent; a decimal.
    pub quantile_percent: String,
    /// How far ahead it looks, in seconds: one cold start and the time after which a replica pays.
    pub horizon_seconds: i64,
}

/// A decision and what it rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptStatus {
    /// Its name: microseconds since 1970 and the shard that made it.
    pub id: String,
    /// When it was made, RFC 3339. A decision that repeats the one before keeps that one's time.
    pub at: String,
    /// Why, from Flyball's closed list; `flyball explain REASON` tells more.
    pub reason: String,
    /// What set the number of replicas, from a closed list.
    pub bound: String,
    /// The same in a sentence.
    pub message: String,
    /// What each bound alone would have given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<CandidateStatus>,
    /// The signals, and how far each was trusted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<SignalSeen>,
    /// What a horizontal pod autoscaler with a target of 75 % would have asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hpa_would_want: Option<i32>,
    /// Requests of an hour that are expected to miss an objective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_hourly_misses: Option<SpanStatus>,
    /// The law that decides, where past traffic was replayed to choose one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub law: Option<ChosenLawStatus>,
    /// What was carried out of it, newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<CapacityStatus>,
}

/// The law that decides for a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChosenLawStatus {
    /// Its name: `forecast` is Flyball's own, with a number if a miss is taken to be more or less dear.
    pub name: String,
    /// Since when it decides, RFC 3339; absent from the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Hours of past traffic that were replayed to choose it.
    pub replayed_hours: String,
    /// What each law would have cost on that traffic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<TriedLawStatus>,
}

/// What a law would have cost on past traffic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TriedLawStatus {
    /// Its name.
    pub name: String,
    /// Hours of replicas.
    pub replica_hours: String,
    /// Requests that would have missed an objective, in percent.
    pub missed_percent: String,
}

/// What one bound alone would have given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CandidateStatus {
    /// The bound.
    pub bound: String,
    /// Replicas.
    pub replicas: i32,
}

/// How far a signal was trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignalSeen {
    /// The signal: Prefill, Decode, Resident or Backlog.
    pub signal: String,
    /// Fresh, Stale or Missing.
    pub freshness: String,
}

/// One step of carrying a decision out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityStatus {
    /// The variant.
    pub variant: String,
    /// What: `Start`, `Drain` or `Delete`.
    pub step: String,
    /// Replicas that were asked for, or the pod.
    pub what: String,
}
