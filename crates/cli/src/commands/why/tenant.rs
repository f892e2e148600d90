//! `flyball why tenant/NAME`: whether a tenant is served, in three sentences: who is let in, how the budgets stand, what a
//! request gets.

use flyball_resources::Tenant;
use flyball_resources::tenant::{
    TenantBudgetSpec, TenantBudgetStatus, TenantLimitsSpec, TenantStatus, WhenExhausted,
};
use kube::ResourceExt as _;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cluster::Cluster;
use crate::flags::ClusterArgs;
use crate::output::{Answer, Detail, Document, Failure};
use crate::served::{find_one, full_name, list_all};
use crate::tenant::{fresh, ready, unit};

/// Whether a tenant is served, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WhyTenant {
    /// The tenant, `namespace/name`.
    tenant: String,
    /// Whether callers are accepted.
    accepts: String,
    /// How the budgets of the tenant and of those above it stand.
    budgets: String,
    /// What a request gets.
    effect: String,
}

/// Reads it and those above it.
pub(super) async fn read(
    cluster: &Cluster,
    global: &ClusterArgs,
    name: &str,
) -> Result<WhyTenant, Failure> {
    let tenant: Tenant = find_one(cluster, global, name).await?;
    let namespace = tenant.namespace();
    let all: Vec<Tenant> = list_all(cluster, namespace.as_deref(), global.timeout).await?;
    Ok(WhyTenant::of(&tenant, &all))
}

/// A budget that a tenant's requests are paid from, and whose it is.
struct Paid<'a> {
    owner: String,
    spec: &'a TenantBudgetSpec,
    stands: Option<&'a TenantBudgetStatus>,
}

impl WhyTenant {
    /// Of one among all of its namespace.
    fn of(tenant: &Tenant, all: &[Tenant]) -> Self {
        let line = line(tenant, all);
        let paid: Vec<Paid<'_>> = line.iter().flat_map(|one| paid(one)).collect();
        Self {
            tenant: full_name(tenant),
            accepts: accepts(tenant),
            budgets: budgets(&paid),
            effect: effect(tenant, &line, &paid),
        }
    }
}

/// The tenant, and those above it. One that is its own ancestor is refused, and must not be walked for ever.
fn line<'a>(tenant: &'a Tenant, all: &'a [Tenant]) -> Vec<&'a Tenant> {
    let mut line = vec![tenant];
    while let Some(name) = &line[line.len() - 1].spec.parent {
        let parent = all.iter().find(|other| other.name_any() == *name);
        let Some(parent) = parent.filter(|_| line.iter().all(|one| one.name_any() != *name)) else {
            break;
        };
        line.push(parent);
    }
    line
}

fn paid<'a>(tenant: &'a Tenant) -> impl Iterator<Item = Paid<'a>> {
    let known = tenant.status.as_ref().map_or(&[][..], |status| status.budgets.as_slice());
    tenant.spec.budgets.iter().map(move |spec| Paid {
        owner: full_name(tenant),
        spec,
        stands: known.iter().find(|one| one.name == spec.name),
    })
}

fn accepts(tenant: &Tenant) -> String {
    let name = full_name(tenant);
    let Some(status) = fresh(tenant) else {
        return format!(
            "It is unknown whether {name} is accepted: the operator has not reported on it as it is now."
        );
    };
    if let Some(why) = refusal(tenant) {
        return format!("{name} accepts no caller: {why}.");
    }
    let (valid, all) = (status.keys.unwrap_or_default().valid, tenant.spec.keys.len());
    let but = problem(status).map_or_else(String::new, |why| format!(", but {why}"));
    format!("{name} accepts callers: {valid} of {all} keys are valid{but}.")
}

/// What is wrong with it.
fn problem(status: &TenantStatus) -> Option<&str> {
    ready(status).filter(|one| one.status != "True").map(|one| one.message.as_str())
}

/// Why nobody is let in. One that is accepted in part has a path.
fn refusal(tenant: &Tenant) -> Option<&str> {
    problem(fresh(tenant).filter(|status| status.path.is_none())?)
}

fn budgets(paid: &[Paid<'_>]) -> String {
    if paid.is_empty() {
        return "Neither it nor a tenant above it has a budget.".to_owned();
    }
    let one = |paid: &Paid<'_>| {
        let unit = unit(paid.spec);
        match paid.stands {
            Some(now) => format!(
                "{}: {} ({} {unit} spent, {} left)",
                paid.owner,
                now.in_words(),
                now.spent,
                now.left
            ),
            None => format!("{}: budget {} is not known yet", paid.owner, paid.spec.name),
        }
    };
    format!("{}.", paid.iter().map(one).collect::<Vec<_>>().join("; "))
}

