//! What the API server said, as far as it matters, at one moment.

use super::loans::LoanFacts;
use super::nodes::{Outlook, outlook};
use crate::time::moment;
use crate::validate::ValidationRules;
use flyball_core::units::Timestamp;
use flyball_engines::Engine;
use flyball_resources::model_service::TargetKind;
use flyball_resources::{ModelService, Pool, PoolSpec, labels};
use k8s_openapi::api::core::v1::{ContainerStatus, Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube::ResourceExt as _;
use kube::core::{Selector, SelectorExt as _};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What accelerators are called where no Pool says so.
pub(crate) const GPU: &str = "nvidia.com/gpu";

/// On the pods of a LeaderWorkerSet: how many a group has. That project's own.
const GROUP_SIZE: &str = "leaderworkerset.sigs.k8s.io/size";

/// Everything at one moment.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// What people want served.
    pub models: Vec<Arc<ModelService>>,
    /// Pools of accelerators.
    pub pools: Vec<Arc<Pool>>,
    /// Workloads that can be scaled.
    pub workloads: BTreeMap<WorkloadKey, Workload>,
    /// Namespaces of models in which nobody can tell who else sets replicas.
    pub unseen_owners: BTreeSet<String>,
    /// Pods by namespace.
    pub pods: BTreeMap<String, Vec<PodFacts>>,
    /// Nodes by name.
    pub nodes: BTreeMap<String, NodeFacts>,
    /// Whether a person stopped everything.
    pub frozen: bool,
    /// Service accounts that engines' pods may use, as this operator was told.
    pub engine_accounts: Vec<String>,
    /// What training runs borrow.
    pub loans: LoanFacts,
}

/// Namespace, kind and name of a workload.
pub type WorkloadKey = (String, TargetKind, String);

/// A workload that can be scaled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// Replicas that its spec asks for.
    pub replicas: u32,
    /// Its pods.
    pub selector: LabelSelector,
    /// Who else sets its replicas: the name of a HorizontalPodAutoscaler.
    pub rival: Option<String>,
    /// Its version, so that what changed meanwhile is not overwritten.
    pub version: Option<String>,
    /// What it was made from, of those that Flyball made.
    pub made_from: Option<String>,
    /// Seconds that its pods get to end.
    pub grace_seconds: Option<i64>,
    /// The image of its first container.
    pub image: String,
    /// The program of that container and its arguments, as far as they are set.
    pub args: Vec<String>,
    /// Seconds that the container pauses before it is told to end.
    pub pause_seconds: Option<i64>,
    /// Where its engine answers, as far as its template shows it. Of groups, that of their leaders.
    pub answers: AnswersAt,
}

/// Where an engine answers, and to which names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswersAt {
    /// Its port.
    pub port: Option<u16>,
    /// What it is.
    pub engine: Option<Engine>,
    /// The names by which it knows its model.
    pub names: Vec<String>,
}

/// One pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodFacts {
    /// Its name.
    pub name: String,
    /// The same pod for ever.
    pub uid: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its address.
    pub ip: Option<String>,
    /// Its node.
    pub node: Option<String>,
    /// The service account that it runs under.
    pub account: Option<String>,
    /// When it was made.
    pub created: Timestamp,
    /// When it got its node.
    pub scheduled: Option<Timestamp>,
    /// Since when it is ready, if it is.
    pub ready: Option<Timestamp>,
    /// Since when it is not ready any more, though it was: it may have requests, and may come back.
    pub lapsed: Option<Timestamp>,
    /// Since when it is not ready, whether or not it was.
    pub unready: Option<Timestamp>,
    /// When a container of it ended last.
    pub crashed: Option<Timestamp>,
    /// What keeps a container of it from running, in Kubernetes' word.
    pub waits_for: Option<String>,
    /// When it was told to end.
    pub ending: Option<Timestamp>,
    /// Since when Flyball sends it nothing new.
    pub draining: Option<Timestamp>,
    /// Whether it ended by itself: such a pod is replaced and counts for nothing.
    pub over: bool,
    /// Whether it waits for its node, or its containers for their images: the phase `Pending`.
    pub pending: bool,
    /// Whether no process of it runs, as its node says: then nothing is inside.
    pub stopped: bool,
    /// Restarts of its containers.
    pub restarts: i32,
    /// Accelerators that it asks for, by resource.
    pub asks: BTreeMap<String, u32>,
    /// Seconds that it gets to end.
    pub grace_seconds: Option<i64>,
    /// How soon it goes when its workload shrinks.
    pub deletion_cost: Option<i64>,
    /// Since when Flyball keeps node autoscalers from moving it.
    pub protected: Option<Timestamp>,
    /// Whether somebody else told node autoscalers what to do with it.
    pub protected_by_other: bool,
    /// The other pods of its group, where it leads one: then all of this is about the group.
    pub members: Vec<Member>,
    /// How many pods its group should have.
    pub group_size: Option<usize>,
}

