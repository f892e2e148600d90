//! Limits and budgets of all Tenants, as `flyball_quota` takes them.

use super::{ResolvedTenant, TenantId, TenantLimits};
use flyball_quota::{BudgetSpec, RateKey, RateKind};
use std::collections::BTreeMap;

/// Every limit, by whose it is. A Tenant that lets nobody in has none.
pub fn rate_limits(tenants: &BTreeMap<TenantId, ResolvedTenant>) -> BTreeMap<RateKey, u64> {
    let accesses = tenants.values().filter_map(|tenant| tenant.access.as_ref());
    let limits = accesses.flat_map(|access| {
        access
            .limits
            .by_kind()
            .map(|(kind, limit)| (RateKey { scope: access.path.clone(), kind }, limit))
    });
    limits.collect()
}

/// Every budget. A Tenant that lets nobody in spends nothing.
pub fn budgets(tenants: &BTreeMap<TenantId, ResolvedTenant>) -> Vec<BudgetSpec> {
    let accesses = tenants.values().filter_map(|tenant| tenant.access.as_ref());
    accesses.flat_map(|access| &access.budgets).map(|budget| budget.spec.clone()).collect()
}

impl TenantLimits {
    /// Those that are set.
    pub fn by_kind(&self) -> impl Iterator<Item = (RateKind, u64)> + use<> {
        let all = [
            (RateKind::Requests, self.requests_per_minute),
            (RateKind::InputTokens, self.input_tokens_per_minute),
            (RateKind::OutputTokens, self.output_tokens_per_minute),
            (RateKind::Concurrency, self.concurrency),
        ];
        all.into_iter().filter_map(|(kind, limit)| Some((kind, limit?)))
    }
}
