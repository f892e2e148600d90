//! What is worth saying about Tenants. Pure.

use flyball_core::reason::Reason;
use flyball_core::units::Timestamp;
use flyball_quota::{BudgetKey, BudgetStatus, Scope};
use flyball_resources::conditions::ConditionKind;
use flyball_resources::resolve::{ResolvedTenant, TenantId};
use flyball_resources::tenant::{TenantBudgetStatus, TenantStatus};
use flyball_resources::{Tenant, rfc3339};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Numbers alone are written this often: `kubectl get tenants` need not be newer, and a thousand Tenants that spend are
/// then 67 writes a second at most.
const NUMBERS: Duration = Duration::from_secs(15);

/// A Tenant and what its status should say.
#[derive(Clone, Debug)]
pub struct SeenTenant {
    /// Which one.
    pub id: TenantId,
    /// As it is stored.
    pub tenant: Arc<Tenant>,
    /// What its status should say.
    pub status: TenantStatus,
}

/// Every Tenant as it is now.
pub fn tenants(
    objects: &[Arc<Tenant>],
    resolved: &BTreeMap<TenantId, ResolvedTenant>,
    budgets: &BTreeMap<BudgetKey, BudgetStatus>,
    now: jiff::Timestamp,
) -> Vec<SeenTenant> {
    let seen = objects.iter().filter_map(|tenant| {
        let id = TenantId::of(tenant);
        let generation = tenant.metadata.generation;
        let mut status =
            resolved.get(&id)?.status(tenant.status.as_ref(), generation, budgets, now);
        // Until the bank knows, what was written last is all that is known.
        if budgets.is_empty() && !tenant.spec.budgets.is_empty() {
            let before = tenant.status.clone().unwrap_or_default();
            status.conditions.extend(condition(&before, ConditionKind::WithinBudget).cloned());
            status.budgets = before.budgets;
        }
        // A forecast moves with every look; to the minute it says the same.
        status.budgets.iter_mut().for_each(to_the_minute);
        Some(SeenTenant { id, tenant: Arc::clone(tenant), status })
    });
    seen.collect()
}

/// How much of a budget is gone.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetShare {
    /// Path of its Tenant.
    pub tenant: String,
    /// Its name.
    pub budget: String,
    /// What is spent of it, as a share.
    pub spent: f64,
    /// When it will be exhausted, if that is before it resets.
    pub empty_at: Option<Timestamp>,
}

/// Each budget of these Tenants, as far as the bank knows it.
pub fn shares(
    seen: &[SeenTenant],
    budgets: &BTreeMap<BudgetKey, BudgetStatus>,
) -> Vec<BudgetShare> {
    let of = |seen: &SeenTenant| -> Vec<BudgetShare> {
        let Some(path) = &seen.status.path else { return Vec::new() };
        let share = |budget: &TenantBudgetStatus| {
            let key = BudgetKey { scope: Scope::new(path), name: budget.name.as_str().into() };
            let state = budgets.get(&key)?;
            Some(BudgetShare {
                tenant: path.clone(),
                budget: budget.name.clone(),
                spent: state.spent.get() as f64 / state.limit.get().max(1) as f64,
                empty_at: budget.empty_at.as_deref().and_then(moment),
            })
        };
        seen.status.budgets.iter().filter_map(share).collect()
    };
    seen.iter().flat_map(of).collect()
}

fn moment(rfc3339: &str) -> Option<Timestamp> {
    let at = rfc3339.parse::<jiff::Timestamp>().ok()?;
    u64::try_from(at.as_microsecond()).ok().map(Timestamp::from_micros)
}

/// Whether a status is worth a write, `since` the last one.
pub fn is_news(before: Option<&TenantStatus>, now: &TenantStatus, since: Option<Duration>) -> bool {
    let Some(before) = before else { return true };
    let due = since.is_none_or(|since| since >= NUMBERS);
    essence(before) != essence(now) || (before != now && due)
}

/// What a person should hear of: that it is accepted or not any more, and that a budget goes to its end.
pub fn turned(before: Option<&TenantStatus>, now: &TenantStatus) -> Vec<(Reason, String)> {
    let is_same = |kind: ConditionKind, now_is: &Condition| {
        let before = before.and_then(|before| condition(before, kind));
        before
            .is_some_and(|before| before.status == now_is.status && before.reason == now_is.reason)
    };
    let accepted =
        condition(now, ConditionKind::Ready).filter(|ready| !is_same(ConditionKind::Ready, ready));
    // The same reason may come again with a higher share. A forecast that moves by a day is no news.
    let budgets = condition(now, ConditionKind::WithinBudget)
        .filter(|stands| !is_same(ConditionKind::WithinBudget, stands) || has_risen(before, now));
    let conditions = accepted.into_iter().chain(budgets);
    conditions
        .filter_map(|one| Some((Reason::from_name(&one.reason)?, one.message.clone())))
        .collect()
}

fn condition(status: &TenantStatus, kind: ConditionKind) -> Option<&Condition> {
    status.conditions.iter().find(|one| one.type_ == kind.name())
}

/// Whether a budget has reached a higher threshold than before.
fn has_risen(before: Option<&TenantStatus>, now: &TenantStatus) -> bool {
    let reached = |status: &TenantStatus, name: &str| {
        let budget = status.budgets.iter().find(|one| one.name == name);
        budget.and_then(|one| one.alert_percent)
    };
    now.budgets
        .iter()
        .any(|one| one.alert_percent > before.and_then(|before| reached(before, &one.name)))
}

