//! What Flyball may do with a model.

use crate::decimal;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What Flyball may do with a model.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.min <= self.max").message("`min` must be at most `max`")
)]
pub struct Scaling {
    /// Whether decisions are applied, or only shown in the status and as metrics.
    #[serde(default)]
    pub mode: ScalingMode,
    /// Minimum replicas over all variants while the model is awake.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 10_000))]
    pub min: i32,
    /// Maximum replicas over all variants.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 10_000))]
    pub max: i32,
    /// Whether it may scale to zero while idle. Requests then wait in the gateway until a replica is
    /// ready.
    #[serde(default)]
    pub sleep: Sleep,
    /// Cost to the owner of one request that misses an objective. If absent, Flyball aims at
    /// `objectives.attainmentPercent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub miss_cost: Option<MoneySpec>,
    /// Maximum hourly cost of all replicas; no limit if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hourly_budget: Option<MoneySpec>,
    /// Maximum share of replicas on spot capacity, in percent.
    #[serde(default = "half")]
    #[schemars(range(min = 0, max = 100))]
    pub spot_percent: i32,
    /// Times with a minimum number of replicas, regardless of demand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub calendar: Vec<CalendarEntry>,
}

/// Whether decisions are carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ScalingMode {
    /// Decisions are shown, and nothing but the status is written.
    #[default]
    Recommend,
    /// Decisions are applied.
    Act,
}

/// Whether a model may have no replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Sleep {
    /// It always has `min` replicas.
    #[default]
    Never,
    /// It goes when keeping a replica costs more than starting one again. Needs the gateway, which
    /// holds requests meanwhile.
    WhenIdle,
}

/// An amount of money.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MoneySpec {
    /// A decimal in quotes; example: `"0.002"`.
    #[schemars(regex(pattern = decimal::PATTERN), length(max = 16))]
    pub amount: String,
    /// Currency by ISO 4217; it must match the pools' prices.
    #[serde(default = "usd")]
    #[schemars(regex(pattern = r"^[A-Z]{3}$"), length(max = 3))]
    pub currency: String,
}

/// A floor at certain times. It holds from one cold start before, so that replicas serve when it
/// begins.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.weekly) != has(self.once)")
        .message("exactly one of `weekly` and `once` must be set")
)]
pub struct CalendarEntry {
    /// Minimum replicas in this time.
    #[schemars(range(min = 1, max = 10_000))]
    pub replicas: i32,
    /// Every week at this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weekly: Option<Weekly>,
    /// Once, between two times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub once: Option<Once>,
}

/// A time of every week, in UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Weekly {
    /// Day of the start.
    pub day: Weekday,
    /// Time of day of the start, UTC; example: `"08:30"`.
    #[schemars(regex(pattern = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"), length(max = 5))]
    pub from: String,
    /// Duration, in minutes.
    #[schemars(range(min = 1, max = 10_080))]
    pub minutes: i32,
}

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Weekday {
    /// The first.
    Monday,
    /// The second.
    Tuesday,
    /// The third.
    Wednesday,
    /// The fourth.
    Thursday,
    /// The fifth.
    Friday,
    /// The sixth.
    Saturday,
    /// The seventh.
    Sunday,
}

/// A time that comes once.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("timestamp(self.from) < timestamp(self.until)")
        .message("`from` must be before `until`")
)]
pub struct Once {
    /// Start, RFC 3339.
    #[schemars(length(max = 64), extend("format" = "date-time"))]
    pub from: String,
    /// End, RFC 3339.
    #[schemars(length(max = 64), extend("format" = "date-time"))]
    pub until: String,
}

impl Default for Scaling {
    fn default() -> Self {
        Self {
            mode: ScalingMode::default(),
            min: one(),
            max: ten(),
            sleep: Sleep::default(),
            miss_cost: None,
            hourly_budget: None,
            spot_percent: half(),
            calendar: Vec::new(),
        }
    }
}

const fn one() -> i32 {
    1
}

const fn ten() -> i32 {
    10
}

const fn half() -> i32 {
    50
}

fn usd() -> String {
    "USD".to_owned()
}
