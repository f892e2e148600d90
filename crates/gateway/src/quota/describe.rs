//! All limits and budgets that apply to a caller, as it is told when it asks.

use super::left::RateLeft;
use super::refused::{amount, unit, words};
use super::state::QuotaState;
use super::table::{AppliedLimit, Applies};
use flyball_core::units::{Micros, Timestamp};
use flyball_quota::{LeaseKey, Scope};
use flyball_resources::resolve::TenantBudget;
use flyball_resources::rfc3339;
use serde_json::{Value, json};

impl QuotaState {
    /// What applies to a Tenant of this path, from the top. What all gateways have spent is
    /// as old as the operator's last word, ten seconds at most; null if it has said nothing yet.
    pub(super) fn describe(
        &mut self,
        path: &Scope,
        applies: &Applies,
        now: Micros,
        at: Timestamp,
    ) -> Value {
        let limits: Vec<Value> =
            applies.limits.iter().map(|limit| self.limit(limit, now)).collect();
        let budgets: Vec<Value> =
            applies.budgets.iter().map(|budget| self.budget(path, budget, at)).collect();
        json!({"object": "limits", "tenant": path.as_str(), "limits": limits, "budgets": budgets})
    }

    fn limit(&mut self, applied: &AppliedLimit, now: Micros) -> Value {
        let RateLeft { limit, remaining, reset } = self.left_of(applied, now);
        let key = &applied.key;
        json!({
            "tenant": key.scope.as_str(), "unit": words(key.kind), "limit": limit,
            "remaining_here": remaining, "reset_ms": reset.get() / 1_000,
        })
    }

    fn budget(&self, path: &Scope, budget: &TenantBudget, at: Timestamp) -> Value {
        let spec = &budget.spec;
        let lease = LeaseKey { scope: path.clone(), unit: spec.unit };
        let here = self.spent(&lease).unwrap_or_default();
        let spent = self.spent_by_all(&spec.key, at);
        json!({
            "tenant": spec.key.scope.as_str(), "budget": &*spec.key.name, "unit": unit(spec.unit),
            "limit": amount(spec.limit, spec.unit),
            "spent": spent.map(|spent| amount(spent, spec.unit)),
            "left": spent.map(|spent| amount(spec.limit.less(spent), spec.unit)),
            "spent_here": amount(here, spec.unit),
            "resets_at": spec.period.end(spec.period.at(at)).map(rfc3339),
            "on_exhausted": format!("{:?}", budget.on_exhausted),
        })
    }
}
