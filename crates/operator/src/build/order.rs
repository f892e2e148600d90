//! Whom Kubernetes removes when a workload shrinks. Pure.
//!
//! A ReplicaSet goes by its own order (`ActivePodsWithRanks` in Kubernetes' `controller_utils.go`): without
//! a node first, then the phase `Pending`, then not ready, then by deletion cost; what follows (how many share
//! a node, ages, restarts) is taken for a draw. While a Deployment is rolled out it has several ReplicaSets, and
//! how many each loses is not known. StatefulSets and LeaderWorkerSets lose their last.

use crate::observe::PodFacts;
use flyball_resources::model_service::TargetKind;
use std::collections::{BTreeMap, BTreeSet};

/// On the pods of a Deployment: their ReplicaSet. Kubernetes' own.
const REPLICA_SET: &str = "pod-template-hash";

/// The pods of a workload in the order in which they go: of each part the first, and of each rank anyone.
pub(super) struct Order<'a> {
    parts: Vec<Vec<Rank<'a>>>,
}

/// Pods among which Kubernetes may choose.
type Rank<'a> = Vec<&'a str>;

/// What they have in common: their place from the last, whether they have a node, run and are ready, and their
/// deletion cost.
type Key = (u32, bool, bool, bool, i64);

impl<'a> Order<'a> {
    /// Of pods that are not told to end, where each has this deletion cost.
    pub(super) fn of(
        kind: TargetKind,
        pods: &[&'a PodFacts],
        cost: impl Fn(&PodFacts) -> i64,
    ) -> Self {
        let mut parts: BTreeMap<&str, BTreeMap<Key, Rank<'a>>> = BTreeMap::new();
        for pod in pods {
            let free = kind == TargetKind::Deployment;
            let part = pod.labels.get(REPLICA_SET).filter(|_| free).map_or("", String::as_str);
            let rank = if free {
                (0, pod.node.is_some(), !pod.pending, pod.ready.is_some(), cost(pod))
            } else {
                (u32::MAX - ordinal(&pod.name), false, false, false, 0)
            };
            parts.entry(part).or_default().entry(rank).or_default().push(&pod.name);
        }
        let ranks = |part: BTreeMap<_, Rank<'a>>| part.into_values().collect();
        Self { parts: parts.into_values().map(ranks).collect() }
    }

    /// How many can be removed if all whom that could hit may go.
    pub(super) fn most(&self, may_go: impl Fn(&str) -> bool) -> usize {
        let safe = self.parts.iter().map(|part| {
            let ranks = part.iter().take_while(|rank| rank.iter().all(|pod| may_go(pod)));
            let safe: usize = ranks.map(Vec::len).sum();
            (safe, safe == part.iter().map(Vec::len).sum::<usize>())
        });
        let safe: Vec<(usize, bool)> = safe.collect();
        let all = safe.iter().map(|(count, _)| count).sum();
        let ends = safe.iter().filter(|(_, whole)| !whole).map(|(count, _)| *count);
        ends.min().map_or(all, |least| least.min(all))
    }

    /// Everybody whom the removal of so many could hit.
    pub(super) fn first(&self, count: usize) -> BTreeSet<&'a str> {
        let mut hit = BTreeSet::new();
        for part in &self.parts {
            let mut left = count;
            for rank in part {
                if left == 0 {
                    break;
                }
                hit.extend(rank.iter().copied());
                left = left.saturating_sub(rank.len());
            }
        }
        hit
    }
}

/// The number behind the last dash.
pub(super) fn ordinal(name: &str) -> u32 {
    name.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, ready: bool) -> PodFacts {
        let ready = ready.then(Default::default);
        PodFacts { name: name.to_owned(), node: Some("n".to_owned()), ready, ..PodFacts::default() }
    }

    fn of_set(set: &str, pod: PodFacts) -> PodFacts {
        PodFacts { labels: [(REPLICA_SET.to_owned(), set.to_owned())].into(), ..pod }
    }

    fn cost(pod: &PodFacts) -> i64 {
        pod.deletion_cost.unwrap_or(0)
    }

    #[test]
    fn what_is_not_ready_goes_before_any_cost() {
        let cheap = PodFacts { deletion_cost: Some(-5), ..pod("cheap", true) };
        let (starts, other) = (pod("starts", false), pod("other", true));
        let order = Order::of(TargetKind::Deployment, &[&cheap, &starts, &other], cost);
        assert_eq!(order.first(1), ["starts"].into());
        assert_eq!(order.first(2), ["cheap", "starts"].into());
        assert_eq!(order.most(|pod| pod == "cheap"), 0);
        assert_eq!(order.most(|pod| pod != "other"), 2);
        let order = Order::of(TargetKind::Deployment, &[&cheap, &other], cost);
        assert_eq!(order.most(|pod| pod == "cheap"), 1);
    }

    #[test]
    fn a_draw_may_hit_anyone_in_it() {
        let (a, b) = (pod("a", true), pod("b", true));
        let order = Order::of(TargetKind::Deployment, &[&a, &b], cost);
        assert_eq!(order.first(1), ["a", "b"].into());
        assert_eq!(order.most(|pod| pod == "a"), 0);
        assert_eq!(order.most(|_| true), 2);
    }

    #[test]
    fn during_a_rollout_every_replica_set_may_lose_as_many() {
        let leaves = PodFacts { deletion_cost: Some(-5), ..of_set("old", pod("leaves", true)) };
        let (old, new) = (of_set("old", pod("old", true)), of_set("new", pod("new", true)));
        let order = Order::of(TargetKind::Deployment, &[&leaves, &old, &new], cost);
        assert_eq!(order.first(1), ["leaves", "new"].into());
        assert_eq!(order.most(|pod| pod == "leaves"), 0);
        assert_eq!(order.most(|pod| pod != "old"), 1);
    }

    #[test]
    fn an_ordered_workload_loses_its_last() {
        let pods = ["m-2", "m-10", "m-9"].map(|name| pod(name, true));
        let pods: Vec<&PodFacts> = pods.iter().collect();
        let order = Order::of(TargetKind::StatefulSet, &pods, cost);
        assert_eq!(order.first(2), ["m-10", "m-9"].into());
        assert_eq!(order.most(|pod| pod != "m-2"), 2);
        assert_eq!(order.most(|pod| pod != "m-10"), 0);
    }
}
