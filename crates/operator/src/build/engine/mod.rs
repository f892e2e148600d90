//! The objects of a variant that Flyball runs itself: a Deployment and a Service.
//!
//! What draining needs is set here, because its absence cuts requests: vLLM's `--shutdown-timeout` (0 by
//! default, at which streams stall), a grace period above it, and a preStop pause in which the pod leaves
//! its Service before the engine hears that it must go. llama-server finishes nothing once it hears that, so
//! that its pause is as long as a request may take. `validate::drain` is what proves it.

mod args;
mod merge;
mod pod;
mod probes;
#[cfg(test)]
mod tests;

use crate::observe::{MADE_FROM, Workload, workload_key};
use flyball_resources::model_service::{Engine, Variant};
use flyball_resources::{ModelService, Pool, labels};
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The objects, with `first` replicas if the Deployment is new.
pub(super) fn objects(
    service: &ModelService,
    variant: &Variant,
    engine: &Engine,
    pool: Option<&Pool>,
    first: Option<u32>,
) -> Vec<Value> {
    let (namespace, _, name) = workload_key(service, variant);
    let own = pod::labels_of(service, variant);
    let meta = |name: &str| {
        json!({
            "name": name,
            "namespace": namespace,
            "labels": own,
            "ownerReferences": service.controller_owner_ref(&()).map_or_else(Vec::new, |owner| vec![owner]),
        })
    };
    let mut deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta(&name),
        "spec": {
            "selector": { "matchLabels": own },
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } },
            "template": pod::template(service, variant, engine, pool),
        },
    });
    let made_from = digest(&deployment);
    deployment["metadata"]["annotations"] = json!({ MADE_FROM: made_from });
    if let Some(first) = first {
        deployment["spec"]["replicas"] = json!(first);
    }
    let ports = json!([{ "name": "http", "port": engine.port, "targetPort": engine.port }]);
    let all = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta(&service.name_any()),
        "spec": { "selector": { labels::MODEL: service.name_any() }, "ports": ports },
    });
    vec![deployment, all]
}

/// Whether an object must be written: a Deployment that is not there or was made from something else.
/// The Service goes with it.
pub(super) fn is_new(object: &Value, workload: Option<&Workload>) -> bool {
    let Some(workload) = workload else { return true };
    let made_from = object["metadata"]["annotations"][MADE_FROM].as_str();
    made_from.is_some() && made_from != workload.made_from.as_deref()
}

/// Sixteen digits that change with the object. Keys are sorted, so that the same object gives the same.
fn digest(object: &Value) -> String {
    let digest = Sha256::digest(object.to_string());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
