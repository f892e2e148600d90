//! The pod of an engine.

use super::merge::merge;
use super::{args, probes};
use crate::observe::{END_SECONDS, GPU};
use crate::validate::ENGINE;
use flyball_engines::Shutdown;
use flyball_resources::model_service::{EngineSpec, VariantSpec};
use flyball_resources::{ModelService, Pool, labels};
use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

/// Endpoints are everywhere after this; gateways hear of it sooner.
const LEAVE_SECONDS: i32 = 5;

/// What processes of one engine share. Kubernetes gives 64 MiB, at which vLLM does not start; SGLang's own
/// example has this much, vLLM's 2. It is taken from the node's memory as it is used.
const SHARED_MEMORY: &str = "10Gi";

/// The labels of a variant's pods, by which its Deployment finds them.
pub(super) fn labels_of(service: &ModelService, variant: &VariantSpec) -> Value {
    json!({ labels::MODEL: service.name_any(), labels::VARIANT: variant.name })
}

/// The pod template, with what its owner lays over it.
pub(super) fn template(
    service: &ModelService,
    variant: &VariantSpec,
    engine: &EngineSpec,
    pool: Option<&Pool>,
) -> Value {
    let mut template = json!({
        "metadata": {
            "labels": labels_of(service, variant),
            "annotations": {
                "prometheus.io/scrape": "true",
                "prometheus.io/port": engine.port.to_string(),
            },
        },
        "spec": {
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": i64::from(LEAVE_SECONDS + engine.drain_seconds) + END_SECONDS,
            "securityContext": { "seccompProfile": { "type": "RuntimeDefault" } },
            "containers": [container(service, variant, engine, pool)],
        },
    });
    if engine.kind.facts().shares_memory {
        let memory = json!({ "medium": "Memory", "sizeLimit": SHARED_MEMORY });
        template["spec"]["volumes"] = json!([{ "name": "shm", "emptyDir": memory }]);
    }
    let metrics = engine.kind.facts().metrics;
    if metrics != "/metrics" {
        template["metadata"]["annotations"]["prometheus.io/path"] = json!(metrics);
    }
    if let Some(overlay) = &engine.pod_overlay {
        merge(&mut template, &Value::Object(overlay.clone()));
    }
    keep(&mut template["spec"], pool);
    template
}

/// What no overlay changes: which nodes are the pool's, and what its containers may not do.
fn keep(spec: &mut Value, pool: Option<&Pool>) {
    if let Some(pool) = pool.filter(|pool| !pool.spec.node_selector.is_empty()) {
        merge(&mut spec["nodeSelector"], &json!(pool.spec.node_selector));
    }
    for list in ["containers", "initContainers"] {
        for one in spec[list].as_array_mut().into_iter().flatten() {
            merge(
                &mut one["securityContext"],
                &json!({
                    "allowPrivilegeEscalation": false,
                    "capabilities": { "drop": ["ALL"] },
                }),
            );
        }
    }
}

fn container(
    service: &ModelService,
    variant: &VariantSpec,
    engine: &EngineSpec,
    pool: Option<&Pool>,
) -> Value {
    let line = args::command_line(service, variant, engine, pool);
    let mut container = json!({
        "name": ENGINE,
        "image": engine.image,
        "ports": [{ "name": "http", "containerPort": engine.port }],
        "args": line.args,
        "lifecycle": { "preStop": { "sleep": { "seconds": pause_seconds(engine) } } },
    });
    merge(&mut container, &probes::probes(variant, engine));
    if !line.command.is_empty() {
        container["command"] = json!(line.command);
    }
    if variant.gpus_per_replica > 0 {
        let resource = pool.map_or(GPU, |pool| pool.spec.resource_name.as_str());
        let limits: Map<String, Value> =
            [(resource.to_owned(), json!(variant.gpus_per_replica.to_string()))]
                .into_iter()
                .collect();
        container["resources"] = json!({ "limits": limits });
    }
    if engine.kind.facts().shares_memory {
        container["volumeMounts"] = json!([{ "name": "shm", "mountPath": "/dev/shm" }]);
    }
    container
}

/// How long a pod goes on as if nothing were before its engine is told to end.
const fn pause_seconds(engine: &EngineSpec) -> i32 {
    match engine.kind.facts().shutdown {
        Shutdown::Flag(_) | Shutdown::Finishes => LEAVE_SECONDS,
        // It cuts what it has, or hangs.
        Shutdown::Cuts => LEAVE_SECONDS + engine.drain_seconds,
    }
}
