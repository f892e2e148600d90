//! Hand-made objects, as the API server would send them; in `objects` and `server` one sends them too.
//!
//! No cluster is needed. Start at the first test.

mod objects;
mod server;

use super::mirror::{Mirror, Step};
use super::place::{DiscoveryPlace, PodsPlace, Port, ServicePlace, VariantPlace};
use super::ready::Readiness;
use super::settle::{ENGINES, settle};
use super::sources::Change;
use super::standing::{DiscoveryStatus, Failing};
use super::world::World;
use super::{FoundEngines, Listing, pods, pools, selector, slices};
use crate::testing::{endpoint, endpoint_slice, engine_pod};
use flyball_engines::Engine;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::DynamicObject;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn slice(endpoints: &[Value]) -> slices::Slice {
    let object: EndpointSlice =
        serde_json::from_value(endpoint_slice("a", "llama", endpoints)).unwrap();
    slices::slice(&object).unwrap()
}

fn found(name: &str, address: &str, draining: bool) -> FoundEngines {
    let address = address.parse().unwrap();
    FoundEngines { name: name.to_owned(), address, draining, engine: Engine::Vllm, uid: None }
}

fn pod(name: &str, labels: Value, ready: &str, deleted: bool) -> Option<pods::PodMember> {
    let mut meta = json!({"name": name, "namespace": "team", "labels": labels});
    if deleted {
        meta["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    let object: Pod = serde_json::from_value(json!({
        "metadata": meta,
        "status": {
            "podIP": "10.0.0.7",
            "conditions": [
                {"type": "Initialized", "status": "True"},
                {"type": "Ready", "status": ready},
            ],
        },
    }))
    .unwrap();
    pods::member(&object)
}

fn pool(spec: Value) -> Option<pools::Chosen> {
    let object: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "inference.networking.k8s.io/v1",
        "kind": "InferencePool",
        "metadata": {"name": "llama", "namespace": "team"},
        "spec": spec,
    }))
    .unwrap();
    pools::pool(&object)
}

#[test]
fn readiness_and_draining_follow_the_conditions() {
    let conditions = [
        (json!({}), Some(false)),
        (Value::Null, Some(false)),
        (json!({"ready": true, "serving": true, "terminating": false}), Some(false)),
        (json!({"ready": false, "serving": false}), None),
        (json!({"ready": false, "serving": true, "terminating": true}), Some(true)),
        (json!({"ready": false, "serving": false, "terminating": true}), None),
        // Not ready and not on its way out: starting, or its probe fails.
        (json!({"ready": false, "serving": true, "terminating": false}), None),
        // A Service that publishes addresses before they are ready says ready for all.
        (json!({"ready": true, "terminating": true}), Some(true)),
    ];
    for (conditions, draining) in conditions {
        let slice = slice(&[endpoint("p", "10.0.0.1", conditions.clone())]);
        let all = slices::found([&slice].into_iter(), &Port::Number(8000), Engine::Vllm);
        let expected = draining.map(|draining| found("team/p", "10.0.0.1:8000", draining));
        assert_eq!(all, Vec::from_iter(expected), "{conditions}");
    }
}

#[test]
fn ports_are_found_by_number_and_by_name_and_only_tcp_counts() {
    let slice = slice(&[endpoint("p", "10.0.0.1", json!({}))]);
    let port = |port: &Port| {
        let all = slices::found([&slice].into_iter(), port, Engine::Vllm);
        all.first().map(|found| found.address.port())
    };
    assert_eq!(port(&Port::Number(9000)), Some(9000));
    assert_eq!(port(&Port::Name("http".to_owned())), Some(8000));
    assert_eq!(port(&Port::Name("gossip".to_owned())), None);
    assert_eq!(port(&Port::Number(80)), None);
    assert!(slice.lacks(&Port::Number(80)) && !slice.lacks(&Port::Number(8000)));
    assert_eq!(slice.ports_in_words(), "8000 \"http\", 9000 \"metrics\"");
}

#[test]
fn one_engine_in_two_slices_is_one_engine() {
    let v6 = slice(&[endpoint("p", "fd00::1", json!({})), endpoint("q", "fd00::2", json!({}))]);
    let v4 = slice(&[endpoint("p", "10.0.0.1", json!({}))]);
    let leaving =
        slice(&[endpoint("q", "10.0.0.2", json!({"serving": true, "terminating": true}))]);
    let expected = vec![
        found("team/p", "10.0.0.1:8000", false),
        // Open beats draining, even where the family of its address is the second choice.
        found("team/q", "[fd00::2]:8000", false),
    ];
    for order in [[&v6, &v4, &leaving], [&leaving, &v4, &v6], [&v4, &leaving, &v6]] {
        assert_eq!(slices::found(order.into_iter(), &Port::Number(8000), Engine::Vllm), expected);
    }
}