/// Another pod of the group that a pod stands for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its address.
    pub ip: Option<String>,
    /// Its node.
    pub node: Option<String>,
}

/// One node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeFacts {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What pods may use of it, whole numbers only.
    pub allocatable: BTreeMap<String, u32>,
    /// Whether pods may come: ready, and not cordoned.
    pub usable: bool,
    /// Whether it will be there.
    pub outlook: Outlook,
    /// When it was made.
    pub created: Timestamp,
}

impl NodeFacts {
    /// Accelerators of a pool that it has, if it is one of the pool's nodes.
    pub fn gpus_of(&self, pool: &PoolSpec) -> Option<u32> {
        let of_pool =
            pool.node_selector.iter().all(|(name, value)| self.labels.get(name) == Some(value));
        of_pool.then(|| self.allocatable.get(&pool.resource_name).copied().unwrap_or(0))
    }
}

impl Facts {
    /// What owners of models must keep to.
    pub(crate) fn rules(&self) -> ValidationRules<'_> {
        let pooled = self.pools.iter().map(|pool| pool.spec.resource_name.as_str());
        ValidationRules {
            accelerators: pooled.chain([GPU]).collect(),
            accounts: &self.engine_accounts,
        }
    }

    /// Whether the node of a pod will be there. If no node answers, it is the API server that hears nobody: then
    /// none is taken for lost.
    pub fn outlook(&self, pod: &PodFacts) -> &Outlook {
        let is_lost = |outlook: &Outlook| matches!(outlook, Outlook::Lost { .. });
        if self.nodes.values().all(|node| is_lost(&node.outlook)) {
            return &Outlook::Stays;
        }
        let nodes = pod.nodes().filter_map(|name| self.nodes.get(name));
        // The worst of them: a group is as good as its weakest.
        let rank = |outlook: &&Outlook| match outlook {
            Outlook::Stays => 0,
            Outlook::Leaves { .. } => 1,
            Outlook::Lost { .. } => 2,
        };
        nodes.map(|node| &node.outlook).max_by_key(rank).unwrap_or(&Outlook::Stays)
    }

    /// The pods of a workload, without those that are over.
    pub fn pods_of<'a>(
        &'a self,
        namespace: &str,
        selector: &LabelSelector,
    ) -> impl Iterator<Item = &'a PodFacts> + use<'a> {
        let selector = Selector::try_from(selector.clone()).ok();
        let pods = self.pods.get(namespace).into_iter().flatten();
        pods.filter(move |pod| {
            !pod.over && selector.as_ref().is_some_and(|selector| selector.matches(&pod.labels))
        })
    }
}

impl PodFacts {
    /// Its node, and those of its group.
    pub fn nodes(&self) -> impl Iterator<Item = &String> {
        self.node.iter().chain(self.members.iter().filter_map(|member| member.node.as_ref()))
    }

    /// What matters of a pod.
    pub fn of(pod: &Pod) -> Self {
        let (spec, status) = (pod.spec.as_ref(), pod.status.as_ref());
        let condition = |name: &str| {
            let conditions = status?.conditions.as_ref()?;
            let one = conditions.iter().find(|one| one.type_ == name && one.status == "True")?;
            one.last_transition_time.as_ref().map(moment)
        };
        let annotation = |name: &str| pod.annotations().get(name);
        let date = |name: &str| {
            let at = annotation(name)?.parse::<jiff::Timestamp>().ok()?;
            Some(moment(&Time(at)))
        };
        let phase = status.and_then(|status| status.phase.as_deref()).unwrap_or_default();
        let containers = status.and_then(|status| status.container_statuses.as_ref());
        Self {
            name: pod.name_any(),
            uid: pod.uid().unwrap_or_default(),
            labels: pod.labels().clone(),
            ip: status.and_then(|status| status.pod_ip.clone()),
            node: spec.and_then(|spec| spec.node_name.clone()),
            account: spec.and_then(|spec| spec.service_account_name.clone()),
            created: pod.creation_timestamp().map_or(Timestamp::from_micros(0), |at| moment(&at)),
            scheduled: condition("PodScheduled"),
            ready: condition("Ready"),
            lapsed: lapsed(pod),
            unready: unready(pod),
            crashed: containers.and_then(|all| all.iter().filter_map(ended).max()),
            waits_for: containers.and_then(|all| all.iter().find_map(waits_for)),
            ending: pod.metadata.deletion_timestamp.as_ref().map(moment),
            draining: date(labels::DRAINING),
            protected: date(labels::PROTECTED),
            protected_by_other: annotation(labels::PROTECTED).is_none()
                && [labels::KARPENTER_KEEPS, labels::AUTOSCALER_EVICTS]
                    .into_iter()
                    .any(|name| annotation(name).is_some()),
            over: matches!(phase, "Succeeded" | "Failed"),
            pending: phase == "Pending",
            stopped: containers.is_some_and(|all| !all.is_empty() && !all.iter().any(runs)),
            restarts: containers
                .map_or(0, |all| all.iter().map(|container| container.restart_count).sum()),
            asks: asks(pod),
            grace_seconds: spec.and_then(|spec| spec.termination_grace_period_seconds),
            deletion_cost: annotation(labels::DELETION_COST).and_then(|cost| cost.parse().ok()),
            members: Vec::new(),
            group_size: annotation(GROUP_SIZE).and_then(|size| size.parse().ok()),
        }
    }
}

