//! What is written about one workload, by example; `cut` looks for requests that a write would cut.

mod cut;

use super::*;
use crate::decide::Brain;
use crate::observe::demand::Signals;
use crate::observe::{ObservedMemory, PodFacts, Workload, observe};
use flyball_core::decision::{Action, Target};
use flyball_core::ids::ReplicaId;
use flyball_core::invariants::Holding;
use flyball_core::snapshot::Purchase;
use flyball_core::units::{Micros, Replicas};
use flyball_resources::model_service::TargetKind;
use std::sync::Arc;

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

fn pod(name: &str) -> PodFacts {
    PodFacts {
        name: name.to_owned(),
        ip: Some(format!("10.0.0.{}", name.len())),
        node: Some("n".to_owned()),
        created: Timestamp::from_millis(400_000),
        ready: Some(Timestamp::from_millis(500_000)),
        ..PodFacts::default()
    }
}

fn starting(name: &str, created: u64) -> PodFacts {
    PodFacts { ready: None, created: Timestamp::from_millis(created), ..pod(name) }
}

fn draining(name: &str) -> PodFacts {
    PodFacts {
        draining: Some(Timestamp::from_millis(900_000)),
        deletion_cost: Some(-1_000),
        ..pod(name)
    }
}

fn key(kind: TargetKind) -> WorkloadKey {
    ("a".to_owned(), kind, "m".to_owned())
}

fn target(replicas: u32, actions: Vec<Action>) -> Target {
    let replicas = Replicas::new(replicas);
    let spares = Replicas::ZERO;
    Target { variant: "a/m/x".parse().unwrap(), unconstrained: replicas, replicas, spares, actions }
}

fn drain(pod: &str) -> Action {
    Action::Drain { replica: ReplicaId::new("a", pod).unwrap() }
}

fn delete(pod: &str) -> Action {
    Action::Delete { replica: ReplicaId::new("a", pod).unwrap() }
}

fn start(count: u32) -> Action {
    Action::Start { count: Replicas::new(count), purchase: Purchase::OnDemand }
}

/// The writes for a workload that asks for so many replicas. What drains is empty, and what is not ready never
/// served.
fn planned(kind: TargetKind, has: u32, pods: &[PodFacts], target: &Target) -> Vec<Write> {
    let holding = |pod: &PodFacts| match (pod.draining, pod.ready, pod.lapsed) {
        (Some(_), ..) => Holding::Empty,
        (None, None, None) => Holding::NeverServed,
        _ => Holding::MayHold,
    };
    let holds = pods.iter().map(|pod| (pod.name.clone(), holding(pod))).collect();
    let workload = Workload { replicas: has, ..Workload::default() };
    Scene::of(&key(kind), &workload, pods.iter(), &holds, NOW).writes(target)
}

fn scaled(writes: &[Write]) -> Option<(u32, u32)> {
    writes.iter().find_map(|write| match write {
        Write::Scale { from, to, .. } => Some((*from, *to)),
        _ => None,
    })
}

#[test]
fn a_replica_that_serves_is_marked_first_and_the_number_stays() {
    let writes =
        planned(TargetKind::Deployment, 2, &[pod("a"), pod("bb")], &target(1, vec![drain("a")]));
    assert_eq!(
        writes,
        [
            Write::Mark { pod: "a".to_owned(), since: NOW },
            Write::Cost { pod: "a".to_owned(), cost: -1_000 }
        ]
    );
}

#[test]
fn one_that_is_empty_goes_first_and_takes_the_number_down() {
    let pods = [draining("a"), pod("bb")];
    let writes = planned(TargetKind::Deployment, 2, &pods, &target(1, vec![delete("a")]));
    assert_eq!(writes[0], Write::Cost { pod: "a".to_owned(), cost: -1_000_000 });
    assert_eq!(scaled(&writes), Some((2, 1)));
    // Still busy: it counts.
    let writes = planned(TargetKind::Deployment, 2, &pods, &target(1, vec![]));
    assert_eq!(writes, []);
}

