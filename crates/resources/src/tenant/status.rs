//! What Flyball says about a Tenant.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What Flyball says about a Tenant. What is absent is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantStatus {
    /// Generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Namespace, parent Tenants and name, as shown in logs and bills; example: `ml/org/team`. Absent if the Tenant
    /// accepts no caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Number of keys by state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<KeyCounts>,
    /// State of the budgets, the one with the smallest share left first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub budgets: Vec<TenantBudgetStatus>,
    /// Conditions in the standard Kubernetes form; the reference lists the types.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// Keys of a Tenant, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyCounts {
    /// Valid keys.
    pub valid: i32,
    /// Keys whose validity has not started.
    pub pending: i32,
    /// Expired keys.
    pub expired: i32,
    /// Disabled keys.
    pub disabled: i32,
    /// Keys refused for another reason, which the condition `Ready` names.
    pub refused: i32,
}

/// How a budget stands. Amounts are decimals of dollars, or tokens, as the budget is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantBudgetStatus {
    /// Its name.
    pub name: String,
    /// Spent in this period.
    pub spent: String,
    /// Remaining budget.
    pub left: String,
    /// Start of this period, RFC 3339; absent without a period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_at: Option<String>,
    /// Time of the next reset, RFC 3339; absent without a period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<String>,
    /// Time at which the budget will be exhausted at the mean rate of this period, RFC 3339; absent if it resets
    /// before, and in the first hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_at: Option<String>,
    /// Highest of `alertPercents` reached so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alert_percent: Option<i32>,
}
