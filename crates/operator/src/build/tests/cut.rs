//! No write takes away a pod that may hold requests, whoever is heard or not.

use super::*;
use crate::observe::demand::Signals;
use crate::observe::{
    ExpectedInFlight, Facts, InFlightCounts, ObservedMemory, observe, prometheus,
};
use flyball_core::decision::Previous;
use flyball_core::testing::hold;
use flyball_core::units::Micros;
use flyball_estimator::reading::{EngineCounts, EngineReading};
use flyball_resources::ModelService;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const MARK: u64 = 1_000;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

/// One model of two replicas, of which `a` was told to drain at 1,000 s unless a test says otherwise.
fn world(pods: Vec<PodFacts>) -> Facts {
    let service = serde_json::json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "ModelService",
        "metadata": {"name": "m", "namespace": "a"},
        "spec": {
            "scaling": {"mode": "Act"},
            "variants": [{"name": "x", "targetRef": {"kind": "Deployment", "name": "m"}}],
        },
    });
    let service: ModelService = serde_json::from_value(service).unwrap();
    let labels: BTreeMap<String, String> = [("app".to_owned(), "m".to_owned())].into();
    let selector = LabelSelector { match_labels: Some(labels.clone()), ..LabelSelector::default() };
    let replicas = u32::try_from(pods.len()).unwrap();
    let workload = Workload { replicas, selector, ..Workload::default() };
    let pods = pods.into_iter().map(|pod| PodFacts { labels: labels.clone(), ..pod }).collect();
    Facts {
        models: vec![Arc::new(service)],
        workloads: [(key(TargetKind::Deployment), workload)].into(),
        pods: [("a".to_owned(), pods)].into(),
        ..Facts::default()
    }
}

fn marked(name: &str) -> PodFacts {
    PodFacts { draining: Some(at(MARK)), deletion_cost: Some(-1_000), ..pod(name) }
}

/// What is heard: an operator that has listened for long, and nothing else.
fn all_reported() -> Signals {
    let mut signals = Signals::default();
    signals.in_flight.all_came();
    signals
}

fn engine(count: f64, seen: u64) -> EngineReading {
    let engine = EngineReading::counted(at(seen), EngineCounts::UNKNOWN);
    EngineReading { running: Some(count), waiting: Some(0.0), ..engine }
}

fn engines(signals: &mut Signals, all: &[(&str, f64, u64)]) {
    let place = |pod: &str| ("a".to_owned(), pod.to_owned());
    let all = all.iter().map(|(pod, count, seen)| (place(pod), engine(*count, *seen)));
    prometheus::add(signals, all.collect());
}

/// What is written where a decision wants one replica less, and takes this step.
fn built(facts: &Facts, signals: &Signals, now: u64, step: Action) -> Built {
    let seen = observe(
        facts,
        signals,
        &mut ObservedMemory::default(),
        (at(now), Micros::from_seconds(60)),
    );
    let mut decision = hold(&seen.snapshot, &Previous::none());
    let target = &mut decision.models[0].targets[0];
    let pods = facts.pods["a"].len();
    target.replicas = Replicas::new(u32::try_from(pods).unwrap() - 1);
    target.actions = vec![step];
    build(facts, &seen, &decision)
}

/// Whether the marked pod `a` is taken away, also by a decision that should not have been made.
fn removes(signals: &Signals, now: u64) -> bool {
    let facts = world(vec![marked("a"), pod("bb")]);
    let built = built(&facts, signals, now, delete("a"));
    assert_eq!(built.broken, []);
    built.writes.iter().any(|(_, writes)| scaled(writes) == Some((2, 1)))
}

#[test]
fn a_pod_that_no_gateway_was_heard_about_is_marked_and_not_removed() {
    let facts = world(vec![pod("a"), pod("bb")]);
    for signals in [Signals::default(), all_reported()] {
        let built = built(&facts, &signals, 1_100, drain("a"));
        let (_, writes) = &built.writes[0];
        assert_eq!(writes[0], Write::Mark { pod: "a".to_owned(), since: at(1_100) });
        assert_eq!(scaled(writes), None);
    }
}

#[test]
fn after_a_failover_nothing_goes_before_gateways_had_the_time_to_come() {
    let mut expected = ExpectedInFlight::of(&[], Micros::from_minutes(1));
    let after = |expected: &ExpectedInFlight, now: u64| {
        let mut signals = Signals::default();
        expected.add(&mut signals.in_flight, &Facts::default(), &[], at(now));
        removes(&signals, now)
    };
    assert!(!after(&expected, 1_700), "it does not listen");
    expected.listens(true, at(1_700));
    expected.listens(true, at(1_715));
    assert!(!after(&expected, 1_759));
    assert!(after(&expected, 1_760), "there is no gateway and no series: Kubernetes drains");
    expected.listens(false, at(1_760));
    expected.listens(true, at(1_761));
    assert!(!after(&expected, 1_800), "it led anew");
}

