//! Pods as replicas: where each is in its life.

use super::facts::{Facts, PodFacts};
use super::in_flight::{InFlight, Inside, Side};
use super::nodes::Outlook;
use flyball_core::ids::{NodeName, ReplicaId};
use flyball_core::invariants::Holding;
use flyball_core::reason::Reason;
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

/// What is wrong with a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaTrouble {
    /// Of what kind.
    pub reason: Reason,
    /// In words, with the names of pod and node.
    pub text: String,
}

impl ReplicaTrouble {
    /// A replica is slower than the others.
    pub(super) fn slow(facts: &Facts, replica: &ReplicaId) -> Self {
        let pods = facts.pods.get(replica.namespace().as_str()).into_iter().flatten();
        let pod = pods.into_iter().find(|pod| pod.name == replica.name());
        let node = pod.and_then(|pod| pod.node.as_deref()).unwrap_or("none");
        let text = format!(
            "pod {} on node {node} is clearly slower than the others and counts as less than one: \
             delete it to replace it",
            replica.name()
        );
        Self { reason: Reason::ReplicaSlow, text }
    }
}

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
        let (state, since) = state(pod, facts.outlook(pod), self.time.0);
        let node = pod.node.as_ref().and_then(|name| facts.nodes.get(name));
        let replica = Replica {
            state,
            since,
            in_flight: self.in_flight(),
            nodes: pod.nodes().filter_map(|name| NodeName::new(name).ok()).collect(),
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
                || "gateways still send to it, or not all have connected".to_owned(),
                |gateway| format!("gateway {gateway} has not reported since"),
            ),
            (Side::Count(count, _), _) if count > 0.0 => "gateways have requests in it".to_owned(),
            (_, Side::Count(..)) => "its engine has requests".to_owned(),
            (_, Side::Unknown | Side::Nobody) => "its engine was not observed since".to_owned(),
        };
        Some(format!("pod {} has been draining since {}: {why}", self.pod.name, rfc3339(mark)))
    }

    /// What is wrong with it, if it does not serve and should, or will not for long. A start that takes longer
    /// than `slow` is wrong.
    pub(super) fn trouble(&self, facts: &Facts, slow: Micros) -> Option<ReplicaTrouble> {
        let pod = self.pod;
        let (state, since) = state(pod, facts.outlook(pod), self.time.0);
        let is_slow = self.time.0.since(since).is_some_and(|age| age > slow);
        let node = pod.node.as_deref().unwrap_or("none");
        let (reason, what) = match (state, facts.outlook(pod)) {
            (ReplicaState::Failed, _) => {
                let why = pod.waits_for.as_deref().unwrap_or("it crashes repeatedly");
                let what = format!("does not start: {why}, {} restarts", pod.restarts);
                (Reason::ReplicaFailed, what)
            }
            (ReplicaState::Starting, _) if is_slow => {
                let what = format!("has been starting since {} and is not ready", rfc3339(since));
                (Reason::ReplicaFailed, what)
            }
            (ReplicaState::Unready, _) => (Reason::ReplicaFailed, "is no longer ready".to_owned()),
            (ReplicaState::Lost | ReplicaState::Leaving, Outlook::Leaves { taint, .. }) => {
                (Reason::NodeLost, format!("is on a node that will be removed ({taint})"))
            }
            (ReplicaState::Lost, _) => {
                (Reason::NodeLost, "is on a node that does not answer".to_owned())
            }
            _ => return None,
        };
        Some(ReplicaTrouble { reason, text: format!("pod {} on node {node} {what}", pod.name) })
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

/// A container that ended so lately ends again and again: Kubernetes waits at most five minutes in between.
const CRASHES: Micros = Micros::from_minutes(10);

/// The end by which a pod became unready and the condition that says so are this close; a later end is another.
const SAME_END: Micros = Micros::from_seconds(10);

/// A container that lacks something, as an image, may get it within this time.
const LACKS: Micros = Micros::from_minutes(2);

/// Where a pod is in its life, and since when.
pub(super) fn state(
    pod: &PodFacts,
    outlook: &Outlook,
    now: Timestamp,
) -> (ReplicaState, Timestamp) {
    if let Some(since) = [pod.draining, pod.ending].into_iter().flatten().min() {
        return (ReplicaState::Draining, since);
    }
    let since = |since: &Option<Timestamp>| since.unwrap_or(pod.created);
    match (outlook, pod.ready, &pod.node) {
        (Outlook::Lost { since: lost }, ..) => (ReplicaState::Lost, since(lost)),
        (Outlook::Leaves { since: from, .. }, Some(_), _) => (ReplicaState::Leaving, since(from)),
        // It would go before it serves.
        (Outlook::Leaves { since: from, .. }, None, _) => (ReplicaState::Lost, since(from)),
        (Outlook::Stays, Some(since), _) => (ReplicaState::Ready, since),
        (Outlook::Stays, None, Some(_)) => unready(pod, now),
        (Outlook::Stays, None, None) => (ReplicaState::Pending, pod.created),
    }
}

/// A pod that has a node and is not ready.
fn unready(pod: &PodFacts, now: Timestamp) -> (ReplicaState, Timestamp) {
    if let Some(since) = pod.lapsed {
        return (ReplicaState::Unready, since);
    }
    let began = pod.scheduled.unwrap_or(pod.created);
    let since = pod.unready.unwrap_or(began).max(began);
    let age = |at: Timestamp| now.since(at).unwrap_or(Micros::ZERO);
    let again = |crashed: Timestamp| {
        age(crashed) < CRASHES && crashed.since(since).is_some_and(|later| later > SAME_END)
    };
    let crashes = pod.restarts >= 2 && pod.crashed.is_some_and(again);
    let lacks = pod.waits_for.is_some() && pod.restarts == 0 && age(began) >= LACKS;
    if crashes || lacks { (ReplicaState::Failed, since) } else { (ReplicaState::Starting, began) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn pod() -> PodFacts {
        PodFacts {
            name: "x".to_owned(),
            node: Some("n".to_owned()),
            created: at(100),
            scheduled: Some(at(110)),
            unready: Some(at(110)),
            ..PodFacts::default()
        }
    }

    fn is(pod: &PodFacts, now: u64) -> (ReplicaState, u64) {
        let (state, since) = state(pod, &Outlook::Stays, at(now));
        (state, since.as_millis() / 1_000)
    }

    #[test]
    fn a_container_that_ends_again_and_again_has_failed_and_one_that_ended_once_has_not() {
        let ended = |restarts, crashed| PodFacts { restarts, crashed: Some(at(crashed)), ..pod() };
        assert_eq!(is(&ended(1, 200), 210), (ReplicaState::Starting, 110));
        assert_eq!(is(&ended(2, 200), 210), (ReplicaState::Failed, 110));
        assert_eq!(is(&ended(2, 200), 799), (ReplicaState::Failed, 110), "between two tries");
        assert_eq!(is(&ended(2, 200), 800), (ReplicaState::Starting, 110), "it runs since");
        // Restarts of last week, and now one more: the engine loads again.
        let again = PodFacts { unready: Some(at(9_000)), ..ended(7, 9_001) };
        assert_eq!(is(&again, 9_100), (ReplicaState::Starting, 110));
        let more = PodFacts { unready: Some(at(9_000)), ..ended(8, 9_050) };
        assert_eq!(is(&more, 9_100), (ReplicaState::Failed, 9_000));
    }

    #[test]
    fn what_lacks_its_image_has_failed_after_two_minutes() {
        let lacks = PodFacts { waits_for: Some("ImagePullBackOff".to_owned()), ..pod() };
        assert_eq!(is(&lacks, 229), (ReplicaState::Starting, 110));
        assert_eq!(is(&lacks, 230), (ReplicaState::Failed, 110));
    }

    #[test]
    fn a_pod_is_lost_or_leaves_with_its_node() {
        let ready = PodFacts { ready: Some(at(300)), ..pod() };
        let lost = Outlook::Lost { since: Some(at(400)) };
        let leaves = Outlook::Leaves { taint: "karpenter.sh/disrupted".to_owned(), since: None };
        let of = |pod: &PodFacts, outlook: &Outlook| state(pod, outlook, at(500)).0;
        assert_eq!(state(&ready, &lost, at(500)), (ReplicaState::Lost, at(400)));
        assert_eq!(of(&ready, &leaves), ReplicaState::Leaving);
        assert_eq!(of(&pod(), &leaves), ReplicaState::Lost, "it would not serve in time");
        let drains = PodFacts { draining: Some(at(450)), ..ready };
        assert_eq!(of(&drains, &leaves), ReplicaState::Draining);
    }

    #[test]
    fn what_is_wrong_is_said_with_names() {
        let trouble = |pod: &PodFacts| {
            let inside = Inside { gateways: Side::Nobody, engine: Side::Nobody };
            let seen = Seen { pod, inside, time: (at(500), Micros::from_seconds(60)) };
            seen.trouble(&Facts::default(), Micros::from_seconds(300))
        };
        let crashes = PodFacts {
            restarts: 7,
            crashed: Some(at(480)),
            waits_for: Some("CrashLoopBackOff".to_owned()),
            ..pod()
        };
        let text = "pod x on node n does not start: CrashLoopBackOff, 7 restarts";
        let reason = Reason::ReplicaFailed;
        assert_eq!(trouble(&crashes), Some(ReplicaTrouble { reason, text: text.to_owned() }));
        let slow = trouble(&pod()).unwrap().text;
        assert_eq!(
            slow,
            "pod x on node n has been starting since 1970-01-01T00:01:50Z and is not ready"
        );
        assert_eq!(trouble(&PodFacts { ready: Some(at(300)), ..pod() }), None);
    }
}
