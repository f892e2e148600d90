//! A mirror of the API server, kept by watches.

use super::drain::kind_of;
use super::facts::{AnswersAt, Facts, NodeFacts, PodFacts, Workload, WorkloadKey};
use super::groups;
use super::loans::LoanFacts;
use super::mirror::{Denied, Failures, Mirror, follow};
use super::port::port;
use crate::settings::OperatorSettings;
use flyball_resources::model_service::TargetKind;
use flyball_resources::{ModelService, Pool, Tenant, TrainingRun, labels};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{ConfigMap, Container, Node, Pod, PodSpec};
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::{Api, Client, Resource, ResourceExt as _};
use kube_runtime::reflector::Store;
use kube_runtime::reflector::store::Writer;
use kube_runtime::watcher;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// On workloads that Flyball made: what they were made from.
pub(crate) const MADE_FROM: &str = "flyball.dev/made-from";

/// Other autoscalers are waited for so long: what they are unknown for is not carried out, and the rest
/// should not wait.
const OTHERS: Duration = Duration::from_secs(10);

/// What the watches hold.
#[derive(Clone)]
pub struct Watches {
    models: Mirror<ModelService>,
    pools: Mirror<Pool>,
    tenants: Mirror<Tenant>,
    runs: Mirror<TrainingRun>,
    pods: Mirror<Pod>,
    /// Gateways in the operator's own namespace, where that is not looked at as a whole.
    gateways: Option<Mirror<Pod>>,
    nodes: Mirror<Node>,
    deployments: Mirror<Deployment>,
    stateful_sets: Mirror<StatefulSet>,
    autoscalers: Mirror<HorizontalPodAutoscaler>,
    switches: Mirror<ConfigMap>,
    /// Watched from the moment on that a model names one: the kind may not exist.
    groups: Arc<OnceLock<Vec<Store<DynamicObject>>>>,
    namespaces: Vec<String>,
    engine_accounts: Vec<String>,
    client: Client,
    failures: Failures,
}

impl fmt::Debug for Watches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watches").field("failures", &self.failures).finish_non_exhaustive()
    }
}

/// Begins to watch the namespaces of the settings, or all if there are none.
pub fn watch(client: &Client, settings: &OperatorSettings) -> Watches {
    let (namespaces, home) = (settings.namespaces.as_slice(), settings.lease.namespace.as_str());
    let failures = Failures::default();
    let switch =
        watcher::Config::default().fields(&format!("metadata.name={}", labels::FREEZE_ALL));
    let all = watcher::Config::default;
    let apart = !namespaces.is_empty() && !namespaces.iter().any(|one| one == home);
    let gateways = watcher::Config::default().labels(&format!(
        "{}=flyball,{}=gateway",
        labels::APP_NAME,
        labels::APP_COMPONENT
    ));
    Watches {
        models: Mirror::within(client, namespaces, &failures),
        pools: Mirror::of(Api::all(client.clone()), all(), &failures),
        tenants: Mirror::within(client, namespaces, &failures),
        runs: Mirror::within(client, namespaces, &failures),
        pods: Mirror::within(client, namespaces, &failures),
        gateways: apart
            .then(|| Mirror::of(Api::namespaced(client.clone(), home), gateways, &failures)),
        nodes: Mirror::of(Api::all(client.clone()), all(), &failures),
        deployments: Mirror::within(client, namespaces, &failures),
        stateful_sets: Mirror::within(client, namespaces, &failures),
        autoscalers: Mirror::within(client, namespaces, &failures),
        switches: Mirror::of(Api::namespaced(client.clone(), home), switch, &failures),
        groups: Arc::default(),
        namespaces: namespaces.to_vec(),
        engine_accounts: settings.engine_accounts.clone(),
        client: client.clone(),
        failures,
    }
}

impl Watches {
    /// Waits until everything was listed once. Gateways apart are not waited for: as long as nobody sees
    /// their pods, silent ones count as if they were there. Other autoscalers that may not be listed are
    /// not either: where they are unknown, nothing is carried out.
    pub async fn listed(&self) {
        self.models.listed().await;
        self.pools.listed().await;
        self.pods.listed().await;
        self.nodes.listed().await;
        self.deployments.listed().await;
        self.stateful_sets.listed().await;
        self.switches.listed().await;
        let _ = tokio::time::timeout(OTHERS, self.autoscalers.listed_or_denied()).await;
    }

