//! Tenants of a cluster.

use flyball_resources::Tenant;
use flyball_resources::tenant::{TenantBudgetSpec, TenantStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::output::FailureCode;
use crate::served::Listed;

impl Listed for Tenant {
    const ONE: &'static str = "tenant";
    const NAME: &'static str = "Tenant";
    const MANY: &'static str = "tenants";
    const NO_KIND: FailureCode = FailureCode::NoTenants;
    const NO_SUCH: FailureCode = FailureCode::NoSuchTenant;

    fn absent(name: &str, namespace: Option<&str>, _: usize) -> String {
        let namespace = namespace.unwrap_or("NAMESPACE");
        format!(
            "create it, with the models that it may use:\n\n\
             kubectl apply -f - <<END\n\
             apiVersion: flyball.dev/v1alpha1\n\
             kind: Tenant\n\
             metadata:\n  name: {name}\n  namespace: {namespace}\n\
             spec:\n  models: [\"llama-*\"]\n\
             END"
        )
    }
}

/// Its status, if that is about the Tenant as it is now.
pub(crate) fn fresh(tenant: &Tenant) -> Option<&TenantStatus> {
    tenant.status.as_ref().filter(|one| one.observed_generation == tenant.metadata.generation)
}

/// Whether it is accepted, and why not.
pub(crate) fn ready(status: &TenantStatus) -> Option<&Condition> {
    status.conditions.iter().find(|one| one.type_ == "Ready")
}

/// What a budget counts.
pub(crate) const fn unit(budget: &TenantBudgetSpec) -> &'static str {
    if budget.tokens.is_some() { "tokens" } else { "dollars" }
}
