//! The virtual cluster as the objects of the API, and these as the operator's facts.

use super::cluster::{Cluster, GRACE, Pod, TOLERATED, UNSEEN};
use super::plan::{ModelPlan, Plan};
use super::{Second, moment};
use crate::observe::{Facts, NodeFacts, PodFacts, Workload};
use crate::time;
use flyball_resources::model_service::TargetKind;
use flyball_resources::{ModelService, Pool, labels, rfc3339};
use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, Time};
use kube::ResourceExt as _;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

const RESOURCE: &str = "nvidia.com/gpu";

/// Where gateways run.
pub(super) const HOME: &str = "flyball";

/// The service account that they run under.
pub(super) const ACCOUNT: &str = "gateway";

/// The models as their owners wrote them.
pub(super) fn services(plan: &Plan) -> Vec<Arc<ModelService>> {
    plan.models.iter().map(|model| Arc::new(service(model))).collect()
}

fn service(model: &ModelPlan) -> ModelService {
    let replica = f64::from(model.slots);
    let (prompt, output) = (f64::from(model.prompt), f64::from(model.output));
    let decode = replica * model.speed;
    let capacity = model.stated.map(|off| {
        json!({
            "prefillTokensPerSecond": (off * decode * prompt / output).max(1.0) as i64,
            "decodeTokensPerSecond": (off * decode).max(1.0) as i64,
            "residentTokens": (off * replica * (prompt + output)).max(1.0) as i64,
        })
    });
    let mut variant = json!({
        "pool": pool_name(model.pool), "gpusPerReplica": model.gpus,
        "targetRef": {"kind": "Deployment", "name": model.name},
        "coldStartSeconds": model.start + 1,
    });
    if let Some(capacity) = capacity {
        variant["capacity"] = capacity;
    }
    let service = json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "ModelService",
        "metadata": {"name": model.name, "namespace": model.namespace},
        "spec": {
            "names": [model.public],
            "objectives": {"firstTokenMilliseconds": 2_000},
            "scaling": {
                "mode": if model.acts { "Act" } else { "Recommend" },
                "min": model.min, "max": model.max,
                "sleep": if model.sleeps { "WhenIdle" } else { "Never" },
            },
            "variants": [variant],
        },
    });
    serde_json::from_value(service).expect("a ModelService")
}

fn pool_name(pool: usize) -> String {
    format!("pool-{pool}")
}

pub(super) fn pools(plan: &Plan) -> Vec<Arc<Pool>> {
    let pool = |pool: usize| {
        let pool = json!({
            "apiVersion": "flyball.dev/v1alpha1", "kind": "Pool",
            "metadata": {"name": pool_name(pool)},
            "spec": {
                "accelerator": "h100",
                "nodeSelector": {"pool": pool_name(pool)},
                "prices": [{"purchase": "OnDemand", "perGpuHour": "3.00"}],
            },
        });
        Arc::new(serde_json::from_value(pool).expect("a Pool"))
    };
    (0..plan.pools).map(pool).collect()
}

/// The pod of a gateway.
#[derive(Clone, Debug)]
pub(super) struct GatewayPod {
    pub(super) name: String,
    pub(super) node: String,
    /// When its node was lost.
    pub(super) lost: Option<Second>,
}

/// What the watches would hold.
pub(super) fn facts(
    cluster: &Cluster<'_>,
    (models, pools): (Vec<Arc<ModelService>>, Vec<Arc<Pool>>),
    gateways: &[GatewayPod],
    now: Second,
) -> Facts {
    let mut pods: BTreeMap<String, Vec<PodFacts>> = BTreeMap::new();
    for pod in &cluster.pods {
        let namespace = pod.model.map_or("others", |model| &cluster.model(model).namespace);
        let list = pods.entry(namespace.to_owned()).or_default();
        list.push(PodFacts::of(&of_pod(cluster, pod)));
    }
    let of_gateways = gateways.iter().map(|pod| PodFacts::of(&of_gateway(pod, now)));
    pods.entry(HOME.to_owned()).or_default().extend(of_gateways);
    for list in pods.values_mut() {
        list.sort_by(|a, b| a.name.cmp(&b.name));
    }
    let with_gpus = (0..cluster.nodes.len()).map(|n| {
        let plan = &cluster.plan.nodes[n];
        let labels = [("pool".to_owned(), pool_name(plan.pool))].into();
        node(&plan.name, labels, plan.gpus, cluster.is_seen_lost(n, now))
    });
    let without = gateways.iter().map(|pod| {
        node(&pod.node, BTreeMap::new(), 0, pod.lost.is_some_and(|at| now >= at + UNSEEN))
    });
    let nodes = with_gpus.chain(without).map(|node| (node.name_any(), NodeFacts::of(&node)));
    let workloads = cluster.plan.models.iter().enumerate().map(|(n, model)| {
        let key = (model.namespace.clone(), TargetKind::Deployment, model.name.clone());
        (key, workload(model, cluster.replicas[n]))
    });
    Facts {
        models,
        pools,
        workloads: workloads.collect(),
        pods,
        nodes: nodes.collect(),
        ..Facts::default()
    }
}