    /// Waits until Tenants were listed once. Nothing else waits for them.
    pub async fn tenants_listed(&self) {
        self.tenants.listed().await;
    }

    /// Tenants as they are now.
    pub fn tenants(&self) -> Vec<Arc<Tenant>> {
        self.tenants.state()
    }

    /// TrainingRuns.
    pub(super) fn runs_mirror(&self) -> &Mirror<TrainingRun> {
        &self.runs
    }

    /// What else is watched is watched by this client, in these namespaces.
    pub(super) fn whence(&self) -> (Client, Vec<String>, Failures) {
        (self.client.clone(), self.namespaces.clone(), self.failures.clone())
    }

    /// Shows every pod, also those that are over.
    pub(super) fn every_pod(&self, show: impl FnMut(&Arc<Pod>)) {
        self.pods.state().iter().for_each(show);
    }

    /// Pools, nodes and whether everything is frozen.
    pub(super) fn places(&self) -> (Vec<Arc<Pool>>, BTreeMap<String, NodeFacts>, bool) {
        let nodes = self.nodes.state();
        let nodes = nodes.iter().map(|node| (node.name_any(), NodeFacts::of(node)));
        (self.pools.state(), nodes.collect(), !self.switches.is_empty())
    }

    /// Shows every pod that is not over, gateways among them.
    pub fn each_pod(&self, mut show: impl FnMut(&Pod)) {
        let gateways = self.gateways.iter().flat_map(Mirror::state);
        let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
        let is_over = |pod: &Pod| matches!(phase(pod).as_deref(), Some("Succeeded" | "Failed"));
        self.pods.state().iter().chain(&gateways.collect::<Vec<_>>()).for_each(|pod| {
            if !is_over(pod) {
                show(pod);
            }
        });
    }

    /// Watches that failed so far, and what the last said. They begin again by themselves.
    pub fn failures(&self) -> (u64, Option<String>) {
        self.failures.summary()
    }

