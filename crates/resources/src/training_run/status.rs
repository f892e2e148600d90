//! What Flyball says about a run.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far a run is, what it costs, and what was decided. Absent is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrainingRunStatus {
    /// Generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<RunProgress>,
    /// When it will end, on the machines that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_end: Option<ExpectedEnd>,
    /// What it costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<RunCost>,
    /// Share of its time on machines that became steps which were not lost, in percent; a decimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput_percent: Option<String>,
    /// Work that was thrown away, by cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["cause"]))]
    pub lost: Vec<RunLosses>,
    /// The machines that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<RunPlacement>,
    /// The last decision and what it rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<TrainingRunDecision>,
    /// What it borrows; absent unless it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loan: Option<RunLoan>,
    /// What a preemption would cost it; absent while Kueue has not admitted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemption: Option<RunPreemption>,
    /// The number of nodes that it should have; with `elastic` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<RunSize>,
    /// Suggested seconds between saves on the machines that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_save_seconds: Option<i64>,
    /// Starts of the run so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_count: Option<i32>,
    /// The last starts, newest last; at most eight.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["number"]))]
    pub attempts: Vec<RunAttempt>,
    /// Sums that the operator goes on from after a restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<RunAccount>,
    /// What the operator has learnt about spot machines, for the next leader. Its format may change with any version; without
    /// it the operator learns again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4_096))]
    pub learnt: Option<String>,
    /// Conditions in the standard Kubernetes form; the reference lists the types.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// How far a run is, as its last heartbeat says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunProgress {
    /// Last step that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<i64>,
    /// Step of the last complete checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_step: Option<i64>,
    /// Steps of the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_steps: Option<i64>,
    /// Share of the work that is done, in percent; a decimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<String>,
    /// Seconds per step without saves; a decimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_seconds: Option<String>,
    /// Seconds that the last save held up training; a decimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub save_seconds: Option<String>,
    /// Seconds from the request for machines to the first new step; a decimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_seconds: Option<String>,
    /// Tokens trained on so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<i64>,
    /// Seconds between saves that the run uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub save_every_seconds: Option<i64>,
    /// The start of the run that this is about, as the run names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<String>,
    /// Steps that were made again since the first start, as the run itself counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated_steps: Option<i64>,
    /// Time of the heartbeat, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_at: Option<String>,
}

/// When a run will end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExpectedEnd {
    /// If nothing goes wrong, RFC 3339.
    pub earliest: String,
    /// Best estimate, RFC 3339.
    pub likely: String,
    /// With reclaims and slow steps, RFC 3339. Not a bound.
    pub latest: String,
    /// Source: Assumed, or Measured from heartbeats.
    pub origin: String,
}

/// What a run costs, by the prices of its Pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunCost {
    /// Cost since Flyball has observed it; a decimal.
    pub spent: String,
    /// Expected cost at its end; a decimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// Hourly cost of the machines that it has; a decimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hourly: Option<String>,
    /// Currency, by ISO 4217.
    pub currency: String,
}

/// Work that was thrown away for one cause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunLosses {
    /// Cause: Reclaimed, NodeLost, Preempted, Moved, Failed or Unknown.
    pub cause: String,
    /// How often.
    pub times: i32,
    /// Steps that had to be computed again.
    pub steps: i64,
    /// Seconds of the whole run that went into them.
    pub seconds: i64,
}

/// The machines of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunPlacement {
    /// Nodes with a pod of it.
    pub nodes: i32,
    /// Nodes that it needs.
    pub wanted_nodes: i32,
    /// Accelerators of all its pods.
    pub gpus: i32,
    /// Purchase option of its nodes; absent while it has none, and if they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purchase: Option<String>,
    /// Zone of its nodes; absent if they have no label, and if they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The Pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Whether Kueue has admitted it; absent without Kueue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admitted: Option<bool>,
}

/// A decision and what it rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrainingRunDecision {
    /// Id of the decision: microseconds since 1970.
    pub id: String,
    /// Time of the decision, RFC 3339. A decision that repeats the previous one keeps its time.
    pub at: String,
    /// Where it should be: `wait`, `on-demand`, or `spot in ZONE`.
    pub choice: String,
    /// Reason, from a fixed list; `flyball explain REASON` describes it.
    pub reason: String,
    /// The reason in a sentence.
    pub message: String,
    /// Whether it should save before anything else.
    #[serde(default)]
    pub save_now: bool,
    /// Expected cost of finishing, by choice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<RunCandidate>,
    /// When on-demand machines must be requested at the latest, RFC 3339.
    pub latest_on_demand_at: String,
    /// Time that the run can still lose without being late, in seconds; absent if it will be late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slack_seconds: Option<i64>,
}

/// What a run borrows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunLoan {
    /// Accelerators that are lent to it.
    pub gpus: i32,
    /// Since when, RFC 3339.
    pub since: String,
    /// Reason, from a fixed list: Lent, TakenBack or RunWaiting.
    pub reason: String,
    /// The reason in a sentence.
    pub message: String,
    /// Seconds that the last take-back took, from the decision until its pods had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub take_back_seconds: Option<i64>,
}

/// What a preemption would cost a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunPreemption {
    /// Accelerator-seconds that a preemption now would throw away: the work since the last save, and a restart.
    pub thrown_away_gpu_seconds: i64,
    /// Whether it would be late then.
    pub late: bool,
    /// Its place among the runs of its queue and priority that Kueue has admitted; 1 goes first. Absent if Flyball does not
    /// act for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<i32>,
    /// How many those are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<i32>,
}

/// The size that an elastic run should have. A recommendation: nothing changes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunSize {
    /// Nodes that it should have.
    pub nodes: i32,
    /// Where: `wait`, `on-demand`, or `spot in ZONE`.
    pub choice: String,
    /// Expected cost of finishing with them; a decimal.
    pub expected_cost: String,
    /// The same with the nodes that it has; a decimal, absent if it would be late with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub present_cost: Option<String>,
    /// Reason in a sentence.
    pub message: String,
}

/// What a choice would cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunCandidate {
    /// The choice.
    pub choice: String,
    /// Expected cost of finishing from here; a decimal.
    pub expected_cost: String,
}

/// One start of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunAttempt {
    /// Its number, from 1 on.
    pub number: i32,
    /// When it was first observed, RFC 3339.
    pub started_at: String,
    /// When the next began, or the run ended, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Step that it started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_step: Option<i64>,
    /// Last step that it reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_step: Option<i64>,
    /// Why it ended: Complete, Reclaimed, NodeLost, Preempted, Moved, Failed or Unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
}

/// Sums since Flyball has observed a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunAccount {
    /// Up to when they are summed, RFC 3339.
    pub counted_until: String,
    /// Seconds in which the run had machines.
    pub machine_seconds: i64,
    /// Seconds of steps, with those that were lost.
    pub step_seconds: i64,
    /// Millionths of the currency that its machines have cost.
    pub spent_micros: i64,
}
