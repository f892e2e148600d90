//! What a Tenant may spend.
//!
//! Only what `flyball_quota` carries out: periods are those of the calendar in UTC, nothing is carried over into the next
//! one, and no more than the budget is granted.

use crate::decimal;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What may be spent in a period.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.amount) != has(self.tokens)")
        .message("exactly one of `amount` and `tokens` must be set")
)]
pub struct TenantBudgetSpec {
    /// Name of the budget, unique within the Tenant. A budget with a new name starts with nothing
    /// spent.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Dollars, a decimal in quotes, by the `prices` of the models; example: `"250"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = decimal::PATTERN), length(max = 16))]
    pub amount: Option<String>,
    /// Tokens, prompt and output together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_000_000_i64))]
    pub tokens: Option<i64>,
    /// Period after which the budget resets.
    pub period: BudgetPeriod,
    /// Alert thresholds, in percent of the budget. The status shows the highest one reached.
    #[serde(default = "alerts")]
    #[schemars(
        length(max = 8),
        inner(range(min = 1, max = 100)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub alert_percents: Vec<i32>,
    /// What happens when the budget is exhausted.
    #[serde(default)]
    pub on_exhausted: WhenExhausted,
}

/// A period of the calendar, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BudgetPeriod {
    /// A day.
    Day,
    /// A week, from Monday on.
    Week,
    /// A month.
    Month,
    /// For good: it never begins anew.
    None,
}

/// What happens once a budget is spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WhenExhausted {
    /// New requests are refused, and streams end after the last token that is paid for.
    #[default]
    Refuse,
    /// New requests are refused, and those in flight finish: what they still write is spent beyond the budget.
    FinishRunning,
    /// New requests are served on idle capacity, below all others and free of charge; those in flight finish.
    IdleOnly,
    /// Nothing but the alerts: requests go on, and are spent beyond the budget.
    Alert,
}

fn alerts() -> Vec<i32> {
    vec![50, 80, 100]
}