#[test]
fn nothing_is_taken_away_while_another_starts_unless_that_one_is_stuck() {
    let recent = [draining("a"), pod("bb"), starting("ccc", 950_000)];
    let gone = target(2, vec![delete("a")]);
    assert_eq!(scaled(&planned(TargetKind::Deployment, 3, &recent, &gone)), None);
    let stuck = [draining("a"), pod("bb"), starting("ccc", 100_000)];
    assert_eq!(scaled(&planned(TargetKind::Deployment, 3, &stuck, &gone)), Some((3, 2)));
}

#[test]
fn a_pod_that_does_not_serve_yet_goes_at_once() {
    let pods = [pod("a"), starting("bb", 950_000)];
    let writes = planned(TargetKind::Deployment, 2, &pods, &target(1, vec![delete("bb")]));
    assert_eq!(scaled(&writes), Some((2, 1)));
}

#[test]
fn nobody_goes_whom_the_decision_does_not_name() {
    // Somebody scaled it by hand: three serve, one is wanted, and no step is decided yet.
    let pods = [pod("a"), pod("bb"), pod("ccc")];
    assert_eq!(planned(TargetKind::Deployment, 3, &pods, &target(1, vec![])), []);
}

#[test]
fn one_that_drains_is_woken_before_another_is_started() {
    let pods = [draining("a"), pod("bb")];
    let writes = planned(TargetKind::Deployment, 2, &pods, &target(2, vec![start(1)]));
    assert_eq!(writes, [Write::Unmark { pod: "a".to_owned() }]);
    let writes = planned(TargetKind::Deployment, 2, &pods, &target(4, vec![start(3)]));
    assert_eq!(writes[0], Write::Unmark { pod: "a".to_owned() });
    assert_eq!(scaled(&writes), Some((2, 4)));
}

#[test]
fn an_ordered_workload_loses_its_last() {
    let pods = [pod("m-0"), pod("m-01"), pod("m-002")];
    let writes = planned(TargetKind::StatefulSet, 3, &pods, &target(2, vec![drain("m-0")]));
    assert_eq!(writes[0], Write::Mark { pod: "m-002".to_owned(), since: NOW });
    assert_eq!(scaled(&writes), None);
    // Empty, but not the last: it waits for its turn.
    let pods = [draining("m-0"), pod("m-01")];
    let writes = planned(TargetKind::StatefulSet, 2, &pods, &target(1, vec![delete("m-0")]));
    assert_eq!(scaled(&writes), None);
}

/// Seen live: a pod drained for 15 s, was wanted again, and stood empty and unused for as long as the
/// model wanted as many as there were.
#[test]
fn one_that_is_empty_and_wanted_again_serves_again() {
    let pods = [pod("a"), draining("bb")];
    let again = target(2, vec![delete("bb"), start(1)]);
    let writes = planned(TargetKind::Deployment, 2, &pods, &again);
    assert_eq!(writes, vec![Write::Unmark { pod: "bb".to_owned() }]);
    // Of two the one that still has requests.
    let pods = [pod("a"), draining("bb"), draining("ccc")];
    let one = target(2, vec![delete("bb"), start(1)]);
    let writes = planned(TargetKind::Deployment, 3, &pods, &one);
    assert!(writes.contains(&Write::Unmark { pod: "ccc".to_owned() }), "{writes:?}");
    assert_eq!(scaled(&writes), Some((3, 2)));
    let writes = planned(
        TargetKind::StatefulSet,
        2,
        &[pod("m-0"), draining("m-1")],
        &target(2, vec![delete("m-1"), start(1)]),
    );
    assert_eq!(writes, vec![Write::Unmark { pod: "m-1".to_owned() }]);
}

