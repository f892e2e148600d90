use super::*;
use crate::observe::testing;
use crate::observe::{NodeFacts, PodFacts, Workload};
use flyball_resources::model_service::TargetKind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};

const MINUTE: Micros = Micros::from_seconds(60);

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

fn of<T: serde::de::DeserializeOwned>(kind: &str, metadata: Value, spec: Value) -> T {
    let object = json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

fn service(scaling: Value) -> ModelService {
    let variant = json!({
        "pool": "h100",
        "targetRef": {"kind": "Deployment", "name": "m"},
        "coldStartSeconds": 60,
        "capacity": {
            "prefillTokensPerSecond": 10_000, "decodeTokensPerSecond": 1_000,
            "residentTokens": 1_000_000,
        },
    });
    let spec = json!({
        "objectives": {"firstTokenMilliseconds": 500}, "scaling": scaling, "variants": [variant],
    });
    of("ModelService", json!({"name": "m", "namespace": "a"}), spec)
}

fn pool() -> Pool {
    let spec = json!({
        "accelerator": "h100", "prices": [{"purchase": "OnDemand", "perGpuHour": "4.00"}],
    });
    of("Pool", json!({"name": "h100"}), spec)
}

fn facts() -> Facts {
    let selector = LabelSelector {
        match_labels: Some([("app".to_owned(), "m".to_owned())].into()),
        ..LabelSelector::default()
    };
    let workload = Workload { replicas: 2, selector, ..Workload::default() };
    let pod = |name: &str| PodFacts {
        name: name.to_owned(),
        uid: name.to_owned(),
        labels: [("app".to_owned(), "m".to_owned())].into(),
        node: Some("n".to_owned()),
        created: at(0),
        scheduled: Some(at(0)),
        ready: Some(at(60)),
        ..PodFacts::default()
    };
    let node = NodeFacts {
        allocatable: [("nvidia.com/gpu".to_owned(), 64)].into(),
        usable: true,
        ..NodeFacts::default()
    };
    Facts {
        models: vec![Arc::new(service(json!({"mode": "Act", "min": 1, "max": 20})))],
        pools: vec![Arc::new(pool())],
        workloads: [(("a".to_owned(), TargetKind::Deployment, "m".to_owned()), workload)].into(),
        pods: [("a".to_owned(), vec![pod("x"), pod("y")])].into(),
        nodes: [("n".to_owned(), node)].into(),
        ..Facts::default()
    }
}

fn signals(seconds: u64) -> Signals {
    let reading = testing::gateway(at(seconds), (9.0, 1_000.0, 100.0));
    Signals { gateways: [("a/m".parse().unwrap(), vec![reading])].into(), ..Signals::default() }
}

/// A world that was looked at for an hour, and who looked.
fn world() -> (WhatIfWorld, Brain) {
    let (facts, mut learnt, mut brain) = (facts(), ObservedMemory::default(), Brain::default());
    let (mut now, mut last) = (100, signals(100));
    for _ in 0..240 {
        now += 15;
        last = signals(now);
        let seen = observe(&facts, &last, &mut learnt, (at(now), MINUTE));
        brain.decide(&seen);
    }
    let tick = Micros::from_seconds(15);
    (
        WhatIfWorld {
            facts,
            signals: last,
            learnt,
            laws: Default::default(),
            time: (at(now), MINUTE),
            tick,
        },
        brain,
    )
}

fn ask(changes: Changes) -> Result<WhatIfOutcome, Vec<String>> {
    let (world, brain) = world();
    imagine(&world, &brain, &Changes { model: Some("a/m".to_owned()), ..changes })
}

fn sides(outcome: &WhatIfOutcome) -> (&WhatIfSide, &WhatIfSide) {
    let model = &outcome.models[0];
    (model.before.as_ref().unwrap(), model.after.as_ref().unwrap())
}

#[test]
fn the_same_world_gives_the_same_decision() {
    let outcome = ask(Changes::default()).unwrap();
    let (before, after) = sides(&outcome);
    assert_eq!(before, after);
    assert_eq!(before.replicas, 2, "{before:?}");
    assert_eq!(before.hourly_cost.as_deref(), Some("8.00"));
}

#[test]
fn more_work_takes_more_replicas_and_costs_more() {
    let outcome = ask(Changes { rate_percent: Some(400), ..Changes::default() }).unwrap();
    let (before, after) = sides(&outcome);
    assert!(after.replicas > before.replicas, "{after:?}");
    let cost = |side: &WhatIfSide| decimal::micros(side.hourly_cost.as_ref().unwrap()).unwrap();
    assert_eq!(cost(after), i64::from(after.replicas) * 4_000_000);
}

#[test]
fn bounds_and_prices_are_taken_as_told() {
    let outcome = ask(Changes { min: Some(5), ..Changes::default() }).unwrap();
    let (_, after) = sides(&outcome);
    assert_eq!(after.replicas, 5, "{after:?}");
    let price = |purchase| OtherPrice {
        pool: "h100".to_owned(),
        purchase,
        per_gpu_hour: "1.50".to_owned(),
    };
    let outcome = ask(Changes { prices: vec![price(None)], ..Changes::default() }).unwrap();
    let (_, after) = sides(&outcome);
    let expected = decimal::text(i64::from(after.replicas) * 1_500_000, 2);
    assert_eq!(after.hourly_cost, Some(expected));
}

#[test]
fn a_lost_pool_has_nothing_to_give() {
    let outcome = ask(Changes { lost_pools: vec!["h100".to_owned()], ..Changes::default() });
    let outcome = outcome.unwrap();
    let (before, after) = sides(&outcome);
    assert!(before.replicas > 0);
    assert_eq!(after.replicas, 0, "{after:?}");
    assert!(["Capacity", "PoolLimit"].contains(&after.bound.as_str()), "{after:?}");
}

#[test]
fn specs_of_a_file_replace_those_that_are_there() {
    let (world, brain) = world();
    let frozen = service(json!({"mode": "Act", "min": 7, "max": 9}));
    let mut other = service(json!({}));
    other.metadata.name = Some("new".to_owned());
    let changes = Changes { model_services: vec![frozen, other], ..Changes::default() };
    let outcome = imagine(&world, &brain, &changes).unwrap();
    let names: Vec<&str> = outcome.models.iter().map(|model| model.model.as_str()).collect();
    assert_eq!(names, ["a/m", "a/new"]);
    assert_eq!(sides(&outcome).1.replicas, 7);
    assert_eq!(outcome.models[1].before, None);
    assert!(outcome.models[1].after.is_some());
}

#[test]
fn what_cannot_be_is_said_all_at_once() {
    let problems = ask(Changes {
        min: Some(30),
        lost_pools: vec!["a100".to_owned()],
        prices: vec![OtherPrice {
            pool: "h100".to_owned(),
            purchase: None,
            per_gpu_hour: "cheap".to_owned(),
        }],
        ..Changes::default()
    });
    let problems = problems.unwrap_err();
    assert_eq!(
        problems,
        [
            "min 30 is above max 20: give both",
            "there is no pool a100; there are h100",
            "a price is a decimal such as 2.50, not \"cheap\"",
        ]
    );
    let (world, brain) = world();
    let nobody = Changes { model: Some("a/other".to_owned()), ..Changes::default() };
    let problems = imagine(&world, &brain, &nobody).unwrap_err();
    assert_eq!(problems, ["the operator manages no model a/other"]);
}

#[test]
fn imagining_leaves_no_trace() {
    let (world, mut brain) = world();
    let changes =
        Changes { model: Some("a/m".to_owned()), rate_percent: Some(1_000), ..Changes::default() };
    let mut untouched = brain.clone();
    imagine(&world, &brain, &changes).unwrap();
    let seen = world.seen(&world.facts);
    assert_eq!(brain.decide(&seen).decision, untouched.decide(&seen).decision);
}