#[test]
fn what_is_no_pod_is_named_by_its_address_and_what_has_none_is_left_out() {
    let bare = json!({"addresses": ["10.0.0.1"]});
    let named = json!({"addresses": ["engine.example"]});
    let all = [slice(&[bare, named])];
    assert_eq!(
        slices::found(all.iter(), &Port::Number(8000), Engine::Vllm),
        [found("10.0.0.1:8000", "10.0.0.1:8000", false)]
    );
}

#[test]
fn pools_choose_ready_pods_by_all_their_labels() {
    let chosen = pool(json!({
        "selector": {"matchLabels": {"app": "llama", "tier": "gpu"}},
        "targetPorts": [{"number": 8000}],
        "endpointPickerRef": {"name": "x"},
    }))
    .unwrap();
    let labels = json!({"app": "llama", "tier": "gpu", "more": "yes"});
    let pods: Vec<_> = [
        pod("open", labels.clone(), "True", false),
        pod("leaving", labels.clone(), "True", true),
        pod("starting", labels.clone(), "False", false),
        pod("other", json!({"app": "llama"}), "True", false),
    ]
    .into_iter()
    .flatten()
    .collect();
    assert_eq!(
        pools::found(&chosen, pods.iter(), Engine::Vllm),
        [found("team/leaving", "10.0.0.7:8000", true), found("team/open", "10.0.0.7:8000", false)]
    );
    assert_eq!(pools::labels_text(&chosen.labels), "app=llama,tier=gpu");
}

#[test]
fn in_a_rollout_to_another_port_each_pod_of_ours_is_asked_at_its_own() {
    let pod = |name: &str, port: u16| -> pods::PodMember {
        let mut object = engine_pod(name, "a");
        object["spec"] = json!({"containers": [
            {"name": "beside", "ports": [{"name": "metrics", "containerPort": 1}]},
            {"name": "engine", "ports": [{"name": "http", "containerPort": port}]},
        ]});
        pods::member(&serde_json::from_value(object).unwrap()).unwrap()
    };
    let bare = pods::member(&serde_json::from_value(engine_pod("bare", "a")).unwrap()).unwrap();
    let members = [pod("new", 8001), pod("old", 8000), bare];
    let ports = |named_port: bool| -> Vec<u16> {
        let selector = selector::read("flyball.dev/model=a").unwrap();
        let variant = VariantPlace { selector, port: 8001, named_port, engine: Engine::Vllm };
        let place = PodsPlace { namespace: "team".to_owned(), variants: vec![variant] };
        let found = pods::found(&place, members.iter());
        found.iter().map(|found| found.address.port()).collect()
    };
    // By name: bare, new, old.
    assert_eq!(ports(true), [8001, 8001, 8000]);
    assert_eq!(ports(false), [8001, 8001, 8001], "of an adopted one the operator knows it");
}

#[test]
fn each_port_of_a_pool_is_an_engine() {
    let spec = json!({
        "selector": {"matchLabels": {"app": "llama"}},
        "targetPorts": [{"number": 8000}, {"number": 8001}],
    });
    let pods: Vec<_> = pod("p", json!({"app": "llama"}), "True", false).into_iter().collect();
    let names: Vec<_> = pools::found(&pool(spec).unwrap(), pods.iter(), Engine::Vllm)
        .into_iter()
        .map(|found| (found.name, found.address.port()))
        .collect();
    assert_eq!(names, [("team/p:8000".to_owned(), 8000), ("team/p:8001".to_owned(), 8001)]);
}

#[test]
fn a_pool_that_says_too_little_chooses_nothing() {
    let everything = pool(json!({"selector": {}, "targetPorts": [{"number": 1}]})).unwrap();
    let pods: Vec<_> = pod("p", json!({"app": "x"}), "True", false).into_iter().collect();
    assert_eq!(pools::found(&everything, pods.iter(), Engine::Vllm), []);
    assert_eq!(pool(json!({"targetPorts": [{"number": 1}]})), None);
    assert_eq!(pool(json!({"selector": {}, "targetPorts": [{"number": 70_000}]})), None);
}

