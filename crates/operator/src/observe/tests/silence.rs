//! Gateways and engines that should tell and do not.

use super::*;
use crate::decide::Brain;
use flyball_core::decision::Decision;
use flyball_core::reason::Reason;
use flyball_core::snapshot::Demand;

/// A pod that runs under the account of gateways.
fn gateway_pod(name: &str) -> PodFacts {
    PodFacts { account: Some("gateway".to_owned()), ..pod(name, "10.0.0.9") }
}

/// A cluster with these gateways in it.
fn with_gateways(service: Arc<ModelService>, engines: Vec<PodFacts>, names: &[&str]) -> Facts {
    let mut facts = facts(service, engines);
    let pods = names.iter().map(|name| gateway_pod(name)).collect();
    facts.pods.insert("flyball".to_owned(), pods);
    facts
}

/// A model that sleeps, and has no engine.
fn sleepy() -> Arc<ModelService> {
    let mut service = ModelService::clone(&adopted());
    let scaling = json!({"mode": "Act", "min": 0, "max": 9, "sleep": "WhenIdle"});
    service.spec.scaling = serde_json::from_value(scaling).unwrap();
    Arc::new(service)
}

/// A report without an engine, with so much that waits.
fn asleep(gateway: &str, reported: u64, backlog_tokens: u64) -> GatewayReport {
    let model = ModelDemand { model: "m".to_owned(), backlog_tokens, ..ModelDemand::default() };
    GatewayReport {
        models: [model].into(),
        endpoints: [].into(),
        ..report(gateway, reported, 0, 0, true)
    }
}

fn decide(facts: &Facts, signals: &Signals, now: u64) -> Decision {
    let seen = observe(facts, signals, &mut ObservedMemory::default(), (at(now), MAX_AGE));
    let decided = Brain::default().decide(&seen);
    assert_eq!(decided.broken, []);
    decided.decision
}

/// Looks every second while both gateways talk, from 1,000 s on.
fn talked(gateways: &mut Gateways, facts: &Facts, seconds: u64) -> Signals {
    let mut last = Signals::default();
    for second in 0..=seconds {
        last = Signals::default();
        let reported = 1_000 + second;
        let reports = [
            report("one", reported, 10 * second, 2, true),
            report("two", reported, 10 * second, 1, true),
        ];
        add(gateways, &mut last, &reports, facts, reported);
    }
    last
}

fn decode(demand: &Demand) -> u64 {
    demand.decode.last_seen().map_or(0, |rate| rate.get())
}

#[test]
fn work_that_waits_at_one_gateway_wakes_a_model_though_another_is_silent() {
    let facts = with_gateways(sleepy(), vec![], &["one", "two"]);
    let mut signals = Signals::default();
    // The second told something 61 seconds ago, and its pod is there.
    let silent = GatewayReport { gone: true, ..asleep("two", 939, 0) };
    let reports = [asleep("one", 1_000, 1), silent];
    add(&mut Gateways::default(), &mut signals, &reports, &facts, 1_000);
    let demand = model(&facts, &signals, 1_000).demand;
    assert_eq!(demand.freshness(), Freshness::Stale);
    assert_eq!(demand.backlog.fresh().unwrap().get(), 1);
    assert_eq!(demand.sources, Sources { reporting: 1, silent: 1 });
    let decision = decide(&facts, &signals, 1_000);
    assert_eq!(decision.models[0].targets[0].replicas.get(), 1);
    assert_eq!(decision.models[0].reason, Reason::Waking);
}