#[test]
fn one_that_served_and_is_not_ready_now_is_drained_as_if_it_were() {
    let lapsed = PodFacts { lapsed: Some(NOW), ..starting("bb", 500_000) };
    let gone = target(1, vec![delete("bb")]);
    let writes = planned(TargetKind::Deployment, 2, &[pod("a"), lapsed.clone()], &gone);
    assert_eq!(writes[0], Write::Mark { pod: "bb".to_owned(), since: NOW });
    assert_eq!(scaled(&writes), None);
    // Marked, and seen to be empty.
    let marked = PodFacts { lapsed: Some(NOW), ..draining("bb") };
    let writes = planned(TargetKind::Deployment, 2, &[pod("a"), marked], &gone);
    assert_eq!(scaled(&writes), Some((2, 1)));
}

/// Everything that is written for an adopted model in this mode whose only pod has requests.
fn written(mode: &str) -> Vec<Write> {
    let service = serde_json::json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "ModelService",
        "metadata": {"name": "m", "namespace": "a"},
        "spec": {
            "scaling": {"mode": mode},
            "variants": [{"targetRef": {"kind": "Deployment", "name": "m"}}],
        },
    });
    let selector = serde_json::json!({"matchLabels": {"app": "m"}});
    let labels = [("app".to_owned(), "m".to_owned())].into();
    let workload = Workload {
        replicas: 1,
        selector: serde_json::from_value(selector).unwrap(),
        ..Workload::default()
    };
    let facts = Facts {
        models: vec![Arc::new(serde_json::from_value(service).unwrap())],
        workloads: [(key(TargetKind::Deployment), workload)].into(),
        pods: [("a".to_owned(), vec![PodFacts { labels, ..pod("x") }])].into(),
        ..Facts::default()
    };
    let mut signals = Signals::default();
    signals.in_flight.at_address("10.0.0.1", 3.0, NOW);
    let time = (NOW, Micros::from_seconds(60));
    let seen = observe(&facts, &signals, &mut ObservedMemory::default(), time);
    let decision = Brain::default().decide(&seen).decision;
    let all = build(&facts, &seen, &decision).writes;
    all.into_iter().flat_map(|(_, writes)| writes).collect()
}

#[test]
fn pods_with_requests_are_protected_where_flyball_acts_and_never_where_it_recommends() {
    assert_eq!(written("Act"), [Write::Protect { pod: "x".to_owned(), since: NOW }]);
    assert_eq!(written("Recommend"), []);
}

#[test]
fn those_that_others_make_up_for_count_in_the_number_beside_the_target() {
    let pods = [pod("a"), pod("bb"), starting("ccc", 100_000)];
    let spared = Target { spares: Replicas::new(1), ..target(3, vec![start(1)]) };
    assert_eq!(scaled(&planned(TargetKind::Deployment, 3, &pods, &spared)), Some((3, 4)));
    // Enough serve: what failed goes, and nobody else.
    let pods = [pod("a"), pod("bb"), pod("dddd"), starting("ccc", 100_000)];
    let gone = target(3, vec![delete("ccc")]);
    assert_eq!(scaled(&planned(TargetKind::Deployment, 4, &pods, &gone)), Some((4, 3)));
}

#[test]
fn one_that_does_not_come_up_is_evicted_and_one_that_may_hold_requests_is_not() {
    let replace = |name| Action::Replace { replica: ReplicaId::new("a", name).unwrap() };
    let pods = [pod("a"), PodFacts { uid: "7".to_owned(), ..starting("bb", 100_000) }];
    let named = target(2, vec![replace("a"), replace("bb")]);
    let writes = planned(TargetKind::Deployment, 2, &pods, &named);
    assert_eq!(writes, [Write::Replace { pod: "bb".to_owned(), uid: "7".to_owned() }]);
}

#[test]
fn one_whose_node_leaves_is_not_taken_back() {
    let pods = [draining("a"), pod("bb")];
    let holds = [("a".to_owned(), Holding::MayHold), ("bb".to_owned(), Holding::MayHold)].into();
    let workload = Workload { replicas: 2, ..Workload::default() };
    let (key, gone) = (key(TargetKind::Deployment), ["a".to_owned()].into());
    let scene = Scene::of(&key, &workload, pods.iter(), &holds, NOW).without(&gone);
    assert_eq!(scaled(&scene.writes(&target(2, vec![start(1)]))), Some((2, 3)));
}
