//! Replicas, marks and costs of one workload.
//!
//! A replica that serves goes in two phases: it is marked, gateways send it nothing new, and once it is
//! seen to be empty it gets the lowest deletion cost and the workload one replica less. A ReplicaSet takes
//! pods that are not ready before any cost, so that nothing is taken away while another pod starts.
//! Where no gateway routes to it there is no first phase: Kubernetes takes the pod out of its Service,
//! and the engine gets its grace period to finish.

use super::Write;
use crate::observe::demand::Signals;
use crate::observe::{PodFacts, Workload, WorkloadKey};
use flyball_core::decision::{Action, Target};
use flyball_core::units::{Micros, Timestamp};
use flyball_resources::model_service::TargetKind;
use std::collections::BTreeSet;

/// A pod that drains goes before one that serves.
const DRAINING_COST: i32 = -1_000;

/// A pod that is empty goes before all.
const LEAVING_COST: i32 = -1_000_000;

/// A pod that does not become ready for this long no longer keeps others from going.
const STUCK: Micros = Micros::from_minutes(10);

pub(super) fn writes(
    key: &WorkloadKey,
    workload: &Workload,
    pods: &[&PodFacts],
    signals: &Signals,
    target: &Target,
    now: Timestamp,
) -> Vec<Write> {
    let there: Vec<&PodFacts> = pods.iter().filter(|pod| pod.ending.is_none()).copied().collect();
    let steps = match key.1 {
        TargetKind::Deployment => Steps::free(&there, signals, target),
        TargetKind::StatefulSet | TargetKind::LeaderWorkerSet => {
            Steps::ordered(&there, signals, target)
        }
    };
    let mut writes = steps.marks(&there, now);
    let to = steps.replicas(workload, &there, target, now);
    if to != workload.replicas {
        writes.push(Write::Scale { workload: key.clone(), from: workload.replicas, to });
    }
    writes
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
    /// Any pod may go.
    fn free(there: &[&PodFacts], signals: &Signals, target: &Target) -> Self {
        let mut steps = Self::default();
        for action in &target.actions {
            let (replica, empty) = match action {
                Action::Start { .. } => continue,
                Action::Drain { replica } => (replica, false),
                Action::Delete { replica } => (replica, true),
            };
            let Some(pod) = there.iter().find(|pod| pod.name == replica.name()) else { continue };
            // One that served and is not ready now is no start that failed: it may still write answers.
            let empty = empty && (pod.lapsed.is_none() || pod.draining.is_some());
            if empty || !signals.in_flight.is_routed(pod) {
                steps.leave.insert(pod.name.clone());
            } else {
                steps.drain.insert(pod.name.clone());
            }
        }
        steps.revived(there, target)
    }

    /// The last must go first: which pod was meant does not matter, only how many.
    fn ordered(there: &[&PodFacts], signals: &Signals, target: &Target) -> Self {
        let mut steps = Self::default();
        let count =
            |wanted: fn(&Action) -> bool| target.actions.iter().filter(|a| wanted(a)).count();
        let drains = count(|action| matches!(action, Action::Drain { .. }));
        let empty: BTreeSet<&str> = target
            .actions
            .iter()
            .filter_map(|action| match action {
                Action::Delete { replica } => Some(replica.name()),
                _ => None,
            })
            .collect();
        let mut last_first: Vec<&&PodFacts> = there.iter().collect();
        last_first.sort_by_key(|pod| std::cmp::Reverse(ordinal(&pod.name)));
        let goes = |pod: &&&&PodFacts| empty.contains(pod.name.as_str());
        steps.leave = last_first.iter().take_while(goes).map(|pod| pod.name.clone()).collect();
        let staying =
            |pod: &&&&PodFacts| pod.draining.is_none() && !steps.leave.contains(&pod.name);
        let chosen: Vec<_> = last_first.iter().filter(staying).take(drains).collect();
        for pod in chosen {
            if signals.in_flight.is_routed(pod) {
                steps.drain.insert(pod.name.clone());
            } else {
                steps.leave.insert(pod.name.clone());
            }
        }
        steps.revived(there, target)
    }

    /// Pods that drain and are wanted again, instead of starting as many anew. One that is empty already
    /// is no exception: it serves at once, and as long as a start is wanted in its place the number does
    /// not fall, so that it would be neither used nor removed.
    fn revived(mut self, there: &[&PodFacts], target: &Target) -> Self {
        let starts = target.actions.iter().filter_map(|action| match action {
            Action::Start { count, .. } => Some(count.get() as usize),
            _ => None,
        });
        let mut draining: Vec<&&PodFacts> =
            there.iter().filter(|pod| pod.draining.is_some() && pod.ready.is_some()).collect();
        draining.sort_by_key(|pod| self.leave.contains(&pod.name));
        self.revive = draining.into_iter().take(starts.sum()).map(|pod| pod.name.clone()).collect();
        self.leave.retain(|pod| !self.revive.contains(pod));
        self
    }

    fn marks(&self, there: &[&PodFacts], now: Timestamp) -> Vec<Write> {
        let mut writes = Vec::new();
        for pod in there {
            let name = || pod.name.clone();
            let cost = |cost: i32| {
                (pod.deletion_cost != Some(i64::from(cost)))
                    .then(|| Write::Cost { pod: name(), cost })
            };
            if self.revive.contains(&pod.name) {
                writes.push(Write::Unmark { pod: name() });
            } else if self.leave.contains(&pod.name) {
                writes.extend(cost(LEAVING_COST));
            } else if self.drain.contains(&pod.name) && pod.draining.is_none() {
                writes.push(Write::Mark { pod: name(), since: now });
                writes.extend(cost(DRAINING_COST));
            }
        }
        writes
    }

    /// What the workload's number must be: pods that drain count in it until they are gone.
    fn replicas(
        &self,
        workload: &Workload,
        there: &[&PodFacts],
        target: &Target,
        now: Timestamp,
    ) -> u32 {
        let drains = |pod: &&&PodFacts| {
            (pod.draining.is_some() || self.drain.contains(&pod.name))
                && !self.leave.contains(&pod.name)
                && !self.revive.contains(&pod.name)
        };
        let draining = count(there.iter().filter(drains).count());
        let wanted = target.replicas.get().saturating_add(draining);
        if wanted >= workload.replicas {
            return wanted;
        }
        // Nobody goes whom the decision does not name.
        let least = count(there.len().saturating_sub(self.leave.len()));
        if self.waits_for_another(there, now) {
            return workload.replicas;
        }
        wanted.max(least).min(workload.replicas)
    }

    /// Whether a pod that is to stay is not ready and would be taken instead of the one that was chosen.
    fn waits_for_another(&self, there: &[&PodFacts], now: Timestamp) -> bool {
        let leaves_ready =
            there.iter().any(|pod| pod.ready.is_some() && self.leave.contains(&pod.name));
        let starts = |pod: &&&PodFacts| {
            pod.ready.is_none()
                && !self.leave.contains(&pod.name)
                && now.since(pod.created).is_none_or(|age| age < STUCK)
        };
        leaves_ready && there.iter().any(|pod| starts(&pod))
    }
}

/// The number behind the last dash.
fn ordinal(name: &str) -> u32 {
    name.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}