#[test]
fn a_gateway_that_exists_and_is_silent_keeps_pods_alive() {
    let expected = ExpectedInFlight::of(&["flyball/gateway".to_owned()], Micros::from_minutes(1));
    let waits = |gateway: PodFacts, refused: &[String]| {
        let mut signals = all_reported();
        let facts =
            Facts { pods: [("flyball".to_owned(), vec![gateway])].into(), ..Facts::default() };
        expected.add(&mut signals.in_flight, &facts, refused, at(2_000));
        !removes(&signals, 2_000)
    };
    let gateway = PodFacts { account: Some("gateway".to_owned()), ..pod("gateway-1") };
    assert!(waits(gateway.clone(), &[]));
    assert!(!waits(pod("another"), &[]), "any other pod");
    assert!(!waits(PodFacts { over: true, ..gateway.clone() }, &[]), "it ended");
    assert!(!waits(PodFacts { stopped: true, ..gateway.clone() }, &[]), "nothing runs in it");
    assert!(waits(PodFacts { ending: Some(at(1_401)), ..gateway.clone() }, &[]));
    assert!(!waits(PodFacts { ending: Some(at(1_400)), ..gateway }, &[]), "its node is dead");
    assert!(waits(pod("another"), &["gateway-2".to_owned()]), "it speaks another version");
}

#[test]
fn a_gateway_that_left_engines_out_says_nothing_of_them() {
    let ip = pod("a").ip.unwrap();
    let removed = |named: &[&str]| {
        let mut signals = all_reported();
        signals.in_flight.gateway("one", Some(at(1_990)));
        signals.in_flight.names_only("one", named.iter().map(|ip| (*ip).to_owned()));
        removes(&signals, 2_000)
    };
    assert!(!removed(&[]));
    assert!(removed(&[&ip]));
}

#[test]
fn an_engine_that_has_series_must_be_seen_empty_after_the_mark() {
    let removed = |count: f64, seen: u64, now: u64, gateways: bool| {
        let mut signals = all_reported();
        if gateways {
            signals.in_flight.gateway("one", Some(at(now)));
            signals.in_flight.at_address(&pod("a").ip.unwrap(), 0.0, at(now));
        }
        engines(&mut signals, &[("a", count, seen)]);
        removes(&signals, now)
    };
    for gateways in [true, false] {
        assert!(!removed(0.0, 990, 1_010, gateways), "counted before the mark");
        assert!(!removed(0.0, 1_005, 1_010, gateways), "clocks differ");
        assert!(!removed(2.0, 1_006, 1_010, gateways), "clients that go around gateways");
        assert!(removed(0.0, 1_006, 1_010, gateways));
        assert!(!removed(2.0, 1_590, 1_599, gateways));
        assert!(removed(2.0, 1_590, 1_600, gateways), "ten minutes: its grace period must do");
    }
    assert!(!removed(f64::NAN, 1_590, 1_599, true));
}

#[test]
fn an_engine_of_a_kind_that_has_series_is_waited_for_and_one_without_is_not() {
    let removed = |others: &[(&str, f64, u64)], away: bool, now: u64| {
        let mut signals = all_reported();
        signals.in_flight.gateway("one", Some(at(now)));
        signals.in_flight.at_address(&pod("a").ip.unwrap(), 0.0, at(now));
        engines(&mut signals, others);
        if away {
            signals.in_flight.request(InFlightCounts::Away);
        }
        removes(&signals, now)
    };
    assert!(removed(&[], false, 1_010), "no engine of its kind has series: gateways suffice");
    assert!(!removed(&[("bb", 1.0, 1_009)], false, 1_010), "its sibling has");
    assert!(!removed(&[], true, 1_010), "nobody could ask");
    assert!(removed(&[], true, 1_600), "gateways suffice after ten minutes");
}

#[test]
fn an_engine_that_is_out_of_its_service_and_does_not_answer_is_not_waited_for_for_ever() {
    let removed = |ready: bool, now: u64| {
        let unready = PodFacts { ready: None, lapsed: Some(at(990)), ..marked("a") };
        let facts = world(vec![if ready { marked("a") } else { unready }, pod("bb")]);
        let mut signals = all_reported();
        signals.in_flight.request(InFlightCounts::Away);
        !built(&facts, &signals, now, delete("a")).writes.is_empty()
    };
    assert!(!removed(false, 1_599));
    assert!(removed(false, 1_600));
    assert!(!removed(true, 9_000), "it may get requests as long as it is ready");
}