#[test]
fn a_silent_gateway_counts_with_what_it_told_until_its_pod_is_gone() {
    let engines = || vec![pod("x", "10.0.0.1"), pod("y", "10.0.0.2")];
    let facts = with_gateways(adopted(), engines(), &["one", "two"]);
    let mut gateways = Gateways::default();
    let both = talked(&mut gateways, &facts, 40);
    let whole = model(&facts, &both, 1_040).demand;
    assert_eq!((whole.freshness(), decode(&whole)), (Freshness::Fresh, 200));
    // An hour later one still talks; the node of the other is lost, and its pod cannot be deleted.
    let silent = GatewayReport { gone: true, ..report("two", 1_040, 400, 1, true) };
    let later =
        |gateways: &mut Gateways, facts: &Facts, reports: &dyn Fn(u64) -> Vec<GatewayReport>| {
            let mut last = Signals::default();
            for reported in 4_600..4_640 {
                last = Signals::default();
                add(gateways, &mut last, &reports(reported), facts, reported);
            }
            model(facts, &last, 4_640).demand
        };
    let one = |reported: u64| report("one", reported, 10 * (reported - 1_000), 2, true);
    let lost = later(&mut gateways, &facts, &|reported| vec![one(reported), silent.clone()]);
    assert_eq!((lost.freshness(), decode(&lost)), (Freshness::Stale, 200));
    // Its pod is deleted: what it had is gone with it, and the rest is the whole.
    let without = with_gateways(adopted(), engines(), &["one"]);
    let rest = later(&mut gateways, &without, &|reported| vec![one(reported), silent.clone()]);
    assert_eq!((rest.freshness(), decode(&rest)), (Freshness::Fresh, 100));
    // So is that of a pod that ended.
    let mut ended = facts.clone();
    ended.pods.get_mut("flyball").unwrap()[1].over = true;
    let rest = later(&mut gateways, &ended, &|reported| vec![one(reported), silent.clone()]);
    assert_eq!(rest.freshness(), Freshness::Fresh);
}

#[test]
fn a_gateway_outside_of_the_cluster_counts_for_as_long_as_it_is_known() {
    let facts = facts(adopted(), vec![pod("x", "10.0.0.1")]);
    let mut gateways = Gateways::default();
    talked(&mut gateways, &facts, 40);
    let silent = GatewayReport { gone: true, ..report("two", 1_040, 400, 1, true) };
    let mut signals = Signals::default();
    let reports = [report("one", 90_000, 10, 2, true), silent];
    assert_eq!(add(&mut gateways, &mut signals, &reports, &facts, 90_000), BTreeSet::new());
    let demand = model(&facts, &signals, 90_000).demand;
    assert_eq!((demand.freshness(), demand.sources.silent), (Freshness::Stale, 1 + 1));
}

#[test]
fn a_gateway_that_was_not_heard_yet_may_serve_anything() {
    let facts = with_gateways(adopted(), vec![pod("x", "10.0.0.1")], &["one", "two"]);
    let mut gateways = Gateways::default();
    talked(&mut gateways, &facts, 40);
    let mut observe = |book: &ReportBook, accounts: &[String], facts: &Facts, listens: u64| {
        let time = (at(1_041), MAX_AGE);
        let (mut signals, mut expected) =
            (Signals::default(), ExpectedInFlight::of(accounts, Micros::from_minutes(1)));
        gateways.add(&mut signals, book, &BTreeSet::new(), facts, time);
        expected.listens(true, at(listens));
        let refused: Vec<String> = book.refused.iter().cloned().collect();
        expected.add(&mut signals.in_flight, facts, &refused, time.0);
        signals.count_unreported(book.crowded || expected.may_still_come(time.0));
        let seen = super::observe(facts, &signals, &mut ObservedMemory::default(), time);
        let silent = seen.models.into_values().next().unwrap().silent;
        (seen.snapshot.models.into_values().next().unwrap().demand.freshness(), silent.join(", "))
    };
    let fresh = || (Freshness::Fresh, String::new());
    let stale = |who: &str| (Freshness::Stale, who.to_owned());
    let unreported = || stale("gateway two, no report yet");
    let account = ["flyball/gateway".to_owned()];
    let one = book_of(&[report("one", 1_041, 410, 2, true)]);
    // The other is a pod of a gateway's account, however long it has run without a word.
    assert_eq!(observe(&one, &account, &facts, 100), unreported());
    let hello =
        GatewayReport { reported_at: None, models: [].into(), ..report("two", 1_041, 0, 0, true) };
    let both = book_of(&[one.reports[0].clone(), hello]);
    assert_eq!(observe(&both, &account, &facts, 100), unreported(), "it has only said hello");
    // Nobody knows under which account gateways run: for a minute some may still come.
    let may_come = stale("gateways that may exist and have not connected");
    assert_eq!(observe(&one, &[], &facts, 1_000), may_come);
    assert_eq!(observe(&one, &[], &facts, 900), fresh());
    // One that is refused is there, and so are those that had to make room.
    let refused = ReportBook { refused: ["two".to_owned()].into(), ..one.clone() };
    assert_eq!(observe(&refused, &[], &facts, 100), unreported());
    let crowded = ReportBook { crowded: true, ..one.clone() };
    assert_eq!(observe(&crowded, &[], &facts, 100).0, Freshness::Stale);
    // Pods of a tenant hold nobody up, whatever they are called.
    let mut elsewhere = facts.clone();
    let pods = elsewhere.pods.remove("flyball").unwrap();
    elsewhere.pods.insert("tenant".to_owned(), pods);
    assert_eq!(observe(&one, &account, &elsewhere, 100), fresh());
}