#[test]
fn pods_are_watched_by_what_all_pools_share() {
    let chosen = |labels: Value| {
        let spec = json!({"selector": {"matchLabels": labels}, "targetPorts": [{"number": 1}]});
        pool(spec).unwrap()
    };
    let a = chosen(json!({"app": "a", "role": "engine"}));
    let b = chosen(json!({"app": "b", "role": "engine"}));
    let c = chosen(json!({"app": "c"}));
    assert_eq!(pools::shared_selector([&a].into_iter()).unwrap(), "app=a,role=engine");
    let shared = |pools: &[&pools::Chosen]| pools::shared_selector(pools.iter().copied());
    assert_eq!(shared(&[&a, &b]).unwrap(), "app in (a,b),role=engine");
    assert_eq!(shared(&[&a, &b, &c]).unwrap(), "app in (a,b,c)");
    assert_eq!(shared(&[&a, &chosen(json!({"tier": "x"}))]).unwrap(), "");
    assert_eq!(pools::shared_selector([].into_iter()), None);
}

#[test]
fn a_list_is_seen_only_when_it_is_whole() {
    let mut mirror = Mirror::default();
    assert_eq!(mirror.whole(), None);
    assert!(!mirror.take(Step::Start));
    assert!(!mirror.take(Step::Put("a".to_owned(), Some(1))));
    assert_eq!(mirror.whole(), None);
    assert!(mirror.take(Step::Done));
    assert!(mirror.take(Step::Put("b".to_owned(), Some(2))));
    assert!(!mirror.take(Step::Put("b".to_owned(), Some(2))), "nothing new");
    // A list that breaks off leaves everything as it was; the next one begins from nothing.
    mirror.take(Step::Start);
    mirror.take(Step::Put("c".to_owned(), Some(3)));
    assert_eq!(mirror.whole().unwrap().len(), 2);
    mirror.take(Step::Start);
    mirror.take(Step::Put("a".to_owned(), Some(1)));
    assert!(mirror.take(Step::Done));
    assert_eq!(mirror.whole().unwrap().keys().collect::<Vec<_>>(), ["a"]);
    assert!(mirror.take(Step::Put("a".to_owned(), None)), "not of use any more");
    mirror.take(Step::Stale);
    assert_eq!(mirror.whole(), None);
}

#[test]
fn a_model_is_listed_once_its_namespace_is() {
    let place = DiscoveryPlace::Service(ServicePlace {
        namespace: "team".to_owned(),
        name: "llama".to_owned(),
        port: Port::Number(8000),
    });
    let places = BTreeMap::from([("m".to_owned(), (place, Engine::Vllm))]);
    let mut world = World::new(places);
    let change = |step| Change::Slices("team".to_owned(), step);
    assert_eq!(world.findings()["m"], None);
    world.take(change(Step::Start));
    world.take(change(Step::Put(
        "a".to_owned(),
        Some(slice(&[endpoint("p", "10.0.0.1", json!({}))])),
    )));
    assert_eq!(world.findings()["m"], None);
    assert!(world.take(change(Step::Done)));
    assert_eq!(world.findings()["m"], Some(vec![found("team/p", "10.0.0.1:8000", false)]));
    assert_eq!(world.wrong_ports(), BTreeMap::new());
}

fn listing(engines: &[FoundEngines]) -> Listing {
    Listing { models: BTreeMap::from([("m".to_owned(), engines.to_vec())]) }
}

fn findings(found: Option<&[FoundEngines]>) -> BTreeMap<String, Option<Vec<FoundEngines>>> {
    BTreeMap::from([("m".to_owned(), found.map(<[FoundEngines]>::to_vec))])
}

#[test]
fn the_loss_of_every_engine_is_believed_only_once_it_is_confirmed() {
    let open = found("a", "10.0.0.1:1", false);
    let before = listing(std::slice::from_ref(&open));
    let none = BTreeSet::new();
    let doubted = settle(&before, findings(Some(&[])), &none);
    assert_eq!((&doubted.listing, doubted.doubted.len()), (&before, 1));
    let confirmed = settle(&before, findings(Some(&[])), &BTreeSet::from(["m".to_owned()]));
    assert_eq!((confirmed.listing, confirmed.doubted.len()), (listing(&[]), 0));
    // What drained to its end went as planned.
    let drained = listing(&[found("a", "10.0.0.1:1", true)]);
    assert_eq!(settle(&drained, findings(Some(&[])), &none).listing, listing(&[]));
    // Not listed is not empty.
    assert_eq!(settle(&before, findings(None), &none).listing, before);
    assert_eq!(settle(&Listing::default(), findings(None), &none).listing, Listing::default());
}

#[test]
fn more_engines_than_may_be_change_nothing() {
    let before = listing(&[found("a", "10.0.0.1:1", false)]);
    let many = vec![found("b", "10.0.0.2:1", false); ENGINES + 1];
    let settled = settle(&before, findings(Some(&many)), &BTreeSet::new());
    assert!(settled.too_many);
    assert_eq!(settled.listing, before);
}

