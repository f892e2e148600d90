//! The objects of a variant that Flyball runs itself: a Service, a PodDisruptionBudget and a Deployment.
//!
//! What draining needs is set here, because its absence cuts requests: vLLM's `--shutdown-timeout` (0 by
//! default, at which streams stall), a grace period above it, and a preStop pause in which the pod leaves
//! its Service before the engine hears that it must go. llama-server finishes nothing once it hears that, so
//! that its pause is as long as a request may take. `observe::drain` is what proves it.

mod args;
mod merge;
mod pod;
mod probes;
#[cfg(test)]
mod tests;

use crate::observe::{MADE_FROM, Workload, workload_key};
use flyball_resources::model_service::{EngineSpec, VariantSpec};
use flyball_resources::{ModelService, Pool, labels};
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The share of pods that may be evicted at once. It is rounded up: one of up to ten.
const EVICTED_AT_ONCE: &str = "10%";

/// The objects, with `first` replicas if the Deployment is new.
pub(super) fn objects(
    service: &ModelService,
    variant: &VariantSpec,
    engine: &EngineSpec,
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
    let ports = json!([{ "name": "http", "port": engine.port, "targetPort": "http" }]);
    let address = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta(&service.name_any()),
        "spec": { "selector": { labels::MODEL: service.name_any() }, "ports": ports },
    });
    let budget = json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": meta(&name),
        "spec": {
            "selector": { "matchLabels": own },
            "maxUnavailable": EVICTED_AT_ONCE,
            // A pod that serves nobody may go, or a broken one would hold its node for ever.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    });
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
    deployment["metadata"]["annotations"] =
        json!({ MADE_FROM: digest(&[&address, &budget, &deployment]) });
    if let Some(first) = first {
        deployment["spec"]["replicas"] = json!(first);
    }
    // The last says what all of them were made from: a write that fails before it is made again.
    vec![address, budget, deployment]
}

/// Whether objects must be written: their Deployment is not there, or they were made from something else.
pub(super) fn are_new(objects: &[Value], workload: Option<&Workload>) -> bool {
    let Some(workload) = workload else { return true };
    let annotated =
        objects.iter().find_map(|one| one["metadata"]["annotations"][MADE_FROM].as_str());
    annotated != workload.made_from.as_deref()
}

/// Sixteen digits that change with the objects. Keys are sorted, so that the same objects give the same.
fn digest(objects: &[&Value]) -> String {
    let digest = Sha256::digest(json!(objects).to_string());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
