//! A mirror of the API server, kept by watches.

use super::facts::{Facts, NodeFacts, PodFacts, Workload, WorkloadKey};
use flyball_resources::model_service::TargetKind;
use flyball_resources::{ModelService, Pool, labels};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{ConfigMap, Container, Node, Pod, PodSpec};
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::{Api, Client, Resource, ResourceExt as _};
use kube_runtime::reflector::store::Writer;
use kube_runtime::reflector::{self, Store};
use kube_runtime::{WatchStreamExt as _, watcher};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// On workloads that Flyball made: what they were made from.
pub(crate) const MADE_FROM: &str = "flyball.dev/made-from";

/// What the watches hold.
#[derive(Clone)]
pub struct Watches {
    models: Store<ModelService>,
    pools: Store<Pool>,
    pods: Store<Pod>,
    nodes: Store<Node>,
    deployments: Store<Deployment>,
    stateful_sets: Store<StatefulSet>,
    autoscalers: Store<HorizontalPodAutoscaler>,
    switches: Store<ConfigMap>,
    /// Watched from the moment on that a model names one: the kind may not exist.
    groups: Arc<OnceLock<Store<DynamicObject>>>,
    client: Client,
    failures: Arc<AtomicU64>,
    last: Arc<Mutex<Option<String>>>,
}

impl Debug for Watches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watches").field("failures", &self.failures).finish_non_exhaustive()
    }
}

/// Begins to watch. `namespace` is where the freeze switch is.
pub fn watch(client: &Client, namespace: &str) -> Watches {
    let failures = Arc::new(AtomicU64::new(0));
    let last = Arc::new(Mutex::new(None));
    let told = (&failures, &last);
    let switch =
        watcher::Config::default().fields(&format!("metadata.name={}", labels::FREEZE_ALL));
    Watches {
        models: mirror(Api::all(client.clone()), watcher::Config::default(), told),
        pools: mirror(Api::all(client.clone()), watcher::Config::default(), told),
        pods: mirror(Api::all(client.clone()), watcher::Config::default(), told),
        nodes: mirror(Api::all(client.clone()), watcher::Config::default(), told),
        deployments: mirror(Api::all(client.clone()), watcher::Config::default(), told),
        stateful_sets: mirror(Api::all(client.clone()), watcher::Config::default(), told),
        autoscalers: mirror(Api::all(client.clone()), watcher::Config::default(), told),
        switches: mirror(Api::namespaced(client.clone(), namespace), switch, told),
        groups: Arc::default(),
        client: client.clone(),
        failures,
        last,
    }
}

impl Watches {
    /// Waits until everything was listed once.
    pub async fn listed(&self) {
        let _ = self.models.wait_until_ready().await;
        let _ = self.pools.wait_until_ready().await;
        let _ = self.pods.wait_until_ready().await;
        let _ = self.nodes.wait_until_ready().await;
        let _ = self.deployments.wait_until_ready().await;
        let _ = self.stateful_sets.wait_until_ready().await;
        let _ = self.switches.wait_until_ready().await;
    }

    /// Watches that failed so far, and what the last said. They begin again by themselves.
    pub fn failures(&self) -> (u64, Option<String>) {
        let last = self.last.lock().map_or(None, |last| last.clone());
        (self.failures.load(Ordering::Relaxed), last)
    }

