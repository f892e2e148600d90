//! Pods as replicas: where each is in its life.

use super::facts::{Facts, PodFacts};
use super::in_flight::{InFlight, Inside, Side};
use flyball_core::ids::{NodeName, ReplicaId};
use flyball_core::invariants::Holding;
use flyball_core::snapshot::{Observed, Purchase, Replica, ReplicaState};
use flyball_core::units::{Micros, Requests, Timestamp};
use flyball_resources::rfc3339;
use std::collections::BTreeMap;

/// A node says with this label how it is paid for; Karpenter's, which others took over.
const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";

/// A pod that others than gateways send to never is empty for sure. If it has drained for so long, what it
/// still has came lately, and ends within its grace period like that of any pod that Kubernetes ends.
const LEFT_TO_ITS_GRACE: Micros = Micros::from_minutes(10);

/// A drain that takes longer than this is worth a word.
const LONG_DRAIN: Micros = Micros::from_minutes(2);

/// A pod, with what is known of what is inside.
pub(super) struct Seen<'a> {
    pub(super) pod: &'a PodFacts,
    pub(super) inside: Inside,
    /// When it was looked at, and how old a signal may be.
    pub(super) time: (Timestamp, Micros),
}

impl Seen<'_> {
    /// The replica that the pod stands for.
    pub(super) fn replica(&self, facts: &Facts, namespace: &str) -> Option<(ReplicaId, Replica)> {
        let pod = self.pod;
        let (state, since) = state(pod);
        let node = pod.node.as_ref().and_then(|name| facts.nodes.get(name));
        let replica = Replica {
            state,
            since,
            in_flight: self.in_flight(),
            nodes: pod.node.iter().filter_map(|name| NodeName::new(name).ok()).collect(),
            purchase: node.map(|node| purchase(&node.labels)),
        };
        Some((ReplicaId::new(namespace, &pod.name).ok()?, replica))
    }

    /// Whether the pod may be taken away. `cuts`: its settings are known to end it before its requests are
    /// answered.
    pub(super) fn holding(&self, cuts: bool) -> Holding {
        let Some(mark) = self.pod.draining else {
            return if self.never_served() { Holding::NeverServed } else { Holding::MayHold };
        };
        if self.in_flight().fresh().is_some_and(|count| count.is_zero()) {
            return Holding::Empty;
        }
        let (now, max_age) = self.time;
        let drained = now.since(mark).is_some_and(|age| age >= LEFT_TO_ITS_GRACE);
        let left = match (self.inside.gateways, self.inside.engine) {
            // Nobody can ever tell.
            (Side::Nobody, Side::Nobody) => true,
            // Clients that go around gateways, or an engine that does not answer any more.
            (Side::Nobody, Side::Count(_, at)) => drained && !cuts && now.apart(at) <= max_age,
            // It is out of its Service, and nobody new comes.
            (Side::Nobody, Side::Unknown) => drained && !cuts && self.pod.ready.is_none(),
            (Side::Count(routed, _), Side::Count(..) | Side::Unknown) => {
                drained && !cuts && routed <= 0.0
            }
            _ => false,
        };
        if left { Holding::LeftToItsGrace } else { Holding::MayHold }
    }

    /// What it waits for, if it drains for longer than that usually takes and may not go.
    pub(super) fn waits_for(&self, in_flight: &InFlight, cuts: bool) -> Option<String> {
        let mark = self.pod.draining?;
        let long = self.time.0.since(mark).is_some_and(|age| age >= LONG_DRAIN);
        if !long || self.holding(cuts).may_go() {
            return None;
        }
        let why = match (self.inside.gateways, self.inside.engine) {
            (Side::Unknown, _) => in_flight.silent_since(mark).map_or_else(
                || "gateways still send to it, or have not all come".to_owned(),
                |gateway| format!("gateway {gateway} has not reported since"),
            ),
            (Side::Count(count, _), _) if count > 0.0 => "gateways have requests in it".to_owned(),
            (_, Side::Count(..)) => "its engine has requests".to_owned(),
            (_, Side::Unknown | Side::Nobody) => "its engine was not seen since".to_owned(),
        };
        Some(format!("pod {} drains since {}: {why}", self.pod.name, rfc3339(mark)))
    }

    /// Requests inside. One that never served, or in which nothing runs, has none, which takes no metric to
    /// know; one that served and is not ready now may still write answers.
    fn in_flight(&self) -> Observed<Requests> {
        let (now, max_age) = self.time;
        if self.pod.stopped || self.never_served() {
            return Observed::Fresh { value: Requests::ZERO, at: now };
        }
        let drains = self.pod.draining.is_some();
        let seen = if drains { self.inside.count() } else { self.inside.at_least() };
        let Some((value, at)) = seen else { return Observed::Missing };
        Observed::judge(Requests::from_sample(value), at, now, max_age)
    }

    /// Whether it has not been ready since its processes began.
    fn never_served(&self) -> bool {
        let pod = self.pod;
        let (ready, lapsed) = (pod.ready.is_some(), pod.lapsed.is_some());
        !ready && !lapsed && pod.draining.is_none() && pod.ending.is_none()
    }
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