impl NodeFacts {
    /// What matters of a node.
    pub fn of(node: &Node) -> Self {
        let status = node.status.as_ref();
        let ready = status
            .and_then(|status| status.conditions.as_ref())
            .is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"));
        let cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false);
        let allocatable = status.and_then(|status| status.allocatable.as_ref());
        let outlook = outlook(node);
        Self {
            labels: node.labels().clone(),
            allocatable: whole(allocatable.into_iter().flatten()),
            usable: ready && !cordoned && outlook == Outlook::Stays,
            outlook,
            created: node.creation_timestamp().map_or(Timestamp::default(), |at| moment(&at)),
        }
    }
}

/// Since when a pod is not ready, if it was. One that never was is not ready since before its containers
/// ran, and the condition does not change while they start.
fn lapsed(pod: &Pod) -> Option<Timestamp> {
    let status = pod.status.as_ref()?;
    let ready = status.conditions.as_ref()?.iter().find(|one| one.type_ == "Ready")?;
    let since = ready.last_transition_time.as_ref().filter(|_| ready.status != "True")?;
    let containers = status.container_statuses.as_ref()?.iter();
    let running = containers.filter_map(|one| one.state.as_ref()?.running.as_ref());
    let began = running.filter_map(|running| running.started_at.as_ref()).max()?;
    (since.0 > began.0).then(|| moment(since))
}

fn unready(pod: &Pod) -> Option<Timestamp> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|one| one.type_ == "Ready" && one.status != "True")?;
    ready.last_transition_time.as_ref().map(moment)
}

/// When a container ended last: the one that runs or waits now is another.
fn ended(container: &ContainerStatus) -> Option<Timestamp> {
    let states = [container.state.as_ref(), container.last_state.as_ref()];
    let ended = states.into_iter().flatten().filter_map(|state| state.terminated.as_ref());
    ended.filter_map(|ended| ended.finished_at.as_ref()).map(moment).max()
}

/// Words that a container says while all is well.
const WELL: [&str; 2] = ["ContainerCreating", "PodInitializing"];

fn waits_for(container: &ContainerStatus) -> Option<String> {
    let reason = container.state.as_ref()?.waiting.as_ref()?.reason.clone()?;
    (!WELL.contains(&&*reason)).then_some(reason)
}

fn runs(container: &ContainerStatus) -> bool {
    container.state.as_ref().is_some_and(|state| state.running.is_some())
}

/// Accelerators that a pod asks for, by resource.
pub(super) fn asks(pod: &Pod) -> BTreeMap<String, u32> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut sum: BTreeMap<String, u32> = BTreeMap::new();
    for container in containers {
        let limits = container.resources.as_ref().and_then(|resources| resources.limits.as_ref());
        for (name, count) in whole(limits.into_iter().flatten()) {
            *sum.entry(name).or_default() += count;
        }
    }
    sum
}

type Quantity = k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// Extended resources, which are whole numbers; memory and CPU time are not of interest.
fn whole<'a>(all: impl Iterator<Item = (&'a String, &'a Quantity)>) -> BTreeMap<String, u32> {
    let counted = |(name, quantity): (&String, &Quantity)| {
        name.contains('/').then(|| Some((name.clone(), quantity.0.parse().ok()?))).flatten()
    };
    all.filter_map(counted).collect()
}