/// A status without what moves as long as somebody spends.
fn essence(status: &TenantStatus) -> TenantStatus {
    let budget = |budget: &TenantBudgetStatus| TenantBudgetStatus {
        spent: String::new(),
        left: String::new(),
        empty_at: None,
        ..budget.clone()
    };
    let mut budgets: Vec<_> = status.budgets.iter().map(budget).collect();
    budgets.sort_by(|a, b| a.name.cmp(&b.name));
    TenantStatus { budgets, ..status.clone() }
}

fn to_the_minute(budget: &mut TenantBudgetStatus) {
    const MINUTE: u64 = 60_000_000;
    if let Some(at) = budget.empty_at.as_deref().and_then(moment) {
        let minute = at.as_micros() / MINUTE * MINUTE;
        budget.empty_at = Some(rfc3339(Timestamp::from_micros(minute)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_quota::{Amount, PeriodId};
    use flyball_resources::resolve::resolve;
    use serde_json::json;

    fn tenant(name: &str, parent: Option<&str>) -> Arc<Tenant> {
        let object = json!({
            "apiVersion": "flyball.dev/v1alpha1", "kind": "Tenant",
            "metadata": {"name": name, "namespace": "ml", "generation": 4},
            "spec": {"models": ["*"], "parent": parent, "budgets": [
                {"name": "month", "tokens": 1_000, "period": "Month"},
            ]},
        });
        Arc::new(serde_json::from_value(object).unwrap())
    }

    fn seen(objects: &[Arc<Tenant>], spent: u128) -> Vec<SeenTenant> {
        let resolved = resolve(objects.iter().map(AsRef::as_ref));
        let key = BudgetKey { scope: Scope::new("ml/org"), name: "month".into() };
        let state = BudgetStatus {
            period: PeriodId(24_322),
            limit: Amount::new(1_000),
            spent: Amount::new(spent),
            held: Amount::ZERO,
            written_off: Amount::ZERO,
        };
        let now = jiff::Timestamp::from_second(1_794_000_000).unwrap();
        tenants(objects, &resolved, &[(key, state)].into(), now)
    }

    #[test]
    fn a_status_has_what_is_accepted_and_what_is_spent() {
        let seen = seen(&[tenant("org", None), tenant("lost", Some("nobody"))], 250);
        let (org, lost) = (&seen[0].status, &seen[1].status);
        assert_eq!((org.observed_generation, org.path.as_deref()), (Some(4), Some("ml/org")));
        let budget = &org.budgets[0];
        assert_eq!((budget.spent.as_str(), budget.left.as_str()), ("250", "750"));
        assert_eq!(org.conditions[0].reason, "TenantAccepted");
        assert_eq!(lost.conditions[0].reason, "TenantParentMissing");
        assert!(lost.path.is_none() && lost.budgets.is_empty());
    }

    #[test]
    fn as_long_as_the_bank_does_not_know_what_was_written_last_stands() {
        let before = seen(&[tenant("org", None)], 250)[0].status.clone();
        let mut org = (*tenant("org", None)).clone();
        org.status = Some(before.clone());
        let resolved = resolve([&org]);
        let now = jiff::Timestamp::from_second(1_794_000_000).unwrap();
        let status = &tenants(&[Arc::new(org)], &resolved, &BTreeMap::new(), now)[0].status;
        assert_eq!(status.budgets, before.budgets);
        assert!(!is_news(Some(&before), status, None));
    }

    #[test]
    fn numbers_are_written_now_and_then_and_the_rest_at_once() {
        let of = |spent| seen(&[tenant("org", None)], spent)[0].status.clone();
        let (before, soon, late) = (of(1), Duration::from_secs(1), Duration::from_secs(60));
        assert!(is_news(None, &before, None));
        assert!(!is_news(Some(&before), &before, Some(late)));
        assert!(!is_news(Some(&before), &of(2), Some(soon)));
        assert!(is_news(Some(&before), &of(2), Some(late)));
        assert!(is_news(Some(&before), &of(500), Some(soon)), "an alert is reached");
    }

    #[test]
    fn an_event_is_told_when_it_turns_and_once() {
        let fine = seen(&[tenant("org", None)], 0)[0].status.clone();
        let wrong = seen(&[tenant("lost", Some("nobody"))], 0)[0].status.clone();
        assert_eq!(reasons(None, &fine), [Reason::TenantAccepted]);
        assert_eq!(reasons(Some(&fine), &fine), []);
        assert_eq!(reasons(Some(&fine), &wrong), [Reason::TenantParentMissing]);
    }

    fn reasons(before: Option<&TenantStatus>, now: &TenantStatus) -> Vec<Reason> {
        turned(before, now).into_iter().map(|(reason, _)| reason).collect()
    }

    #[test]
    fn an_event_is_told_at_each_threshold_of_a_budget_and_once() {
        let of = |spent| seen(&[tenant("org", None)], spent)[0].status.clone();
        let [fine, half, more, most, all] = [0, 500, 510, 800, 1_000].map(of);
        assert_eq!(reasons(Some(&fine), &half), [Reason::TenantBudgetAlert]);
        assert_eq!(reasons(Some(&half), &more), []);
        assert_eq!(reasons(Some(&more), &most), [Reason::TenantBudgetAlert]);
        assert_eq!(reasons(Some(&most), &all), [Reason::TenantBudgetExhausted]);
        assert_eq!(reasons(Some(&all), &all), []);
        // The next period begins, and with it everything anew.
        assert_eq!(reasons(Some(&all), &fine), []);
        let (_, text) = turned(Some(&more), &most).remove(0);
        assert!(text.starts_with("budget month has reached 80 %"), "{text}");
    }
}
