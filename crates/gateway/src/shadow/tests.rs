//! What is told of whom, without a network and without the thread.

use super::*;
use crate::settings::{ModelSettings, RoutingSetting as Set};
use flyball_core::units::Tokens;
use flyball_engines::Engine;
use flyball_fleet::{FleetEndpoint, FoundEngines, Listing};
use flyball_telemetry::metrics::{Metric, Metrics};
use std::time::Duration;

fn settings(names: &[&str], policy: Set, shadow: &[Set]) -> GatewaySettingsFile {
    let model = |name: &&str| ModelSettings {
        name: (*name).to_owned(),
        policy,
        shadow: shadow.to_vec(),
        ..ModelSettings::default()
    };
    GatewaySettingsFile {
        models: names.iter().map(model).collect(),
        ..GatewaySettingsFile::default()
    }
}

fn fleet(models: &[&str], engines: u16) -> Arc<Fleet> {
    let found = |port| FoundEngines {
        name: format!("engine-{port}"),
        address: ([127, 0, 0, 1], port).into(),
        uid: None,
        draining: false,
        engine: Engine::Vllm,
    };
    let all = |name: &&str| ((*name).to_owned(), (1..=engines).map(found).collect());
    Arc::new(Fleet::default().after(&Listing { models: models.iter().map(all).collect() }))
}

fn arrival(prefixes: &[u64], key: u64) -> ShadowArrival<'_> {
    let prompt = Tokens::new(prefixes.len() as u64 * 256);
    ShadowArrival { prefixes, block_tokens: 256, prompt, output: Tokens::new(100), key }
}

/// The desk of these shadows, which is given what a thread would get.
fn desk(shadows: &Shadows, began: Instant) -> Desk {
    let mut desk = Desk::new(Arc::clone(&shadows.known), began);
    desk.update();
    desk
}

/// 600 requests of 40 conversations, five a second, each with a first token and an end.
fn live(desk: &mut Desk, fleet: &Fleet, began: Instant) {
    let engines: &[Arc<FleetEndpoint>] = &fleet.model("m").unwrap().endpoints;
    let model: Arc<str> = "m".into();
    for number in 0..600 {
        let prefixes: Box<[u64]> = (0..24).map(|block| number % 40 * 1_000 + block).collect();
        let what = What::Arrived {
            prefixes,
            block_tokens: 256,
            prompt: Tokens::new(24 * 256),
            output: Tokens::new(100),
            key: number,
            engine: engines[number as usize % engines.len()].key,
        };
        let at = began + Duration::from_millis(number * 200);
        let first = at + Duration::from_millis(100 + number % 7 * 10);
        for (at, what) in [
            (at, what),
            (first, What::First),
            (first + Duration::from_millis(50), What::End { output: Some(20) }),
        ] {
            desk.take(&Message { at, model: Arc::clone(&model), number, what });
        }
    }
    desk.update();
}

#[test]
fn only_models_that_want_it_are_followed_and_no_more_than_a_few() {
    let nobody = Arc::new(Shadows::new(&settings(&["m"], Set::Prefix, &[])));
    assert!(nobody.queue.get().is_none(), "no thread");
    assert!(nobody.arrived(&"m".into(), &arrival(&[1], 1), 5).is_none());
    let many = ["a", "b", "c", "d", "e"];
    let some = Arc::new(Shadows::new(&settings(&many, Set::Prefix, &[Set::LeastLoad])));
    assert!(some.arrived(&"d".into(), &arrival(&[1], 1), 5).is_some());
    assert!(some.arrived(&"e".into(), &arrival(&[1], 1), 5).is_none());
    some.follow(&settings(&many, Set::Prefix, &[]));
    assert!(some.arrived(&"d".into(), &arrival(&[1], 1), 5).is_none());
}

#[test]
fn a_report_is_told_as_json_and_as_metrics() {
    let shadows = Shadows::new(&settings(&["m"], Set::RoundRobin, &[]));
    let began = Instant::now();
    let mut desk = {
        // Settings of a model that is scored, without the thread that they would start.
        let line = Line { live: RoutingPolicy::RoundRobin, others: vec![RoutingPolicy::Prefix] };
        shadows.known.scored.store(Arc::new([("m".into(), Arc::new(line))].into()));
        desk(&shadows, began)
    };
    let fleet = fleet(&["m"], 7);
    shadows.list(&fleet);
    desk.update();
    let early: serde_json::Value = serde_json::from_str(&shadows.json()).unwrap();
    assert_eq!(early["models"][0]["live"], "round-robin");
    assert_eq!(early["models"][0]["policies"][1]["regretSeconds"], serde_json::Value::Null);
    live(&mut desk, &fleet, began);
    let value: serde_json::Value = serde_json::from_str(&shadows.json()).unwrap();
    let model = &value["models"][0];
    let (turns, prefix) = (&model["policies"][0], &model["policies"][1]);
    assert_eq!((&turns["policy"], &turns["regretSeconds"]), (&"round-robin".into(), &0.0.into()));
    assert!(prefix["hitShare"].as_f64() > turns["hitShare"].as_f64(), "{model:#}");
    assert!(model["measuredTtftSeconds"].as_f64() > Some(0.1), "{model:#}");
    assert_eq!(model["engines"]["cacheTokens"], serde_json::Value::Null, "nobody told");
    let page = Metrics::new("1").with(Arc::new(shadows)).encode().unwrap();
    let ours = |metric: &&Metric| metric.name().starts_with("flyball_gateway_shadow_");
    for metric in Metric::ALL.iter().filter(ours) {
        let labels = match metric.labels() {
            [] => " 0",
            ["model"] => "{model=\"m\"} ",
            _ => "{model=\"m\",policy=\"prefix\"} ",
        };
        let line = format!("{}{labels}", metric.name());
        assert!(page.contains(&line), "{line}\n{page}");
    }
}

#[test]
fn other_policies_are_another_trial_and_the_same_ones_are_not() {
    let shadows = Shadows::new(&settings(&["m"], Set::Prefix, &[]));
    let began = Instant::now();
    let want = |live| {
        let line = Line { live, others: vec![RoutingPolicy::LeastLoad] };
        shadows.known.scored.store(Arc::new([("m".into(), Arc::new(line))].into()));
    };
    want(RoutingPolicy::Prefix);
    let fleet = fleet(&["m"], 3);
    shadows.list(&fleet);
    let mut desk = desk(&shadows, began);
    live(&mut desk, &fleet, began);
    let scored = || shadows.known.reports().values().map(|report| report.requests).sum::<u64>();
    assert!(scored() > 500);
    want(RoutingPolicy::Prefix);
    desk.update();
    assert!(scored() > 500);
    want(RoutingPolicy::RoundRobin);
    desk.update();
    assert_eq!(scored(), 0);
}

#[test]
fn what_finds_the_queue_full_is_counted_and_nobody_waits() {
    let shadows = Arc::new(Shadows::new(&settings(&["m"], Set::Prefix, &[])));
    let (sender, _receiver) = sync_channel(1);
    shadows.queue.set(sender).unwrap();
    let line = Line { live: RoutingPolicy::Prefix, others: vec![RoutingPolicy::LeastLoad] };
    shadows.known.scored.store(Arc::new([("m".into(), Arc::new(line))].into()));
    let model: Arc<str> = "m".into();
    assert!(shadows.arrived(&model, &arrival(&[1], 1), 5).is_some());
    assert!(shadows.arrived(&model, &arrival(&[1], 2), 5).is_none());
    assert_eq!(shadows.dropped(), 1);
}
