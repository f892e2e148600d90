//! Which limits and budgets apply to whom, as Tenants say.

use flyball_quota::{BudgetUnit, RateKey, Scope};
use flyball_resources::resolve::{ResolvedTenant, TenantId, TenantLimits};
use flyball_resources::tenant::WhenExhausted;
use std::collections::BTreeMap;

/// Limits and budgets of all Tenants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct QuotaTable {
    limits: BTreeMap<Scope, TenantLimits>,
    budgets: BTreeMap<Scope, Vec<(BudgetUnit, WhenExhausted)>>,
}

/// What applies to one caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Applies {
    /// Its limits and those above it.
    pub(super) limits: Vec<(RateKey, u64)>,
    /// What budgets above it count, and whether a stream ends with the money.
    pub(super) units: BTreeMap<BudgetUnit, bool>,
}

impl QuotaTable {
    pub(super) fn of(tenants: &BTreeMap<TenantId, ResolvedTenant>) -> Self {
        let mut table = Self::default();
        for access in tenants.values().filter_map(|tenant| tenant.access.as_ref()) {
            if access.limits != TenantLimits::default() {
                table.limits.insert(access.path.clone(), access.limits);
            }
            let budgets = access.budgets.iter();
            let budgets: Vec<_> =
                budgets.map(|budget| (budget.spec.unit, budget.on_exhausted)).collect();
            if !budgets.is_empty() {
                table.budgets.insert(access.path.clone(), budgets);
            }
        }
        table
    }

    pub(super) fn is_empty(&self) -> bool {
        self.limits.is_empty() && self.budgets.is_empty()
    }

    /// What applies to a Tenant of this path.
    pub(super) fn applies(&self, path: &Scope) -> Applies {
        let mut applies = Applies::default();
        for scope in path.ancestors() {
            if let Some((scope, limits)) = self.limits.get_key_value(scope) {
                let of = limits.by_kind();
                applies.limits.extend(
                    of.map(|(kind, limit)| (RateKey { scope: scope.clone(), kind }, limit)),
                );
            }
            for (unit, when) in self.budgets.get(scope).into_iter().flatten() {
                // One that ends streams is enough.
                *applies.units.entry(*unit).or_default() |= *when == WhenExhausted::Refuse;
            }
        }
        applies
    }
}

impl Applies {
    pub(super) fn is_empty(&self) -> bool {
        self.limits.is_empty() && self.units.is_empty()
    }
}