fn effect(tenant: &Tenant, line: &[&Tenant], paid: &[Paid<'_>]) -> String {
    if refusal(tenant).is_some() {
        return "Requests with its keys get 401 invalid_api_key.".to_owned();
    }
    let exhausted = paid.iter().filter(|one| one.stands.is_some_and(|now| now.is_exhausted()));
    let strictest = exhausted.min_by_key(|one| strictness(one.spec.on_exhausted));
    let Some(budget) = strictest else { return within(tenant, line) };
    let (owner, name) = (&budget.owner, &budget.spec.name);
    match budget.spec.on_exhausted {
        WhenExhausted::Refuse => format!(
            "Requests get 429 insufficient_quota until {name} resets; raise it in {owner} to serve them sooner."
        ),
        WhenExhausted::FinishRunning => format!(
            "New requests get 429 insufficient_quota until {name} resets, and those in flight finish; raise it in {owner} to \
             serve them sooner."
        ),
        WhenExhausted::IdleOnly => format!(
            "Requests are served after all others and free of charge until {name} resets; raise it in {owner} to serve them \
             in turn."
        ),
        WhenExhausted::Alert => {
            format!("Requests go on and count beyond {name}, which {owner} only alerts about.")
        }
    }
}

/// What is carried out where several budgets are exhausted comes first.
const fn strictness(when: WhenExhausted) -> u8 {
    match when {
        WhenExhausted::Refuse => 0,
        WhenExhausted::FinishRunning => 1,
        WhenExhausted::IdleOnly => 2,
        WhenExhausted::Alert => 3,
    }
}

/// What keeps requests back besides budgets.
fn within(tenant: &Tenant, line: &[&Tenant]) -> String {
    let limits: Vec<String> = line.iter().flat_map(|one| limits(one)).collect();
    if limits.is_empty() {
        let models = tenant.spec.models.join(", ");
        return format!("Requests for {models} are served in turn; no limit applies.");
    }
    format!("Requests are served in turn, at most {}.", limits.join("; "))
}

fn limits(tenant: &Tenant) -> Vec<String> {
    let none = TenantLimitsSpec::default();
    let limits = tenant.spec.limits.as_ref().unwrap_or(&none);
    let all = [
        (limits.requests_per_minute, "requests per minute"),
        (limits.input_tokens_per_minute, "prompt tokens per minute"),
        (limits.output_tokens_per_minute, "output tokens per minute"),
        (limits.concurrency, "requests in flight"),
    ];
    let name = full_name(tenant);
    let known = all.into_iter().filter_map(|(limit, what)| Some((limit?, what)));
    known.map(|(limit, what)| format!("{limit} {what} in {name}")).collect()
}

impl Answer for WhyTenant {
    const KIND: &'static str = "WhyTenant";

    fn view(&self, _: Detail) -> Document {
        super::sentences([&self.accepts, &self.budgets, &self.effect])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{answer_json, answer_table, conforms};
    use serde_json::{Value, json};

    fn tenant(name: &str, parent: Option<&str>, budget: &Value, stands: &Value) -> Tenant {
        serde_json::from_value(json!({
            "apiVersion": "flyball.dev/v1alpha1", "kind": "Tenant",
            "metadata": { "name": name, "namespace": "ml", "generation": 2 },
            "spec": {
                "models": ["llama-*"], "parent": parent, "budgets": budget,
                "limits": { "requestsPerMinute": 60 },
                "keys": [{ "name": "app", "id": "aaaaaaaaaa", "sha256": "" }],
            },
            "status": {
                "observedGeneration": 2, "path": format!("ml/{name}"), "budgets": stands,
                "keys": { "valid": 1, "pending": 0, "expired": 0, "disabled": 0, "refused": 0 },
                "conditions": [{
                    "type": "Ready", "status": "True", "reason": "TenantAccepted", "message": "fine",
                    "lastTransitionTime": "2026-11-15T14:02:10Z",
                }],
            },
        }))
        .unwrap()
    }

    fn month(when: &str) -> Value {
        json!([{ "name": "month", "amount": "250", "period": "Month", "onExhausted": when }])
    }

    fn stands(left: &str, alert: Option<i32>, empty: Option<&str>) -> Value {
        json!([{
            "name": "month", "spent": "12.40", "left": left, "resetsAt": "2026-12-01T00:00:00Z",
            "alertPercent": alert, "emptyAt": empty,
        }])
    }

    #[test]
    fn three_sentences_say_whether_a_tenant_is_served() {
        let none = json!([]);
        let fine = tenant("fine", None, &none, &none);
        let late = "2026-11-26T06:00:00Z";
        let org = tenant("org", None, &month("Refuse"), &stands("50.00", Some(80), Some(late)));
        let search = tenant("search", Some("org"), &none, &none);
        let empty =
            tenant("empty", Some("empty"), &month("Refuse"), &stands("0.00", Some(100), None));
        let idle = tenant("idle", None, &month("IdleOnly"), &stands("0.00", Some(100), None));
        let mut new = tenant("new", None, &month("Refuse"), &none);
        new.status = None;
        let mut refused = tenant("refused", None, &none, &none);
        let status = refused.status.as_mut().unwrap();
        status.path = None;
        status.conditions[0].status = "False".to_owned();
        status.conditions[0].message = "its parent `gone` does not exist".to_owned();
        let all = [fine, org, search, empty, idle, new, refused];
        let whys: Vec<WhyTenant> = all.iter().map(|one| WhyTenant::of(one, &all)).collect();
        whys.iter().for_each(|why| conforms("why-tenant", &answer_json(why)));
        let tables: Vec<String> = whys.iter().map(|why| answer_table(why, Detail::Full)).collect();
        insta::assert_snapshot!(tables.join("\n"));
    }
}
