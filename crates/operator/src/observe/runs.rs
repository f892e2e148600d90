//! What the API server said of training runs, at one moment: their pods, the nodes, and who uses those.

use super::facts::{NodeFacts, PodFacts, asks};
use super::jobs::{GangKey, JobWatches, gang_of};
use super::watch::Watches;
use flyball_resources::{Pool, TrainingRun};
use kube::ResourceExt as _;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Everything about training runs at one moment.
#[derive(Clone, Debug, Default)]
pub struct RunFacts {
    /// Pools of accelerators.
    pub pools: Vec<Arc<Pool>>,
    /// Pods by the workload that they belong to.
    pub gangs: BTreeMap<GangKey, Vec<PodFacts>>,
    /// Nodes by name.
    pub nodes: BTreeMap<String, NodeFacts>,
    /// What pods take of each node, by node and resource.
    pub taken: BTreeMap<String, BTreeMap<String, u32>>,
    /// Whether a person stopped everything.
    pub frozen: bool,
}

impl Watches {
    /// Waits until TrainingRuns, and what they run on, were listed once.
    pub async fn runs_listed(&self) {
        self.listed().await;
        self.runs_mirror().listed().await;
    }

    /// TrainingRuns as they are now.
    pub fn runs(&self) -> Vec<Arc<TrainingRun>> {
        self.runs_mirror().state()
    }

    /// Workloads that train.
    pub fn job_watches(&self) -> JobWatches {
        let (client, namespaces, failures) = self.whence();
        JobWatches::new(client, namespaces, failures)
    }

    /// What else is known about these workloads.
    pub fn run_facts(&self, wanted: &BTreeSet<GangKey>) -> RunFacts {
        let (pools, nodes, frozen) = self.places();
        let mut facts = RunFacts { pools, nodes, frozen, ..RunFacts::default() };
        self.every_pod(|pod| {
            let namespace = pod.namespace().unwrap_or_default();
            let gang = gang_of(&namespace, pod.labels());
            if let Some(key) = gang.filter(|key| wanted.contains(key)) {
                facts.gangs.entry(key).or_default().push(PodFacts::of(pod));
            }
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
            let is_over = matches!(phase, Some("Succeeded" | "Failed"));
            if let Some(node) = node.filter(|_| !is_over) {
                let taken = facts.taken.entry(node.clone()).or_default();
                for (resource, count) in asks(pod) {
                    *taken.entry(resource).or_default() += count;
                }
            }
        });
        for pods in facts.gangs.values_mut() {
            pods.sort_by(|a, b| a.name.cmp(&b.name));
        }
        facts
    }
}