    /// Everything as it is now, of these namespaces; of all if there are none.
    pub fn facts(&self, namespaces: &[String]) -> Facts {
        let ours = |model: &Arc<ModelService>| {
            namespaces.is_empty() || model.namespace().is_some_and(|own| namespaces.contains(&own))
        };
        let models: Vec<_> = self.models.state().into_iter().filter(ours).collect();
        let names_a_group = models.iter().flat_map(|model| &model.spec.variants).any(|variant| {
            variant.target_ref.as_ref().is_some_and(|to| to.kind == TargetKind::LeaderWorkerSet)
        });
        if names_a_group {
            self.groups.get_or_init(|| self.watch_groups());
        }
        let mut pods: BTreeMap<String, Vec<PodFacts>> = BTreeMap::new();
        for pod in self.pods.state() {
            pods.entry(pod.namespace().unwrap_or_default()).or_default().push(PodFacts::of(&pod));
        }
        for list in pods.values_mut() {
            list.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let nodes = self.nodes.state();
        Facts {
            models,
            pools: self.pools.state(),
            workloads: self.workloads(),
            pods,
            nodes: nodes.iter().map(|node| (node.name_any(), NodeFacts::of(node))).collect(),
            frozen: !self.switches.is_empty(),
        }
    }

    fn workloads(&self) -> BTreeMap<WorkloadKey, Workload> {
        let deployments = self.deployments.state();
        let stateful = self.stateful_sets.state();
        let deployments = deployments
            .iter()
            .map(|one| (key(one.as_ref(), TargetKind::Deployment), of_deployment(one)));
        let stateful = stateful
            .iter()
            .map(|one| (key(one.as_ref(), TargetKind::StatefulSet), of_stateful_set(one)));
        let groups = self.groups.get().map(|groups| groups.state()).unwrap_or_default();
        let groups = groups
            .iter()
            .map(|one| (key(one.as_ref(), TargetKind::LeaderWorkerSet), of_group(one)));
        let mut workloads: BTreeMap<_, _> = deployments.chain(stateful).chain(groups).collect();
        for autoscaler in self.autoscalers.state() {
            let to = &autoscaler.spec.scale_target_ref;
            let kind = match to.kind.as_str() {
                "Deployment" => TargetKind::Deployment,
                "StatefulSet" => TargetKind::StatefulSet,
                "LeaderWorkerSet" => TargetKind::LeaderWorkerSet,
                _ => continue,
            };
            let place = (autoscaler.namespace().unwrap_or_default(), kind, to.name.clone());
            if let Some(workload) = workloads.get_mut(&place) {
                workload.rival = Some(autoscaler.name_any());
            }
        }
        workloads
    }

    fn watch_groups(&self) -> Store<DynamicObject> {
        let kind = GroupVersionKind::gvk("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet");
        let resource = ApiResource::from_gvk(&kind);
        let writer = Writer::new(resource.clone());
        let api = Api::all_with(self.client.clone(), &resource);
        mirror_into(writer, api, watcher::Config::default(), (&self.failures, &self.last))
    }
}

type Told<'a> = (&'a Arc<AtomicU64>, &'a Arc<Mutex<Option<String>>>);

fn mirror<K>(api: Api<K>, config: watcher::Config, told: Told<'_>) -> Store<K>
where
    K: Resource<DynamicType = ()> + Lean + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    mirror_into(Writer::default(), api, config, told)
}

fn mirror_into<K>(
    writer: Writer<K>,
    api: Api<K>,
    config: watcher::Config,
    told: Told<'_>,
) -> Store<K>
where
    K: Resource + Lean + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Send + Sync,
{
    let store = writer.as_reader();
    let (failures, last) = (Arc::clone(told.0), Arc::clone(told.1));
    let stream = watcher(api, config).default_backoff().modify(Lean::lean);
    let stream = reflector::reflector(writer, stream).map_err(move |error| {
        failures.fetch_add(1, Ordering::Relaxed);
        if let Ok(mut last) = last.lock() {
            *last = Some(error.to_string());
        }
    });
    tokio::spawn(async move {
        let mut stream = std::pin::pin!(stream);
        // A stream of the watcher never ends, and begins again after an error.
        while let Some(_seen) = stream.next().await {}
        tokio::time::sleep(Duration::ZERO).await;
    });
    store
}

/// Leaves out what nobody reads: 100,000 pods are held in memory.
trait Lean: Resource {
    fn lean(&mut self) {
        self.meta_mut().managed_fields = None;
    }
}

impl Lean for ModelService {}
impl Lean for Pool {}
impl Lean for DynamicObject {}
impl Lean for HorizontalPodAutoscaler {}
impl Lean for ConfigMap {}
impl Lean for Deployment {}
impl Lean for StatefulSet {}

impl Lean for Node {
    fn lean(&mut self) {
        self.metadata.managed_fields = None;
        if let Some(status) = &mut self.status {
            status.images = None;
        }
    }
}

impl Lean for Pod {
    fn lean(&mut self) {
        self.metadata.managed_fields = None;
        let Some(spec) = self.spec.take() else { return };
        let keep = |container: Container| Container {
            name: container.name,
            resources: container.resources,
            ..Container::default()
        };
        self.spec = Some(PodSpec {
            node_name: spec.node_name,
            containers: spec.containers.into_iter().map(keep).collect(),
            ..PodSpec::default()
        });
    }
}

fn key<K: Resource>(one: &K, kind: TargetKind) -> WorkloadKey {
    (one.namespace().unwrap_or_default(), kind, one.name_any())
}

fn of_deployment(one: &Deployment) -> Workload {
    let Some(spec) = &one.spec else { return Workload::default() };
    Workload {
        replicas: count(spec.replicas.map(i64::from)),
        selector: spec.selector.clone(),
        version: one.resource_version(),
        made_from: one.annotations().get(MADE_FROM).cloned(),
        ..of_pods(spec.template.spec.as_ref())
    }
}

fn of_stateful_set(one: &StatefulSet) -> Workload {
    let Some(spec) = &one.spec else { return Workload::default() };
    Workload {
        replicas: count(spec.replicas.map(i64::from)),
        selector: spec.selector.clone(),
        version: one.resource_version(),
        ..of_pods(spec.template.spec.as_ref())
    }
}

/// A replica of a LeaderWorkerSet is a group; its leader stands for it.
fn of_group(one: &DynamicObject) -> Workload {
    let mut selector = k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector::default();
    let wanted = [
        ("leaderworkerset.sigs.k8s.io/name", one.name_any()),
        ("leaderworkerset.sigs.k8s.io/worker-index", "0".to_owned()),
    ];
    let wanted = wanted.into_iter().map(|(label, value)| (label.to_owned(), value));
    selector.match_labels = Some(wanted.collect());
    Workload {
        replicas: count(one.data["spec"]["replicas"].as_i64()),
        selector,
        version: one.resource_version(),
        ..Workload::default()
    }
}

fn of_pods(spec: Option<&PodSpec>) -> Workload {
    let container = spec.and_then(|spec| spec.containers.first());
    Workload {
        grace_seconds: spec.and_then(|spec| spec.termination_grace_period_seconds),
        args: container.and_then(|container| container.args.clone()).unwrap_or_default(),
        ..Workload::default()
    }
}

/// Kubernetes takes one where none is set.
fn count(replicas: Option<i64>) -> u32 {
    u32::try_from(replicas.unwrap_or(1)).unwrap_or(0)
}