#[test]
fn settings_that_cut_are_never_left_to_kubernetes() {
    let mut facts = world(vec![marked("a"), pod("bb")]);
    let workload = facts.workloads.values_mut().next().unwrap();
    workload.image = "vllm/vllm-openai:v1".to_owned();
    let mut signals = all_reported();
    engines(&mut signals, &[("a", 2.0, 9_990), ("bb", 2.0, 9_990)]);
    let number = |signals: &Signals| {
        let built = built(&facts, signals, 10_000, delete("a"));
        built.writes.iter().find_map(|(_, writes)| scaled(writes))
    };
    assert_eq!(number(&signals), None);
    engines(&mut signals, &[("a", 0.0, 9_990), ("bb", 2.0, 9_990)]);
    assert_eq!(number(&signals), Some((2, 1)));
}

#[test]
fn a_pod_in_which_nothing_runs_is_empty_whoever_is_silent() {
    let facts = world(vec![PodFacts { stopped: true, ready: None, ..marked("a") }, pod("bb")]);
    let built = built(&facts, &Signals::default(), 1_010, delete("a"));
    assert_eq!(scaled(&built.writes[0].1), Some((2, 1)));
}

#[test]
fn a_number_that_could_cut_requests_is_not_written() {
    let facts = world(vec![pod("a"), pod("bb")]);
    let seen = observe(
        &facts,
        &all_reported(),
        &mut ObservedMemory::default(),
        (at(1_010), Micros::from_seconds(60)),
    );
    let (id, model) = seen.models.iter().next().unwrap();
    let scene = |key: &WorkloadKey| {
        let (key, workload) = facts.workloads.get_key_value(key)?;
        Some(Scene::of(key, workload, facts.pods["a"].iter(), &model.holds, at(1_010)))
    };
    let holding = |pod: &str| model.holds[pod];
    let scale = |to| Write::Scale { workload: key(TargetKind::Deployment), from: 2, to };
    let cost = Write::Cost { pod: "a".to_owned(), cost: -1_000_000 };
    let (passed, broken) = gate::hold_back(id, vec![cost.clone(), scale(1)], holding, scene);
    assert_eq!(passed, [cost]);
    let text = "INV-13: model a/m: a would be removed and may hold requests";
    assert_eq!(broken.iter().map(ToString::to_string).collect::<Vec<_>>(), [text]);
    let (passed, broken) = gate::hold_back(id, vec![scale(3)], holding, scene);
    assert_eq!((passed.len(), broken.len()), (1, 0));
}

#[test]
fn nothing_is_written_for_a_model_whose_decision_broke_a_rule() {
    let facts = world(vec![pod("a")]);
    let time = (at(1_010), Micros::from_seconds(60));
    let seen = observe(&facts, &all_reported(), &mut ObservedMemory::default(), time);
    let mut decision = hold(&seen.snapshot, &Previous::none());
    decision.models[0].targets[0].replicas = Replicas::new(3);
    assert_eq!(build(&facts, &seen, &decision).writes.len(), 1);
    decision.models[0].bound = Bound::Rule;
    assert_eq!(build(&facts, &seen, &decision).writes, []);
}

/// One pod as it really is.
#[derive(Clone, Debug)]
struct Truth {
    pod: PodFacts,
    /// Requests that gateways sent it, and others.
    routed: u32,
    around: u32,
}

fn truth() -> impl Strategy<Value = Truth> {
    let life = (0_u8..6, prop::option::of(930_u64..1_500));
    let orders = (any::<bool>(), prop::sample::select(vec![-1_000_000_i64, -1_000, 0, 7]));
    (life, orders, 0_u32..3, 0_u32..2).prop_map(|((life, mark), (hash, cost), routed, around)| {
        let base = pod("x");
        let pod = match life {
            0 => PodFacts { node: None, pending: true, ready: None, ip: None, ..base },
            1 => PodFacts { ready: None, pending: true, ..base },
            2 => PodFacts { ready: None, ..base },
            3 => PodFacts { ready: None, lapsed: Some(at(950)), ..base },
            4 => PodFacts { ready: None, stopped: true, ..base },
            _ => base,
        };
        let served = pod.ready.is_some() || pod.lapsed.is_some();
        let (routed, around) = if served { (routed, around) } else { (0, 0) };
        let set = if hash { "one" } else { "two" };
        let labels = [("pod-template-hash".to_owned(), set.to_owned())].into();
        let draining = mark.filter(|_| served).map(at);
        let pod = PodFacts { labels, draining, deletion_cost: Some(cost), ..pod };
        Truth { pod, routed, around }
    })
}