#[test]
fn what_did_not_fit_into_a_report_is_not_nothing() {
    let facts = facts(adopted(), vec![pod("x", "10.0.0.1")]);
    let mut gateways = Gateways::default();
    talked(&mut gateways, &facts, 40);
    let crowded =
        GatewayReport { models: [].into(), left_out: 1, ..report("two", 1_041, 0, 0, true) };
    let mut signals = Signals::default();
    add(&mut gateways, &mut signals, &[report("one", 1_041, 410, 2, true), crowded], &facts, 1_041);
    let demand = model(&facts, &signals, 1_041).demand;
    assert_eq!(demand.sources, Sources { reporting: 1, silent: 1 });
}

#[test]
fn a_wake_counts_before_the_first_report() {
    let facts = with_gateways(sleepy(), vec![], &["one"]);
    let mut signals = Signals::default();
    let new = GatewayReport { reported_at: None, models: [].into(), ..asleep("one", 1_000, 0) };
    let waited_for = BTreeSet::from([PublicName { name: "m".to_owned(), ..PublicName::default() }]);
    Gateways::default().add(
        &mut signals,
        &book_of(&[new]),
        &waited_for,
        &facts,
        (at(1_000), MAX_AGE),
    );
    let decision = decide(&facts, &signals, 1_000);
    assert_eq!(decision.models[0].targets[0].replicas.get(), 1);
}

#[test]
fn an_engine_that_is_not_heard_takes_nothing_away_and_does_not_hold_others_up() {
    let both = facts(adopted(), vec![pod("x", "10.0.0.1"), pod("y", "10.0.0.2")]);
    let place = |pod: &str| ("a".to_owned(), pod.to_owned());
    let seen = |y: Option<EngineReading>| {
        let mut signals = Signals::default();
        signals.engines.insert(place("x"), engine(1_000));
        signals.engines.extend(y.map(|y| (place("y"), y)));
        model(&both, &signals, 1_010).demand
    };
    // Scraped five minutes ago, never, or without a number: in each case the first is still heard.
    let broken = EngineReading {
        waiting: Some(f64::NAN),
        ..testing::engine(at(1_000), (5.0, f64::NAN, 100.0))
    };
    for (y, prefill) in [(Some(engine(700)), 4_000), (None, 2_000), (Some(broken), 2_000)] {
        let demand = seen(y);
        assert_eq!(demand.freshness(), Freshness::Stale);
        assert_eq!(demand.sources, Sources { reporting: 1, silent: 1 });
        assert_eq!(demand.prefill.last_seen().unwrap().get(), prefill, "what is known counts");
        assert!(demand.backlog.fresh().unwrap().get() >= 800, "one sees work wait");
    }
    // Nobody sees work wait now: that nothing waits, the silent one does not say.
    let idle = EngineReading { waiting: Some(0.0), ..engine(1_000) };
    let mut signals = Signals::default();
    signals.engines.insert(place("x"), idle);
    signals.engines.insert(place("y"), engine(700));
    assert_eq!(model(&both, &signals, 1_010).demand.backlog.freshness(), Freshness::Stale);
}

#[test]
fn old_series_of_an_engine_give_nothing_away_though_gateways_talk() {
    let facts = with_gateways(adopted(), vec![pod("x", "10.0.0.1")], &["one", "two"]);
    let mut signals = talked(&mut Gateways::default(), &facts, 40);
    assert_eq!(model(&facts, &signals, 1_040).demand.freshness(), Freshness::Fresh);
    signals.engines.insert(("a".to_owned(), "x".to_owned()), engine(900));
    let demand = model(&facts, &signals, 1_040).demand;
    assert_eq!((demand.freshness(), demand.sources.is_partial()), (Freshness::Stale, true));
    assert!(demand.backlog.fresh().is_some(), "gateways see work wait");
}
