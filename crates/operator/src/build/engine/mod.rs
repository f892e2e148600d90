//! The objects of a variant that Flyball runs itself: a Deployment and a Service.
//!
//! What draining needs is set here, because its absence cuts requests: vLLM's `--shutdown-timeout` (0 by
//! default, at which streams stall), a grace period above it, and a preStop pause in which the pod leaves
//! its Service before the engine hears that it must go. llama-server finishes nothing once it hears that, so
//! that its pause is as long as a request may take. `validate::drain` is what proves it.

mod args;
#[cfg(test)]
mod tests;

use crate::observe::{MADE_FROM, Workload, workload_key};
use flyball_resources::model_service::{Engine, EngineKind, Variant};
use flyball_resources::{ModelService, Pool, labels};
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// Endpoints are everywhere after this; gateways hear of it sooner.
const LEAVE_SECONDS: i32 = 5;

/// For the engine to end once its requests have.
const END_SECONDS: i32 = 15;

/// The objects, with `first` replicas if the Deployment is new.
pub(super) fn objects(
    service: &ModelService,
    variant: &Variant,
    engine: &Engine,
    pool: Option<&Pool>,
    first: Option<u32>,
) -> Vec<Value> {
    let (namespace, _, name) = workload_key(service, variant);
    let own = json!({ labels::MODEL: service.name_any(), labels::VARIANT: variant.name });
    let mut template = json!({
        "metadata": {
            "labels": own,
            "annotations": {
                "prometheus.io/scrape": "true",
                "prometheus.io/port": engine.port.to_string(),
            },
        },
        "spec": pod_spec(service, variant, engine, pool),
    });
    if let Some(overlay) = &engine.pod_overlay {
        merge(&mut template, &Value::Object(overlay.clone()));
    }
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
            "template": template,
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

fn pod_spec(
    service: &ModelService,
    variant: &Variant,
    engine: &Engine,
    pool: Option<&Pool>,
) -> Value {
    let line = args::command_line(service, variant, engine);
    let mut container = json!({
        "name": "engine",
        "image": engine.image,
        "ports": [{ "name": "http", "containerPort": engine.port }],
        "args": line.args,
        "readinessProbe": { "httpGet": { "path": "/health", "port": engine.port }, "periodSeconds": 2 },
        "lifecycle": { "preStop": { "sleep": { "seconds": pause_seconds(engine) } } },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": { "drop": ["ALL"] },
        },
    });
    if !line.command.is_empty() {
        container["command"] = json!(line.command);
    }
    if variant.gpus_per_replica > 0 {
        let resource = pool.map_or("nvidia.com/gpu", |pool| pool.spec.resource_name.as_str());
        let limits: Map<String, Value> =
            [(resource.to_owned(), json!(variant.gpus_per_replica.to_string()))]
                .into_iter()
                .collect();
        container["resources"] = json!({ "limits": limits });
    }
    let selector = pool.map(|pool| pool.spec.node_selector.clone()).unwrap_or_default();
    json!({
        "automountServiceAccountToken": false,
        "terminationGracePeriodSeconds": LEAVE_SECONDS + engine.drain_seconds + END_SECONDS,
        "securityContext": { "seccompProfile": { "type": "RuntimeDefault" } },
        "nodeSelector": selector,
        "containers": [container],
    })
}

/// How long a pod goes on as if nothing were before its engine is told to end.
const fn pause_seconds(engine: &Engine) -> i32 {
    match engine.kind {
        // They finish what they have.
        EngineKind::Vllm | EngineKind::Sglang => LEAVE_SECONDS,
        // It cuts what it has, or hangs.
        EngineKind::LlamaCpp => LEAVE_SECONDS + engine.drain_seconds,
    }
}

/// JSON merge patch (RFC 7396).
fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (name, value) in patch {
        if value.is_null() {
            into.as_object_mut().map(|map| map.remove(name));
        } else {
            merge(&mut into[name], value);
        }
    }
}

/// Sixteen digits that change with the object. Keys are sorted, so that the same object gives the same.
fn digest(object: &Value) -> String {
    let digest = Sha256::digest(object.to_string());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