/// A Deployment of llama-server, which cuts its streams on SIGTERM, or of vLLM, which does not.
fn workload(model: &ModelPlan, replicas: u32) -> Workload {
    let (image, args) = match model.cuts {
        true => ("ggml-org/llama.cpp:server", Vec::new()),
        false => ("vllm/vllm-openai", vec!["--shutdown-timeout".to_owned(), "25".to_owned()]),
    };
    Workload {
        replicas,
        selector: LabelSelector { match_labels: Some(app(model)), ..LabelSelector::default() },
        image: image.to_owned(),
        args,
        grace_seconds: Some(GRACE as i64),
        ..Workload::default()
    }
}

fn app(model: &ModelPlan) -> BTreeMap<String, String> {
    [("app".to_owned(), model.name.clone())].into()
}

fn of_pod(cluster: &Cluster<'_>, pod: &Pod) -> v1::Pod {
    let model = pod.model.map(|model| cluster.model(model));
    let mut annotations = BTreeMap::new();
    if let Some(since) = pod.draining {
        annotations.insert(labels::DRAINING.to_owned(), rfc3339(since));
    }
    if let Some(cost) = pod.cost {
        annotations.insert(labels::DELETION_COST.to_owned(), cost.to_string());
    }
    let scheduled = pod.scheduled.map(|since| condition("PodScheduled", true, since));
    let limits = [(RESOURCE.to_owned(), Quantity(pod.gpus.to_string()))].into();
    v1::Pod {
        metadata: ObjectMeta {
            name: Some(pod.name.clone()),
            uid: Some(pod.name.clone()),
            labels: model.map(app),
            annotations: Some(annotations),
            creation_timestamp: Some(date(pod.created)),
            deletion_timestamp: pod.ending.map(date),
            ..ObjectMeta::default()
        },
        spec: Some(v1::PodSpec {
            node_name: pod.node.map(|node| cluster.plan.nodes[node].name.clone()),
            containers: vec![v1::Container {
                name: "engine".to_owned(),
                resources: Some(v1::ResourceRequirements {
                    limits: Some(limits),
                    ..v1::ResourceRequirements::default()
                }),
                ..v1::Container::default()
            }],
            ..v1::PodSpec::default()
        }),
        status: Some(v1::PodStatus {
            phase: Some(if pod.began.is_some() { "Running" } else { "Pending" }.to_owned()),
            pod_ip: pod.node.map(|_| pod.ip.clone()),
            conditions: Some(
                scheduled.into_iter().chain([condition("Ready", pod.ready, pod.changed)]).collect(),
            ),
            container_statuses: pod.began.map(|began| vec![container(pod, began)]),
            ..v1::PodStatus::default()
        }),
    }
}

fn container(pod: &Pod, began: Second) -> v1::ContainerStatus {
    v1::ContainerStatus {
        name: "engine".to_owned(),
        restart_count: pod.restarts,
        ready: pod.ready,
        state: Some(v1::ContainerState {
            running: Some(v1::ContainerStateRunning { started_at: Some(date(began)) }),
            ..v1::ContainerState::default()
        }),
        ..v1::ContainerStatus::default()
    }
}

/// A gateway's pod. After its node was lost it is not ready, then told to end, and stays.
fn of_gateway(pod: &GatewayPod, now: Second) -> v1::Pod {
    let unready = pod.lost.map(|at| at + UNSEEN).filter(|at| now >= *at);
    let ending = pod.lost.map(|at| at + UNSEEN + TOLERATED).filter(|at| now >= *at);
    v1::Pod {
        metadata: ObjectMeta {
            name: Some(pod.name.clone()),
            uid: Some(pod.name.clone()),
            creation_timestamp: Some(date(0)),
            deletion_timestamp: ending.map(date),
            ..ObjectMeta::default()
        },
        spec: Some(v1::PodSpec {
            node_name: Some(pod.node.clone()),
            service_account_name: Some(ACCOUNT.to_owned()),
            ..v1::PodSpec::default()
        }),
        status: Some(v1::PodStatus {
            phase: Some("Running".to_owned()),
            pod_ip: Some("10.1.0.1".to_owned()),
            conditions: Some(vec![condition("Ready", unready.is_none(), unready.unwrap_or(0))]),
            ..v1::PodStatus::default()
        }),
    }
}

fn condition(name: &str, so: bool, since: Second) -> v1::PodCondition {
    v1::PodCondition {
        type_: name.to_owned(),
        status: if so { "True" } else { "False" }.to_owned(),
        last_transition_time: Some(date(since)),
        ..v1::PodCondition::default()
    }
}

fn node(name: &str, labels: BTreeMap<String, String>, gpus: u32, lost: bool) -> v1::Node {
    let ready = v1::NodeCondition {
        type_: "Ready".to_owned(),
        status: if lost { "Unknown" } else { "True" }.to_owned(),
        ..v1::NodeCondition::default()
    };
    v1::Node {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        status: Some(v1::NodeStatus {
            allocatable: Some([(RESOURCE.to_owned(), Quantity(gpus.to_string()))].into()),
            conditions: Some(vec![ready]),
            ..v1::NodeStatus::default()
        }),
        ..v1::Node::default()
    }
}

fn date(second: Second) -> Time {
    Time(time::date(moment(second)))
}
