//! The pods of a run, and the machines that they are on. Pure.

use super::marks::ZONE;
use super::workload::gang_key;
use crate::observe::{NodeFacts, Outlook, PodFacts, RunFacts, purchase};
use flyball_core::snapshot::Purchase;
use flyball_core::units::Timestamp;
use flyball_resources::TrainingRun;
use std::collections::{BTreeMap, BTreeSet};

/// On pods of a JobSet: the place of its Job among all of the set. That project's own.
const JOB_PLACE: &str = "jobset.sigs.k8s.io/job-global-index";

/// On pods of an indexed Job: its place. Kubernetes' own.
const POD_PLACE: &str = "batch.kubernetes.io/job-completion-index";

/// A node of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct GangNode {
    /// How it is paid for.
    pub purchase: Purchase,
    /// Its zone.
    pub zone: Option<String>,
    /// Whether it will be there.
    pub outlook: Outlook,
}

/// How many pods a run has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GangPods {
    /// It makes steps with so many.
    pub wanted: u32,
    /// So many have a node, and cost something.
    pub placed: u32,
    /// So many run.
    pub running: u32,
}

/// The pods of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gang {
    /// All of them, those of rank 0 first; also those that are over.
    pub pods: Vec<PodFacts>,
    /// The nodes of those that are not over.
    pub nodes: BTreeMap<String, GangNode>,
}

impl Gang {
    /// The pods of a run as they are.
    pub fn of(run: &TrainingRun, facts: &RunFacts) -> Self {
        let mut pods = facts.gangs.get(&gang_key(run)).cloned().unwrap_or_default();
        // Of several starts the newest comes first.
        pods.sort_by_key(|pod| (place(pod), pod.over, std::cmp::Reverse(pod.created)));
        let held = pods.iter().filter(|pod| !pod.over).filter_map(|pod| pod.node.as_ref());
        let node = |name: &String| {
            let facts = facts.nodes.get(name);
            let labels = facts.map(|node| &node.labels);
            let node = GangNode {
                purchase: labels.map_or(Purchase::OnDemand, purchase),
                zone: labels.and_then(|labels| labels.get(ZONE).cloned()),
                outlook: facts.map_or(Outlook::Lost { since: None }, outlook_of),
            };
            (name.clone(), node)
        };
        let nodes = held.map(node).collect();
        Self { pods, nodes }
    }

    /// Pods that hold machines.
    pub fn holding(&self) -> impl Iterator<Item = &PodFacts> {
        self.pods.iter().filter(|pod| !pod.over && pod.node.is_some())
    }

    /// The pod of rank 0, if it runs.
    pub fn lead(&self) -> Option<&PodFacts> {
        let first = self.pods.first()?;
        let runs = !first.over && !first.pending && first.ending.is_none() && first.ip.is_some();
        runs.then_some(first)
    }

    /// The pod of rank 0, whether or not it still runs.
    pub fn last_lead(&self) -> Option<&PodFacts> {
        self.pods.first().filter(|pod| !pod.pending)
    }

    /// Since when it holds machines.
    pub fn since(&self) -> Option<Timestamp> {
        self.holding().map(|pod| pod.scheduled.unwrap_or(pod.created)).min()
    }

    /// Accelerators of this name that its pods hold.
    pub fn gpus(&self, resource: &str) -> u32 {
        self.holding().map(|pod| pod.asks.get(resource).copied().unwrap_or(0)).sum()
    }

    /// How many there are where so many are wanted.
    pub fn count(&self, wanted: u32) -> GangPods {
        let count = |all: usize| u32::try_from(all).unwrap_or(u32::MAX);
        GangPods {
            wanted,
            placed: count(self.holding().count()),
            running: count(self.holding().filter(|pod| !pod.pending).count()),
        }
    }

    /// How its nodes are paid for, if all are alike.
    pub fn purchase(&self) -> Option<Purchase> {
        one(self.nodes.values().map(|node| node.purchase))
    }

    /// The zone of its nodes, if it is one.
    pub fn zone(&self) -> Option<String> {
        one(self.nodes.values().map(|node| node.zone.clone())).flatten()
    }
}

fn outlook_of(node: &NodeFacts) -> Outlook {
    node.outlook.clone()
}

/// The value that all have.
fn one<T: Ord>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut all: BTreeSet<T> = values.collect();
    let first = all.pop_first()?;
    all.is_empty().then_some(first)
}

fn place(pod: &PodFacts) -> (u32, u32) {
    let number = |label: &str| pod.labels.get(label).and_then(|text| text.parse().ok());
    (number(JOB_PLACE).unwrap_or(0), number(POD_PLACE).unwrap_or(0))
}