    /// Everything as it is now.
    pub fn facts(&self) -> Facts {
        let models = self.models.state();
        let names_a_group = models.iter().flat_map(|model| &model.spec.variants).any(|variant| {
            variant.target_ref.as_ref().is_some_and(|to| to.kind == TargetKind::LeaderWorkerSet)
        });
        if names_a_group {
            self.groups.get_or_init(|| self.watch_groups());
        }
        let mut pods: BTreeMap<String, Vec<PodFacts>> = BTreeMap::new();
        let gateways = self.gateways.iter().flat_map(Mirror::state);
        for pod in self.pods.state().into_iter().chain(gateways) {
            pods.entry(pod.namespace().unwrap_or_default()).or_default().push(PodFacts::of(&pod));
        }
        for list in pods.values_mut() {
            list.sort_by(|a, b| a.name.cmp(&b.name));
            groups::join(list);
        }
        let nodes = self.nodes.state();
        let namespaces: BTreeSet<String> =
            models.iter().filter_map(|model| model.namespace()).collect();
        let unseen = namespaces.into_iter().filter(|one| self.autoscalers.is_unknown(one));
        Facts {
            unseen_owners: unseen.collect(),
            models,
            pools: self.pools.state(),
            workloads: self.workloads(),
            pods,
            nodes: nodes.iter().map(|node| (node.name_any(), NodeFacts::of(node))).collect(),
            frozen: !self.switches.is_empty(),
            engine_accounts: self.engine_accounts.clone(),
            loans: LoanFacts::default(),
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
        let groups = self.groups.get().into_iter().flatten().flat_map(Store::state);
        let groups: Vec<_> = groups.collect();
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

    fn watch_groups(&self) -> Vec<Store<DynamicObject>> {
        let kind = GroupVersionKind::gvk("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet");
        let resource = ApiResource::from_gvk(&kind);
        let watched = |api: Api<DynamicObject>| {
            let writer = Writer::new(resource.clone());
            let noted = (&self.failures, &Denied::default());
            follow(writer, api, watcher::Config::default(), noted)
        };
        let client = || self.client.clone();
        if self.namespaces.is_empty() {
            return vec![watched(Api::all_with(client(), &resource))];
        }
        let each = self.namespaces.iter();
        each.map(|one| watched(Api::namespaced_with(client(), one, &resource))).collect()
    }
}

fn key<K: Resource>(one: &K, kind: TargetKind) -> WorkloadKey {
    (one.namespace().unwrap_or_default(), kind, one.name_any())
}

pub(crate) fn of_deployment(one: &Deployment) -> Workload {
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
    let labels = [
        ("leaderworkerset.sigs.k8s.io/name", one.name_any()),
        ("leaderworkerset.sigs.k8s.io/worker-index", "0".to_owned()),
    ];
    let labels = labels.into_iter().map(|(label, value)| (label.to_owned(), value));
    selector.match_labels = Some(labels.collect());
    // Requests go to leaders; where these have no template of their own, they are like the others.
    let template = &one.data["spec"]["leaderWorkerTemplate"];
    let leads = ["leaderTemplate", "workerTemplate"].map(|part| &template[part]["spec"]);
    let leads = leads.into_iter().find(|spec| spec.is_object());
    let leads = leads.and_then(|spec| serde_json::from_value::<PodSpec>(spec.clone()).ok());
    Workload {
        replicas: count(one.data["spec"]["replicas"].as_i64()),
        selector,
        version: one.resource_version(),
        answers: of_pods(leads.as_ref()).answers,
        ..Workload::default()
    }
}

fn of_pods(spec: Option<&PodSpec>) -> Workload {
    let container = spec.and_then(|spec| spec.containers.first());
    let mut workload = Workload {
        grace_seconds: spec.and_then(|spec| spec.termination_grace_period_seconds),
        image: container.and_then(|container| container.image.clone()).unwrap_or_default(),
        args: container.map(arguments).unwrap_or_default(),
        pause_seconds: container.and_then(pause),
        ..Workload::default()
    };
    workload.answers = spec.map(|spec| answers(spec, &workload)).unwrap_or_default();
    workload
}

fn answers(spec: &PodSpec, workload: &Workload) -> AnswersAt {
    let engine = kind_of(workload);
    let names = engine.map(|engine| engine.facts().launch.names_in(&workload.args));
    AnswersAt { port: port(spec, &workload.args, engine), engine, names: names.unwrap_or_default() }
}

fn arguments(container: &Container) -> Vec<String> {
    let parts = [&container.command, &container.args];
    parts.into_iter().flatten().flatten().cloned().collect()
}

/// A pause is a sleep; of a command it is not known how long it takes.
fn pause(container: &Container) -> Option<i64> {
    container.lifecycle.as_ref()?.pre_stop.as_ref()?.sleep.as_ref().map(|sleep| sleep.seconds)
}

/// Kubernetes takes one where none is set.
fn count(replicas: Option<i64>) -> u32 {
    u32::try_from(replicas.unwrap_or(1)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_engines::Engine;
    use serde_json::{Value, json};

    fn group(template: Value) -> AnswersAt {
        let group = json!({
            "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
            "metadata": {"name": "g", "namespace": "a"},
            "spec": {"replicas": 2, "leaderWorkerTemplate": template},
        });
        of_group(&serde_json::from_value(group).unwrap()).answers
    }

    #[test]
    fn leaders_of_groups_answer_and_without_a_template_of_their_own_they_are_like_the_others() {
        let pods = |port: u16| {
            let args = ["--model-path", "org/m", "--port", &port.to_string()].map(str::to_owned);
            let container = json!({"name": "e", "image": "lmsysorg/sglang:v0.5.6", "args": args});
            json!({"spec": {"containers": [container]}})
        };
        let at = |port: u16| AnswersAt {
            port: Some(port),
            engine: Some(Engine::Sglang),
            names: vec!["org/m".to_owned()],
        };
        assert_eq!(group(json!({"workerTemplate": pods(1)})), at(1));
        assert_eq!(group(json!({"workerTemplate": pods(1), "leaderTemplate": pods(2)})), at(2));
        assert_eq!(group(json!({})), AnswersAt::default());
    }
}
