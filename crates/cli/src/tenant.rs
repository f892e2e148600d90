//! Tenants of a cluster.

use flyball_resources::Tenant;

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