#[test]
fn a_gateway_that_begins_waits_for_all_models_but_not_for_ever() {
    let began = Instant::now();
    let standing = DiscoveryStatus::default();
    let at = |seconds, models: &[&str]| {
        let readiness = Readiness::since(began);
        readiness.judge(&listing(&[]), models, &standing, began + Duration::from_secs(seconds))
    };
    assert_eq!(at(0, &["m"]), Ok(()), "a model without engines is listed");
    assert_eq!(at(0, &[]), Ok(()));
    let both = ["m", "n"];
    assert_eq!(at(14, &both), Err("engines of 1 of 2 models: n: not listed yet".to_owned()));
    assert_eq!(at(15, &both), Ok(()), "one bad model keeps nobody else from being served");
    // Nothing to serve: another gateway should have the requests.
    assert!(at(3_600, &["n"]).unwrap_err().starts_with("engines of 1 of 1 models: n"));
}

#[test]
fn a_gateway_waits_until_model_services_are_listed_and_serves_what_it_has_meanwhile() {
    let (began, standing) = (Instant::now(), DiscoveryStatus::default());
    let at = |seconds, models: &[&str], awaits| {
        let readiness = Readiness::since(began);
        readiness.await_model_services(awaits);
        readiness.judge(&listing(&[]), models, &standing, began + Duration::from_secs(seconds))
    };
    assert_eq!(at(3_600, &[], true), Err("ModelServices: not listed yet".to_owned()));
    assert_eq!(at(0, &[], false), Ok(()), "there are none");
    assert!(at(14, &["m"], true).is_err());
    assert_eq!(at(15, &["m"], true), Ok(()), "what the file names is served");
    let failing = Failing {
        models: Arc::default(),
        error: "secret words: Forbidden".to_owned(),
        hint: "mend the Role",
    };
    let _noted = standing.note("modelservices of team", failing);
    let why = at(0, &[], true).unwrap_err();
    assert_eq!(why, "ModelServices: cannot watch modelservices of team; hint: mend the Role");
}

#[test]
fn who_was_ready_stays_so_whatever_the_settings_ask_for() {
    let (began, standing) = (Instant::now(), DiscoveryStatus::default());
    let readiness = Readiness::since(began);
    let judge = |models: &[&str]| readiness.judge(&listing(&[]), models, &standing, began);
    assert!(judge(&["n"]).is_err());
    assert!(judge(&["m"]).is_ok());
    assert!(judge(&["m", "n"]).is_ok());
    assert!(judge(&["n"]).is_ok());
}

#[test]
fn what_keeps_a_model_from_being_listed_is_named_with_what_to_do() {
    let (began, standing) = (Instant::now(), DiscoveryStatus::default());
    let failing = Failing {
        models: Arc::new(BTreeSet::from(["n".to_owned()])),
        error: "secret words: Forbidden".to_owned(),
        hint: "mend the Role",
    };
    let noted = standing.note("endpointslices of team", failing);
    let why = Readiness::since(began).judge(&listing(&[]), &["n"], &standing, began).unwrap_err();
    assert!(why.ends_with("n: cannot watch endpointslices of team; hint: mend the Role"), "{why}");
    let problem = &standing.failing_models()["n"];
    assert!(problem.contains("Forbidden; hint: mend the Role"), "{problem}");
    assert_eq!(standing.failing_watches(), 1);
    drop(noted);
    assert_eq!((standing.failing_watches(), standing.failing_models().len()), (0, 0));
}

proptest! {
    /// Whatever is found, a model that had an open engine never has none without a confirmation.
    #[test]
    fn no_open_engine_is_lost_unconfirmed(
        before in prop::collection::vec(any::<bool>(), 0..4),
        after in prop::option::of(prop::collection::vec(any::<bool>(), 0..4)),
        confirmed: bool,
    ) {
        let engines = |draining: &[bool]| -> Vec<FoundEngines> {
            draining.iter().map(|&draining| found("a", "10.0.0.1:1", draining)).collect()
        };
        let confirmed = confirmed.then(|| "m".to_owned()).into_iter().collect::<BTreeSet<_>>();
        let old = listing(&engines(&before));
        let after = after.map(|after| engines(&after));
        let settled = settle(&old, findings(after.as_deref()), &confirmed);
        if before.contains(&false) && confirmed.is_empty() {
            prop_assert!(!settled.listing.models["m"].is_empty());
        }
        // Settling again changes nothing.
        let again = settle(&settled.listing, findings(after.as_deref()), &confirmed);
        prop_assert_eq!(again.listing, settled.listing);
    }
}
