//! Replicas, marks and costs of one workload.
//!
//! A replica that served goes in two phases: it is marked, gateways send it nothing new, and once it may go
//! (it is seen to be empty, or nobody could see it) it gets the lowest deletion cost and the workload one
//! replica less. Kubernetes chooses whom to remove, so that the number falls only as far as everybody whom
//! it could choose may go.

use super::Write;
use super::order::{Order, ordinal};
use crate::observe::{PodFacts, Workload, WorkloadKey};
use flyball_core::decision::{Action, Target};
use flyball_core::invariants::Holding;
use flyball_core::units::{Micros, Timestamp};
use flyball_resources::model_service::TargetKind;
use std::collections::{BTreeMap, BTreeSet};

/// A pod that drains goes before one that serves.
const DRAINING_COST: i32 = -1_000;

/// A pod that is empty goes before all.
const LEAVING_COST: i32 = -1_000_000;

/// A pod that does not become ready for this long no longer keeps others from going.
const STUCK: Micros = Micros::from_minutes(10);

/// One workload, with what is known of its pods.
pub(super) struct Scene<'a> {
    pub(super) key: &'a WorkloadKey,
    pub(super) workload: &'a Workload,
    /// Its pods, without those that are told to end.
    pub(super) pods: Vec<&'a PodFacts>,
    /// Whether each may be taken away.
    pub(super) holds: &'a BTreeMap<String, Holding>,
    /// Those whose node is lost or will be taken away.
    gone: BTreeSet<&'a str>,
    pub(super) now: Timestamp,
}

impl<'a> Scene<'a> {
    /// Of all pods of a workload.
    pub(super) fn of(
        key: &'a WorkloadKey,
        workload: &'a Workload,
        pods: impl Iterator<Item = &'a PodFacts>,
        holds: &'a BTreeMap<String, Holding>,
        now: Timestamp,
    ) -> Self {
        let pods = pods.filter(|pod| pod.ending.is_none()).collect();
        Self { key, workload, pods, holds, gone: BTreeSet::new(), now }
    }

    /// These pods are on nodes that are lost or will be taken away.
    pub(super) fn without(mut self, gone: &'a BTreeSet<String>) -> Self {
        self.gone = gone.iter().map(String::as_str).collect();
        self
    }

    /// What is to be written so that it becomes as the target says.
    pub(super) fn writes(&self, target: &Target) -> Vec<Write> {
        let steps = match self.key.1 {
            TargetKind::Deployment => self.free(target),
            TargetKind::StatefulSet | TargetKind::LeaderWorkerSet => self.ordered(target),
        };
        let steps = self.revived(steps, target);
        let mut writes = self.marks(&steps);
        writes.extend(self.replaced(target));
        let (from, to) = (self.workload.replicas, self.replicas(&steps, target));
        if to != from {
            writes.push(Write::Scale { workload: self.key.clone(), from, to });
        }
        writes
    }

    /// Whether a pod may be taken away. Of one that was not looked at nothing is known.
    pub(super) fn holding(&self, pod: &str) -> Holding {
        self.holds.get(pod).copied().unwrap_or(Holding::MayHold)
    }

    /// Any pod may go.
    fn free(&self, target: &Target) -> Steps {
        let mut steps = Steps::default();
        for pod in &self.pods {
            let named = target.actions.iter().filter_map(goes).any(|name| name == pod.name);
            let left = self.holding(&pod.name) == Holding::LeftToItsGrace;
            if !named && !left {
                continue;
            }
            let goes = self.holding(&pod.name).may_go();
            let place = if goes { &mut steps.leave } else { &mut steps.drain };
            place.insert(pod.name.clone());
        }
        steps
    }

    /// The last must go first: which pod was meant does not matter, only how many.
    fn ordered(&self, target: &Target) -> Steps {
        let mut last_first = self.pods.clone();
        last_first.sort_by_key(|pod| std::cmp::Reverse(ordinal(&pod.name)));
        let stays = |pod: &&PodFacts| pod.draining.is_none();
        let named =
            |name: &str| self.pods.iter().copied().filter(stays).any(|pod| pod.name == name);
        let count = target.actions.iter().filter_map(goes).filter(|name| named(name)).count();
        let chosen: BTreeSet<&str> =
            last_first.iter().copied().filter(stays).take(count).map(|pod| &*pod.name).collect();
        let leaves = |pod: &&&PodFacts| {
            (pod.draining.is_some() || chosen.contains(&*pod.name))
                && self.holding(&pod.name).may_go()
        };
        let leave = last_first.iter().take_while(leaves).map(|pod| pod.name.clone()).collect();
        let drain = chosen.into_iter().filter(|pod| !self.holding(pod).may_go());
        Steps { drain: drain.map(str::to_owned).collect(), leave, ..Steps::default() }
    }

