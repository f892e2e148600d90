//! What a caller is told whose limit or budget keeps a request from going on.

use super::Dialect;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;

/// Why limits or budgets of the caller's Tenants keep a request from going on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Exhausted {
    /// A limit is used up.
    Limit {
        limit: StatedLimit,
        /// When enough of it is free.
        retry_after: Duration,
    },
    /// It needs more than the whole limit.
    TooLarge(StatedLimit),
    /// A budget is spent.
    Budget(StatedBudget),
    /// What is left of a budget is less than this request may come to.
    TooDear {
        budget: StatedBudget,
        /// The largest answer that would fit, if one does.
        fits: Option<u64>,
    },
    /// The caller pays with money, and nobody says what the model costs.
    NoPrice,
    /// Nobody could tell in time whether anything is left.
    Unknown { retry_after: Duration },
}

/// A limit, as its callers know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatedLimit {
    /// Path of the Tenant that has it.
    pub(crate) tenant: String,
    /// `requests per minute` and the like.
    pub(crate) what: &'static str,
    pub(crate) limit: u64,
}

/// A budget, as its callers know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatedBudget {
    /// Path of the Tenant that has it.
    pub(crate) tenant: String,
    pub(crate) name: String,
    /// `USD` or `tokens`.
    pub(crate) unit: &'static str,
    pub(crate) limit: String,
    pub(crate) spent: String,
    /// RFC 3339; absent if it never begins anew.
    pub(crate) resets_at: Option<String>,
}

impl Exhausted {
    /// All codes, for the meter.
    #[cfg(test)]
    pub(crate) fn one_of_each() -> Vec<Self> {
        let limit = StatedLimit { tenant: "ml/a".into(), what: "requests per minute", limit: 60 };
        let budget = StatedBudget {
            tenant: "ml/a".into(),
            name: "month".into(),
            unit: "USD",
            limit: "250.00".into(),
            spent: "250.00".into(),
            resets_at: Some("2026-12-01T00:00:00Z".into()),
        };
        let retry_after = Duration::from_millis(1_200);
        vec![
            Self::Limit { limit: limit.clone(), retry_after },
            Self::TooLarge(limit),
            Self::Budget(budget.clone()),
            Self::TooDear { budget, fits: Some(512) },
            Self::NoPrice,
            Self::Unknown { retry_after: Duration::from_secs(1) },
        ]
    }

    pub(super) const fn code(&self) -> &'static str {
        match self {
            Self::Limit { .. } => "rate_limit_exceeded",
            Self::TooLarge(_) => "request_exceeds_limit",
            Self::Budget(_) => "insufficient_quota",
            Self::TooDear { .. } => "request_exceeds_budget",
            Self::NoPrice => "model_without_price",
            Self::Unknown { .. } => "quota_unknown",
        }
    }

    pub(super) const fn status(&self) -> StatusCode {
        match self {
            Self::NoPrice => StatusCode::FORBIDDEN,
            Self::Unknown { .. } => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::TOO_MANY_REQUESTS,
        }
    }

    /// Anthropic has a status of its own for what is not paid.
    pub(super) const fn status_in(&self, dialect: Dialect) -> StatusCode {
        match (dialect, self) {
            (Dialect::Anthropic, Self::Budget(_) | Self::TooDear { .. }) => {
                StatusCode::PAYMENT_REQUIRED
            }
            _ => self.status(),
        }
    }

    /// What kind of error official clients make of it; `None` if its status says it.
    pub(super) const fn kind(&self, dialect: Dialect) -> Option<&'static str> {
        match (dialect, self) {
            (Dialect::OpenAi, Self::Budget(_) | Self::TooDear { .. }) => Some("insufficient_quota"),
            (Dialect::Anthropic, Self::Budget(_) | Self::TooDear { .. }) => Some("billing_error"),
            (_, Self::NoPrice) => Some("permission_error"),
            _ => None,
        }
    }

    /// When it is worth trying again; `None` if that will not help.
    pub(super) const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Limit { retry_after, .. } | Self::Unknown { retry_after } => Some(*retry_after),
            _ => None,
        }
    }

    pub(super) fn message(&self) -> String {
        match self {
            Self::Limit { limit, retry_after } => format!(
                "Tenant {} reached its limit of {} {}; retry in {} ms",
                limit.tenant,
                limit.limit,
                limit.what,
                retry_after.as_millis()
            ),
            Self::TooLarge(limit) => format!(
                "this request exceeds the whole limit of Tenant {}, {} {}; send a smaller one",
                limit.tenant, limit.limit, limit.what
            ),
            Self::Budget(budget) => format!(
                "the budget {} of Tenant {} is exhausted: {} of {} {}{}",
                budget.name,
                budget.tenant,
                budget.spent,
                budget.limit,
                budget.unit,
                budget.reset()
            ),
            Self::TooDear { budget, fits } => {
                let hint = match fits {
                    Some(fits) => format!("set max_tokens to {fits} or less, or stream the answer"),
                    None => "send a shorter prompt".to_owned(),
                };
                format!(
                    "this request may cost more than is left of the budget {} of Tenant {}: {} of \
                     {} {} are spent{}; {hint}",
                    budget.name,
                    budget.tenant,
                    budget.spent,
                    budget.limit,
                    budget.unit,
                    budget.reset()
                )
            }
            Self::NoPrice => "this model has no prices, so it cannot be paid from a budget of \
                 dollars; its owner sets them in `spec.prices` of the ModelService"
                .into(),
            Self::Unknown { .. } => "the remaining quota is unknown because the operator did not \
                 answer in time; retry in 1 s"
                .into(),
        }
    }

    /// The same for programs, beside the message.
    pub(super) fn details(&self) -> Option<Value> {
        match self {
            Self::Limit { limit, retry_after } => {
                let mut value = limit.value();
                value["retry_after_ms"] = json!(retry_after.as_millis() as u64);
                Some(value)
            }
            Self::TooLarge(limit) => Some(limit.value()),
            Self::Budget(budget) => Some(budget.value()),
            Self::TooDear { budget, fits } => {
                let mut value = budget.value();
                value["max_tokens"] = json!(fits);
                Some(value)
            }
            Self::NoPrice | Self::Unknown { .. } => None,
        }
    }

    /// Headers that say when to come again, or that it would be in vain: official clients try three times without.
    pub(super) fn headers(&self, headers: &mut HeaderMap) {
        match self.retry_after() {
            Some(wait) => {
                let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                headers.insert("retry-after-ms", HeaderValue::from(millis));
            }
            None => {
                headers.insert("x-should-retry", HeaderValue::from_static("false"));
            }
        }
    }
}

impl StatedLimit {
    fn value(&self) -> Value {
        json!({"tenant": self.tenant, "limit": self.limit, "unit": self.what})
    }
}

impl StatedBudget {
    fn value(&self) -> Value {
        json!({
            "tenant": self.tenant, "budget": self.name, "unit": self.unit,
            "limit": self.limit, "spent": self.spent, "resets_at": self.resets_at,
        })
    }

    fn reset(&self) -> String {
        match &self.resets_at {
            Some(at) => format!("; it resets at {at}"),
            None => "; it does not reset".to_owned(),
        }
    }
}
