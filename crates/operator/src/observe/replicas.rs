//! Pods as replicas: where each is in its life.

use super::facts::{Facts, PodFacts};
use super::in_flight::InFlight;
use flyball_core::ids::{NodeName, ReplicaId};
use flyball_core::snapshot::{Observed, Purchase, Replica, ReplicaState};
use flyball_core::units::{Micros, Requests, Timestamp};
use std::collections::BTreeMap;

/// A node says with this label how it is paid for; Karpenter's, which others took over.
const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";

/// The replica that a pod stands for.
pub(super) fn replica(
    facts: &Facts,
    namespace: &str,
    pod: &PodFacts,
    in_flight: &InFlight,
    (now, max_age): (Timestamp, Micros),
) -> Option<(ReplicaId, Replica)> {
    let (state, since) = state(pod);
    let node = pod.node.as_ref().and_then(|name| facts.nodes.get(name));
    let replica = Replica {
        state,
        since,
        in_flight: busy(pod, state, in_flight.closed(namespace, pod), now, max_age),
        nodes: pod.node.iter().filter_map(|name| NodeName::new(name).ok()).collect(),
        purchase: node.map(|node| purchase(&node.labels)),
    };
    Some((ReplicaId::new(namespace, &pod.name).ok()?, replica))
}

/// How a node with these labels is paid for.
pub(crate) fn purchase(labels: &BTreeMap<String, String>) -> Purchase {
    match labels.get(CAPACITY_TYPE).map(String::as_str) {
        Some("spot") => Purchase::Spot,
        Some("reserved") => Purchase::Reserved,
        _ => Purchase::OnDemand,
    }
}

/// Where a pod is in its life, and since when.
pub(super) fn state(pod: &PodFacts) -> (ReplicaState, Timestamp) {
    if let Some(since) = [pod.draining, pod.ending].into_iter().flatten().min() {
        return (ReplicaState::Draining, since);
    }
    match (pod.ready, &pod.node) {
        (Some(since), _) => (ReplicaState::Ready, since),
        (None, Some(_)) => {
            let since = pod.lapsed.or(pod.scheduled).unwrap_or(pod.created);
            (ReplicaState::Starting, since)
        }
        (None, None) => (ReplicaState::Pending, pod.created),
    }
}

/// Requests inside a pod. A pod that never served has none, which takes no metric to know; one that served
/// and is not ready now may still write answers. A count from before the drain says nothing about who
/// came in between.
fn busy(
    pod: &PodFacts,
    state: ReplicaState,
    seen: Option<(f64, Timestamp)>,
    now: Timestamp,
    max_age: Micros,
) -> Observed<Requests> {
    let served = pod.lapsed.is_some() || pod.restarts > 0;
    if matches!(state, ReplicaState::Pending | ReplicaState::Starting) && !served {
        return Observed::Fresh { value: Requests::ZERO, at: now };
    }
    let Some((value, at)) = seen else { return Observed::Missing };
    if pod.draining.is_some_and(|since| at <= since) {
        return Observed::Missing;
    }
    Observed::judge(Requests::from_sample(value), at, now, max_age)
}