    /// Pods that drain and are wanted again, instead of starting as many anew. One that is empty already
    /// is no exception: it serves at once, and as long as a start is wanted in its place the number does
    /// not fall, so that it would be neither used nor removed.
    fn revived(&self, mut steps: Steps, target: &Target) -> Steps {
        let starts = target.actions.iter().filter_map(|action| match action {
            Action::Start { count, .. } => Some(count.get() as usize),
            _ => None,
        });
        let serves = |pod: &&&PodFacts| {
            pod.draining.is_some() && pod.ready.is_some() && !self.gone.contains(&*pod.name)
        };
        let mut draining: Vec<_> = self.pods.iter().filter(serves).collect();
        draining.sort_by_key(|pod| steps.leave.contains(&pod.name));
        steps.revive =
            draining.into_iter().take(starts.sum()).map(|pod| pod.name.clone()).collect();
        steps.leave.retain(|pod| !steps.revive.contains(pod));
        steps
    }

    /// Pods that do not come up, and in which nothing is.
    fn replaced(&self, target: &Target) -> impl Iterator<Item = Write> {
        let named = target.actions.iter().filter_map(|action| match action {
            Action::Replace { replica } => Some(replica.name()),
            _ => None,
        });
        let found = named.filter_map(|name| self.pods.iter().find(|pod| pod.name == name));
        let safe = found.filter(|pod| self.holding(&pod.name).may_go());
        safe.map(|pod| Write::Replace { pod: pod.name.clone(), uid: pod.uid.clone() })
    }

    fn marks(&self, steps: &Steps) -> Vec<Write> {
        let mut writes = Vec::new();
        for pod in &self.pods {
            let name = || pod.name.clone();
            let draining = steps.drain.contains(&pod.name) || pod.draining.is_some();
            if steps.revive.contains(&pod.name) {
                writes.push(Write::Unmark { pod: name() });
                continue;
            }
            if steps.drain.contains(&pod.name) && pod.draining.is_none() {
                writes.push(Write::Mark { pod: name(), since: self.now });
            }
            let cost = steps.cost(pod);
            if (draining || steps.leave.contains(&pod.name))
                && pod.deletion_cost != Some(i64::from(cost))
            {
                writes.push(Write::Cost { pod: name(), cost });
            }
        }
        writes
    }

    /// What the workload's number must be: pods that drain, and those that others make up for, count in it until
    /// they are gone.
    fn replicas(&self, steps: &Steps, target: &Target) -> u32 {
        let drains = |pod: &&&PodFacts| {
            (pod.draining.is_some() || steps.drain.contains(&pod.name))
                && !steps.leave.contains(&pod.name)
                && !steps.revive.contains(&pod.name)
        };
        let draining = count(self.pods.iter().filter(drains).count());
        let beside = target.spares.get().saturating_add(draining);
        let desired = target.replicas.get().saturating_add(beside);
        if desired >= self.workload.replicas {
            return desired;
        }
        let order = Order::of(self.key.1, &self.pods, |pod| steps.cost_now(pod));
        let most = order.most(|pod| steps.leave.contains(pod) || self.is_stuck(pod));
        // Nobody goes whom the decision does not name.
        let most = most.min(steps.leave.len());
        let least = count(self.pods.len() - most);
        desired.max(least).min(self.workload.replicas)
    }

    /// Whether a pod never served and has had its time: it may go in place of another.
    fn is_stuck(&self, name: &str) -> bool {
        let old = |pod: &&&PodFacts| {
            pod.name == name && self.now.since(pod.created).is_some_and(|age| age >= STUCK)
        };
        self.holding(name) == Holding::NeverServed && self.pods.iter().any(|pod| old(&pod))
    }
}

/// What becomes of pods, by name.
#[derive(Debug, Default)]
struct Steps {
    /// To be marked.
    drain: BTreeSet<String>,
    /// Marked, and wanted again.
    revive: BTreeSet<String>,
    /// To be removed.
    leave: BTreeSet<String>,
}

impl Steps {
    /// How soon a pod that does not stay is to go.
    fn cost(&self, pod: &PodFacts) -> i32 {
        if self.leave.contains(&pod.name) { LEAVING_COST } else { DRAINING_COST }
    }

    /// How soon a pod goes once the marks are made.
    fn cost_now(&self, pod: &PodFacts) -> i64 {
        if self.revive.contains(&pod.name) {
            return 0;
        }
        let goes = self.leave.contains(&pod.name)
            || self.drain.contains(&pod.name)
            || pod.draining.is_some();
        if goes { i64::from(self.cost(pod)) } else { pod.deletion_cost.unwrap_or(0) }
    }
}

/// The replica that an action takes away.
fn goes(action: &Action) -> Option<&str> {
    match action {
        Action::Start { .. } | Action::Replace { .. } => None,
        Action::Drain { replica } | Action::Delete { replica } => Some(replica.name()),
    }
}

fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}
