//! What Flyball says about a Tenant.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What Flyball says about a Tenant. What is absent is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantStatus {
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Its namespace, the Tenants above it and itself, as logs and bills name it; example: `ml/org/team`. Absent if
    /// nobody is let in by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its keys, counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<KeyCounts>,
    /// How its budgets stand, the one with the smallest share left first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub budgets: Vec<TenantBudgetStatus>,
    /// What is so, in the standard form; see the reference for the types.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// Keys of a Tenant, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyCounts {
    /// Those that are let in.
    pub valid: i32,
    /// Those whose time has not begun.
    pub pending: i32,
    /// Those whose time has passed.
    pub expired: i32,
    /// Those that are disabled.
    pub disabled: i32,
    /// Those that are not let in for another reason; the condition `Ready` says which.
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
    /// What is left of it.
    pub left: String,
    /// When this period began, RFC 3339; absent of one that is for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_at: Option<String>,
    /// When it begins anew, RFC 3339; absent of one that is for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<String>,
    /// When it would be spent at the mean pace of this period, RFC 3339; absent if that is after it begins anew, and in
    /// the first hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_at: Option<String>,
    /// The highest of `alertPercents` that was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alert_percent: Option<i32>,
}
