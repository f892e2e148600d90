//! Which limits and budgets apply to whom, as Tenants say.

use super::shares::ShareSlot;
use flyball_quota::{BudgetKey, BudgetUnit, RateKey, Scope};
use flyball_resources::resolve::{TenantAccess, TenantBudget, TenantLimits};
use flyball_resources::tenant::WhenExhausted;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Limits and budgets of all Tenants, by path. What lies above each is found once and not with every request.
#[derive(Clone, Debug, Default)]
pub(super) struct QuotaTable(BTreeMap<Scope, Arc<Applies>>);

/// What applies to one Tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Applies {
    /// Its limits and those above it, from the top.
    pub(super) limits: Vec<AppliedLimit>,
    /// Its budgets and those above it, from the top.
    pub(super) budgets: Vec<TenantBudget>,
    /// What these budgets count.
    pub(super) units: BTreeMap<BudgetUnit, BudgetEnd>,
}

/// A limit above somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AppliedLimit {
    pub(super) key: RateKey,
    pub(super) limit: u64,
    /// Where its share is; `None` if there are more limits than a gateway keeps.
    pub(super) slot: Option<ShareSlot>,
}

/// What happens to those who pay by one unit when a budget above them is exhausted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BudgetEnd {
    /// A stream may be ended by it.
    pub(super) ends_streams: bool,
    /// It keeps somebody from something. Otherwise all of them only count.
    pub(super) holds: bool,
}

impl QuotaTable {
    /// With each limit where its share is, so that a request need not look for it, however many lie above each other.
    pub(super) fn of<'a>(
        tenants: impl Iterator<Item = &'a TenantAccess>,
        mut slot: impl FnMut(&RateKey) -> Option<ShareSlot>,
    ) -> Self {
        let (mut paths, mut limits) = (Vec::new(), BTreeMap::<Scope, TenantLimits>::new());
        let mut budgets = BTreeMap::<Scope, &[TenantBudget]>::new();
        for access in tenants {
            paths.push(access.path.clone());
            if access.limits != TenantLimits::default() {
                limits.insert(access.path.clone(), access.limits);
            }
            if !access.budgets.is_empty() {
                budgets.insert(access.path.clone(), &access.budgets);
            }
        }
        let applies = paths.into_iter().filter_map(|path| {
            let mut applies = Applies::default();
            for scope in path.ancestors() {
                if let Some((scope, limits)) = limits.get_key_value(scope) {
                    applies.limits.extend(limits.by_kind().map(|(kind, limit)| {
                        let key = RateKey { scope: scope.clone(), kind };
                        AppliedLimit { slot: slot(&key), key, limit }
                    }));
                }
                let budgets = budgets.get(scope).copied().unwrap_or_default();
                budgets.iter().for_each(|budget| applies.add(budget));
            }
            (!applies.is_empty()).then(|| (path, Arc::new(applies)))
        });
        Self(applies.collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What applies to a Tenant of this path; `None` if nothing does.
    pub(super) fn applies(&self, path: &Scope) -> Option<Arc<Applies>> {
        self.0.get(path).cloned()
    }
}

impl Applies {
    /// What happens when this budget is exhausted.
    pub(super) fn when(&self, key: &BudgetKey) -> WhenExhausted {
        let of = self.budgets.iter().find(|budget| budget.spec.key == *key);
        // One that was removed meanwhile is of no more account than the strictest.
        of.map_or_else(WhenExhausted::default, |budget| budget.on_exhausted)
    }

    /// Whether one of the budgets may end a stream, so that nobody may spend more than is left.
    pub(super) fn is_hard(&self) -> bool {
        self.units.values().any(|end| end.ends_streams)
    }

    /// Whether requests run on idle capacity when this budget is exhausted. What costs nothing passes by the budgets above
    /// it too, so their owners must have said the same: otherwise whoever is below a hard one could get round it.
    pub(super) fn may_idle(&self, key: &BudgetKey) -> bool {
        let is_above = |one: &&TenantBudget| {
            let scope = &one.spec.key.scope;
            *scope != key.scope && scope.covers(&key.scope)
        };
        let allows = |one: &TenantBudget| {
            matches!(one.on_exhausted, WhenExhausted::IdleOnly | WhenExhausted::Alert)
        };
        self.when(key) == WhenExhausted::IdleOnly
            && self.budgets.iter().filter(is_above).all(allows)
    }

    fn add(&mut self, budget: &TenantBudget) {
        let end = self.units.entry(budget.spec.unit).or_default();
        end.ends_streams |= budget.on_exhausted == WhenExhausted::Refuse;
        end.holds |= budget.on_exhausted != WhenExhausted::Alert;
        self.budgets.push(budget.clone());
    }

    fn is_empty(&self) -> bool {
        self.limits.is_empty() && self.budgets.is_empty()
    }
}