/// Whom a ReplicaSet removes, written down apart from `order`: one after the other, the first by its order.
fn removed_by_kubernetes(mut pods: Vec<PodFacts>, to: usize, chance: &mut u64) -> Vec<String> {
    let mut gone = Vec::new();
    while pods.len() > to {
        let worst = |pod: &PodFacts| {
            let cost = pod.deletion_cost.unwrap_or(0);
            (pod.node.is_some(), !pod.pending, pod.ready.is_some(), cost)
        };
        // Any ReplicaSet may be the one that shrinks, and among equals anyone goes.
        let sets: BTreeSet<String> =
            pods.iter().map(|pod| pod.labels["pod-template-hash"].clone()).collect();
        *chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let set = sets.iter().nth((*chance >> 33) as usize % sets.len()).unwrap();
        let of_set = |pod: &&PodFacts| pod.labels["pod-template-hash"] == *set;
        let least = pods.iter().filter(of_set).map(worst).min().unwrap();
        let first: Vec<String> = pods
            .iter()
            .filter(|pod| of_set(pod) && worst(pod) == least)
            .map(|pod| pod.name.clone())
            .collect();
        let name = first[(*chance >> 13) as usize % first.len()].clone();
        pods.retain(|pod| pod.name != name);
        gone.push(name);
    }
    gone
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4_000) })]

    /// Whatever is decided, whoever is silent, and whatever Kubernetes then chooses.
    #[test]
    fn no_write_removes_a_pod_with_requests_inside(
        truths in prop::collection::vec(truth(), 1..7),
        (gateway, silent, series) in any::<(bool, bool, bool)>(),
        steps in prop::collection::vec((any::<bool>(), 0_usize..7), 0..6),
        target in 0_u32..7,
        mut chance in any::<u64>(),
    ) {
        let now = 1_520;
        let truths: Vec<Truth> = truths.into_iter().enumerate().map(|(n, mut truth)| {
            truth.pod.name = format!("{}{n}", "x".repeat(n));
            truth.pod.ip = truth.pod.ip.map(|_| format!("10.0.0.{n}"));
            truth
        }).collect();
        let mut facts = world(vec![]);
        let pods: Vec<PodFacts> = truths.iter().map(|truth| {
            let mut pod = truth.pod.clone();
            pod.labels.insert("app".to_owned(), "m".to_owned());
            pod
        }).collect();
        facts.workloads.values_mut().next().unwrap().replicas = u32::try_from(pods.len()).unwrap();
        facts.pods.insert("a".to_owned(), pods.clone());
        let mut signals = all_reported();
        if gateway {
            // Some gateway carries all that is routed; it is silent, or speaks of all.
            let reported = (!silent).then(|| at(now));
            signals.in_flight.gateway("one", reported);
            for truth in truths.iter().filter(|_| !silent) {
                let Some(ip) = &truth.pod.ip else { continue };
                signals.in_flight.at_address(ip, f64::from(truth.routed), at(now));
            }
        }
        if series {
            let place = |pod: &PodFacts| ("a".to_owned(), pod.name.clone());
            let inside = |truth: &Truth| f64::from(truth.around + if gateway { truth.routed } else { 0 });
            let readings = truths.iter().map(|truth| (place(&truth.pod), engine(inside(truth), now)));
            prometheus::add(&mut signals, readings.collect());
        }
        let seen = observe(&facts, &signals, &mut ObservedMemory::default(), (at(now), Micros::from_seconds(60)));
        let mut decision = hold(&seen.snapshot, &Previous::none());
        decision.models[0].targets[0].replicas = Replicas::new(target);
        decision.models[0].targets[0].actions = steps.into_iter().filter_map(|(empty, n)| {
            let name = &pods.get(n)?.name;
            Some(if empty { delete(name) } else { drain(name) })
        }).collect();
        let built = build(&facts, &seen, &decision);
        prop_assert!(built.broken.is_empty(), "the gate is the second line: {:?}", built.broken);
        let mut after = pods;
        for (_, writes) in &built.writes {
            for write in writes {
                match write {
                    Write::Cost { pod, cost } => {
                        let found = after.iter_mut().find(|one| one.name == *pod).unwrap();
                        found.deletion_cost = Some(i64::from(*cost));
                    }
                    Write::Unmark { pod } => {
                        let found = after.iter_mut().find(|one| one.name == *pod).unwrap();
                        found.deletion_cost = None;
                    }
                    Write::Scale { to, .. } => {
                        let gone = removed_by_kubernetes(after.clone(), *to as usize, &mut chance);
                        for name in gone {
                            let truth = truths.iter().find(|truth| truth.pod.name == name).unwrap();
                            // Clients of whom nobody can tell are left to the grace period.
                            let around = if series { truth.around } else { 0 };
                            let routed = if gateway { truth.routed } else { 0 };
                            prop_assert_eq!(around + routed, 0, "{} of {:?}", name, writes);
                        }
                    }
                    Write::Mark { .. }
                    | Write::Make { .. }
                    | Write::Replace { .. }
                    | Write::Protect { .. }
                    | Write::Unprotect { .. } => {}
                }
            }
        }
    }
}
