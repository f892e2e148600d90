use super::demand::Signals;
use super::in_flight::InFlight;
use super::*;
use crate::link::{GatewayReport, ReportBook};
use flyball_core::ids::ModelId;
use flyball_core::reason::Reason;
use flyball_core::snapshot::{Freshness, Observed, ReplicaState, Sources};
use flyball_core::units::{Micros, Timestamp};
use flyball_estimator::CounterWindow;
use flyball_estimator::reading::{
    CacheUsed, EngineCounts, EngineReading, GatewayCounts, GatewayReading,
};
use flyball_resources::ModelService;
use flyball_resources::model_service::{ModelServiceStatus, SpanStatus, TargetKind, VariantStatus};
use flyball_resources::stream::{EndpointLoad, EndpointState, ModelDemand, Protocol, PublicName};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::json;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

mod owners;
mod silence;

const MAX_AGE: Micros = Micros::from_seconds(60);

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

fn id() -> ModelId {
    "a/m".parse().unwrap()
}

fn service(spec: serde_json::Value) -> Arc<ModelService> {
    let service = json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "ModelService",
        "metadata": {"name": "m", "namespace": "a"}, "spec": spec,
    });
    Arc::new(serde_json::from_value(service).unwrap())
}

fn adopted() -> Arc<ModelService> {
    service(json!({
        "objectives": {"firstTokenMilliseconds": 500},
        "variants": [{
            "targetRef": {"kind": "Deployment", "name": "m"},
            "capacity": {"prefillTokensPerSecond": 10000, "decodeTokensPerSecond": 1000, "residentTokens": 100000},
        }],
    }))
}

fn pod(name: &str, ip: &str) -> PodFacts {
    PodFacts {
        name: name.to_owned(),
        uid: name.to_owned(),
        labels: [("app".to_owned(), "m".to_owned())].into(),
        ip: Some(ip.to_owned()),
        node: Some("n".to_owned()),
        created: at(100),
        scheduled: Some(at(110)),
        ready: Some(at(200)),
        ..PodFacts::default()
    }
}

fn facts(service: Arc<ModelService>, pods: Vec<PodFacts>) -> Facts {
    let selector = LabelSelector {
        match_labels: Some([("app".to_owned(), "m".to_owned())].into()),
        ..LabelSelector::default()
    };
    let workload = Workload { replicas: 1, selector, ..Workload::default() };
    let key = ("a".to_owned(), TargetKind::Deployment, "m".to_owned());
    Facts {
        models: vec![service],
        workloads: [(key, workload)].into(),
        pods: [("a".to_owned(), pods)].into(),
        ..Facts::default()
    }
}

/// One that reads 2,000 tokens a second and writes 500, of requests of 400 and 100.
fn engine(seen: u64) -> EngineReading {
    testing::engine(at(seen), (5.0, 400.0, 100.0))
}

fn model(facts: &Facts, signals: &Signals, now: u64) -> flyball_core::snapshot::Model {
    let seen = observe(facts, signals, &mut ObservedMemory::default(), (at(now), MAX_AGE));
    seen.snapshot.models.into_values().next().unwrap()
}

#[test]
fn engines_alone_tell_of_demand_and_each_must() {
    let both = facts(adopted(), vec![pod("x", "10.0.0.1"), pod("y", "10.0.0.2")]);
    let mut signals = Signals::default();
    let place = |pod: &str| ("a".to_owned(), pod.to_owned());
    signals.engines.insert(place("x"), engine(1_000));
    // The other was ready long ago and says nothing: nobody knows the whole.
    assert_eq!(model(&both, &signals, 1_010).demand.freshness(), Freshness::Stale);
    signals.engines.insert(place("y"), engine(990));
    let demand = model(&both, &signals, 1_010).demand;
    assert_eq!(demand.freshness(), Freshness::Fresh);
    assert_eq!(demand.prefill.fresh().unwrap().get(), 4_000);
    assert_eq!(demand.backlog.fresh().unwrap().get(), 2 * 2 * 400);
    assert_eq!(demand.resident.fresh().unwrap().get(), 100_000);
    assert_eq!(demand.prefill.at(), Some(at(990)), "as old as the oldest");
    // An hour later nobody has said anything new.
    assert_eq!(model(&both, &signals, 4_600).demand.freshness(), Freshness::Stale);
}

#[test]
fn what_an_engine_does_not_have_is_not_missing() {
    let one = facts(
        service(json!({ "variants": [{ "targetRef": { "kind": "Deployment", "name": "m" } }] })),
        vec![pod("x", "10.0.0.1")],
    );
    let freshness = |engine: EngineReading| {
        let engines = [(("a".to_owned(), "x".to_owned()), engine)].into();
        let signals = Signals { engines, ..Signals::default() };
        model(&one, &signals, 1_010).demand.freshness()
    };
    // llama-server has no series of its cache; some versions of vLLM do not say how large theirs is.
    for cache_used in [CacheUsed::Untold, CacheUsed::Share(0.4)] {
        assert_eq!(freshness(EngineReading { cache_used, ..engine(1_000) }), Freshness::Fresh);
    }
    for cache_used in [CacheUsed::Missing, CacheUsed::Share(f64::NAN)] {
        assert_eq!(freshness(EngineReading { cache_used, ..engine(1_000) }), Freshness::Missing);
    }
}

#[test]
fn a_replica_that_is_clearly_slower_than_the_others_is_named() {
    let slow = |pace: f64| {
        let both = facts(adopted(), vec![pod("x", "10.0.0.1"), pod("y", "10.0.0.2")]);
        let mut learnt = ObservedMemory::default();
        let mut troubles = Vec::new();
        for now in (1_000..1_090).step_by(15) {
            let writes = |pace: f64| EngineCounts {
                paced_tokens: now as f64 * 8.0 / pace,
                paced_seconds: now as f64 * 8.0,
                ..*engine(now).counts.last().unwrap().1
            };
            let mut signals = Signals::default();
            for (name, pace) in [("x", 0.02), ("y", pace)] {
                let mut one = EngineReading::counted(
                    at(now - 30),
                    EngineCounts { paced_tokens: 0.0, paced_seconds: 0.0, ..writes(1.0) },
                );
                one.counts.add(at(now), Timestamp::default(), writes(pace));
                signals.engines.insert(("a".to_owned(), name.to_owned()), one);
            }
            troubles = observe(&both, &signals, &mut learnt, (at(now), MAX_AGE))
                .models
                .remove(&id())
                .unwrap()
                .troubles;
        }
        troubles
    };
    let found = slow(0.05);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].reason, Reason::ReplicaSlow);
    let text =
        "pod y on node n is clearly slower than the others and counts as less than one: delete it";
    assert!(found[0].text.starts_with(text), "{}", found[0].text);
    assert_eq!(slow(0.025), []);
}

#[test]
fn not_a_number_is_missing_and_a_new_pod_may_be_silent() {
    let mut signals = Signals::default();
    signals.engines.insert(
        ("a".to_owned(), "x".to_owned()),
        testing::engine(at(1_000), (5.0, f64::NAN, 60.0)),
    );
    let new = PodFacts { ready: Some(at(990)), ..pod("y", "10.0.0.2") };
    let both = facts(adopted(), vec![pod("x", "10.0.0.1"), new]);
    let demand = model(&both, &signals, 1_010).demand;
    assert_eq!(demand.prefill, Observed::Missing);
    assert_eq!(demand.decode.fresh().unwrap().get(), 300);
}

#[test]
fn nobody_to_ask_is_unknown_and_not_idle() {
    let none = facts(adopted(), vec![]);
    assert_eq!(model(&none, &Signals::default(), 10).demand.freshness(), Freshness::Missing);
}

#[test]
fn gateways_are_believed_first_and_know_of_sleeping_models() {
    let none = facts(adopted(), vec![]);
    let reading = GatewayReading {
        waiting_tokens: 700,
        engines: 0,
        ..testing::gateway(at(1_000), (0.0, 0.0, 0.0))
    };
    let signals = Signals { gateways: [(id(), vec![reading])].into(), ..Signals::default() };
    let demand = model(&none, &signals, 1_001).demand;
    assert_eq!(demand.freshness(), Freshness::Fresh);
    assert_eq!(demand.backlog.fresh().unwrap().get(), 700);
    assert_eq!(demand.resident.fresh().unwrap().get(), 0);
}

#[test]
fn what_caches_had_is_as_engines_count_it_and_not_as_a_gateway_hopes() {
    let one = facts(adopted(), vec![pod("x", "10.0.0.1")]);
    let prefill = |hoped: Option<f64>, cached: f64| {
        let reading = testing::gateway(at(1_000), (5.0, 400.0, 60.0));
        let mut window = CounterWindow::of(GatewayReading::WINDOW);
        for (moment, _, counts) in reading.counts.moments() {
            let uncached_tokens = hoped.map(|part| (counts.prompt_tokens as f64 * part) as u64);
            window.add(moment, at(0), GatewayCounts { uncached_tokens, ..*counts });
        }
        let reading = GatewayReading { counts: window, ..reading };
        let mut engine = EngineReading::unread();
        let engine_reading = testing::engine(at(1_000), (5.0, 400.0, 60.0));
        for (moment, since, counts) in engine_reading.counts.moments() {
            let cached_tokens = cached * counts.prompt_tokens;
            engine.counts.add(moment, since, EngineCounts { cached_tokens, ..*counts });
        }
        let mut signals =
            Signals { gateways: [(id(), vec![reading])].into(), ..Signals::default() };
        signals.engines.insert(("a".to_owned(), "x".to_owned()), engine);
        model(&one, &signals, 1_000).demand.prefill.fresh().unwrap().get()
    };
    assert_eq!(prefill(Some(0.6), f64::NAN), 1_200, "engines do not tell");
    assert_eq!(prefill(Some(0.6), 0.0), 2_000, "no cache had anything");
    assert_eq!(prefill(Some(0.6), 0.75), 500, "caches had more than hoped");
    assert_eq!(prefill(None, 0.25), 1_500, "a gateway that tells nothing of it");
    assert_eq!(prefill(None, f64::NAN), 2_000);
    assert_eq!(prefill(None, 1.5), 0, "a count that cannot be is taken for all");
}

#[test]
fn a_count_from_before_the_drain_says_nothing() {
    let marked = PodFacts { draining: Some(at(1_000)), ..pod("x", "10.0.0.1") };
    let facts = facts(adopted(), vec![marked]);
    let seen = |counted: u64| {
        let mut in_flight = InFlight::default();
        in_flight.all_came();
        in_flight.at_address("10.0.0.1", 0.0, at(counted));
        let signals = Signals { in_flight, ..Signals::default() };
        let model = model(&facts, &signals, 1_010);
        let variant = model.variants.into_values().next().unwrap();
        variant.replicas.into_values().next().unwrap()
    };
    assert_eq!(seen(999).state, ReplicaState::Draining);
    assert!(!seen(999).is_safe_to_delete());
    assert!(!seen(1_000).is_safe_to_delete());
    assert!(seen(1_001).is_safe_to_delete());
}

#[test]
fn states_of_pods() {
    let state = |pod: &PodFacts| replicas::state(pod, &Outlook::Stays, at(1_000)).0;
    let ready = pod("x", "10.0.0.1");
    assert_eq!(state(&ready), ReplicaState::Ready);
    let starting = PodFacts { ready: None, ..ready.clone() };
    assert_eq!(state(&starting), ReplicaState::Starting);
    let pending = PodFacts { node: None, scheduled: None, ..starting.clone() };
    assert_eq!(state(&pending), ReplicaState::Pending);
    let ending = PodFacts { ending: Some(at(300)), ..ready };
    assert_eq!(state(&ending), ReplicaState::Draining);
}

#[test]
fn when_every_engine_is_unready_nobody_knows_what_is_wanted_of_them() {
    let lapsed = PodFacts { ready: None, lapsed: Some(at(980)), ..pod("x", "10.0.0.1") };
    let starting = PodFacts { ready: None, ..pod("x", "10.0.0.1") };
    // Requests come, and not one was ever answered.
    let mut window = CounterWindow::of(GatewayReading::WINDOW);
    for (second, arrived) in [(970, 0), (1_000, 30)] {
        let counts = GatewayCounts { arrived, prompt_tokens: 5 * arrived, ..Default::default() };
        window.add(at(second), at(0), counts);
    }
    let reading = GatewayReading { counts: window, ..testing::gateway(at(1_000), (1.0, 5.0, 0.0)) };
    let mut signals = Signals { gateways: [(id(), vec![reading])].into(), ..Signals::default() };
    let decode = |pods: Vec<PodFacts>, signals: &Signals| {
        model(&facts(adopted(), pods), signals, 1_000).demand.decode.freshness()
    };
    assert_eq!(decode(vec![lapsed.clone()], &signals), Freshness::Missing);
    assert_eq!(decode(vec![starting.clone()], &signals), Freshness::Fresh, "it wakes");
    let both = vec![lapsed.clone(), pod("y", "10.0.0.2")];
    assert_eq!(decode(both, &signals), Freshness::Fresh);
    // How long answers usually are does not say how many more would come if somebody answered.
    let answered = testing::gateway(at(1_000), (1.0, 5.0, 9.0));
    let answered = Signals { gateways: [(id(), vec![answered])].into(), ..Signals::default() };
    assert_eq!(decode(vec![lapsed.clone()], &answered), Freshness::Missing);
    assert_eq!(decode(vec![pod("y", "10.0.0.2")], &answered), Freshness::Fresh);
    // It may still write answers, and only a count says how many.
    let one = |pod: PodFacts, signals: &Signals| {
        let model = model(&facts(adopted(), vec![pod]), signals, 1_000);
        let replica = model.variants.into_values().next().unwrap().replicas.into_values().next();
        replica.unwrap()
    };
    assert_eq!(one(lapsed.clone(), &signals).in_flight.freshness(), Freshness::Missing);
    assert_eq!(one(lapsed.clone(), &signals).since, at(980));
    assert_eq!(one(starting, &signals).in_flight.freshness(), Freshness::Fresh);
    signals.in_flight.at_address("10.0.0.1", 3.0, at(999));
    assert_eq!(one(lapsed, &signals).in_flight.freshness(), Freshness::Fresh);
}

#[test]
fn a_pod_that_was_ready_is_told_from_one_that_never_was() {
    let pod = |changed: &str, status: &str| {
        let pod = json!({
            "metadata": {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "status": {
                "conditions": [{"type": "Ready", "status": status, "lastTransitionTime": changed}],
                "containerStatuses": [{
                    "name": "engine", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                    "state": {"running": {"startedAt": "2026-01-01T00:00:05Z"}},
                }],
            },
        });
        PodFacts::of(&serde_json::from_value(pod).unwrap())
    };
    assert!(pod("2026-01-01T00:00:05Z", "False").lapsed.is_none());
    assert!(pod("2026-01-01T00:01:00Z", "False").lapsed.is_some());
    assert!(pod("2026-01-01T00:01:00Z", "Unknown").lapsed.is_some());
    assert!(pod("2026-01-01T00:01:00Z", "True").lapsed.is_none());
}

#[test]
fn cold_starts_are_measured_once_per_pod_and_outlive_the_operator() {
    let pods: Vec<_> = ["x", "y", "z"].map(|name| pod(name, "10.0.0.1")).into();
    let three = facts(adopted(), pods);
    let mut learnt = ObservedMemory::default();
    let measured = |facts: &Facts, learnt: &mut ObservedMemory, now: u64| {
        let seen = observe(facts, &Signals::default(), learnt, (at(now), MAX_AGE));
        let counts = seen.models.into_values().next().unwrap().starts;
        let model = seen.snapshot.models.into_values().next().unwrap();
        let variant = model.variants.into_values().next().unwrap();
        (counts.into_values().sum::<usize>(), variant.cold_start)
    };
    for second in 1_000..1_005 {
        let (count, start) = measured(&three, &mut learnt, second);
        assert_eq!((count, start.unwrap().point()), (3, Micros::from_seconds(100)));
    }
    let mut service = ModelService::clone(&adopted());
    let start = SpanStatus { low: 90, point: 100, high: 140, origin: "Measured".to_owned() };
    let variant = VariantStatus {
        name: "main".to_owned(),
        starts_measured: 3,
        cold_start_seconds: Some(start),
        ..VariantStatus::default()
    };
    let status = ModelServiceStatus { variants: vec![variant], ..ModelServiceStatus::default() };
    service.status = Some(status);
    let later = facts(Arc::new(service), vec![]);
    let (count, start) = measured(&later, &mut ObservedMemory::default(), 2_000);
    assert_eq!((count, start.unwrap().high()), (3, Micros::from_seconds(140)));
}

#[test]
fn a_workload_that_is_not_there_is_named() {
    let mut facts = facts(adopted(), vec![]);
    facts.workloads.clear();
    let seen =
        observe(&facts, &Signals::default(), &mut ObservedMemory::default(), (at(1), MAX_AGE));
    let model = seen.models.into_values().next().unwrap();
    assert_eq!(model.absent, [("a".to_owned(), TargetKind::Deployment, "m".to_owned())]);
}

#[test]
fn a_model_whose_replicas_cannot_be_set_does_not_act() {
    let mut service = ModelService::clone(&adopted());
    service.spec.scaling.mode = flyball_resources::model_service::ScalingMode::Act;
    let acts = |facts: &Facts| model(facts, &Signals::default(), 1).acts();
    let mut facts = facts(Arc::new(service), vec![]);
    assert!(acts(&facts));
    let key = facts.workloads.keys().next().unwrap().clone();
    facts.workloads.get_mut(&key).unwrap().rival = Some("hpa".to_owned());
    assert!(!acts(&facts), "an autoscaler sets them too");
    facts.workloads.get_mut(&key).unwrap().rival = None;
    facts.unseen_owners = ["a".to_owned()].into();
    assert!(!acts(&facts), "one may");
    facts.unseen_owners.clear();
    facts.workloads.clear();
    assert!(!acts(&facts), "there is no workload");
}

#[test]
fn a_model_on_a_known_accelerator_has_a_predicted_capacity() {
    let service = service(json!({
        "model": "Qwen/Qwen3-32B",
        "objectives": {"firstTokenMilliseconds": 3000, "betweenTokensMilliseconds": 100},
        "variants": [{"pool": "h100", "gpusPerReplica": 2, "targetRef": {"kind": "Deployment", "name": "m"}}],
    }));
    let mut facts = facts(service, vec![]);
    let pool = json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "Pool", "metadata": {"name": "h100"},
        "spec": {"accelerator": "h100"},
    });
    facts.pools.push(Arc::new(serde_json::from_value(pool).unwrap()));
    let model = model(&facts, &Signals::default(), 1);
    assert!(model.variants.into_values().next().unwrap().capacity.is_known());
}

fn book_of(reports: &[GatewayReport]) -> ReportBook {
    ReportBook { reports: reports.to_vec(), ..ReportBook::default() }
}

/// Adds what gateways said, as of a moment.
fn add(
    gateways: &mut Gateways,
    signals: &mut Signals,
    reports: &[GatewayReport],
    facts: &Facts,
    now: u64,
) -> BTreeSet<String> {
    gateways.add(signals, &book_of(reports), &BTreeSet::new(), facts, (at(now), MAX_AGE))
}

fn report(gateway: &str, reported: u64, arrived: u64, in_flight: u32, open: bool) -> GatewayReport {
    let model = ModelDemand {
        model: "m".to_owned(),
        engines: 1,
        arrived,
        arrived_tokens: arrived * 100,
        output_tokens: arrived * 10,
        judged: arrived,
        missed: arrived / 10,
        backlog_tokens: 7,
        in_flight: u64::from(in_flight),
        ..ModelDemand::default()
    };
    let state = if open { EndpointState::Open } else { EndpointState::Draining };
    let endpoint = EndpointLoad {
        name: "a/x".to_owned(),
        address: "10.0.0.1:8000".to_owned(),
        model: "m".to_owned(),
        in_flight,
        state: state as i32,
        uid: String::new(),
    };
    let time = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    GatewayReport {
        gateway: gateway.to_owned(),
        version: "0".to_owned(),
        protocol: Protocol::OURS,
        started: time(1),
        since: time(1),
        last_seen: time(reported),
        gone: false,
        reported_at: Some(time(reported)),
        orders: 1,
        models: [model].into(),
        past: VecDeque::new(),
        endpoints: [endpoint].into(),
        left_out: 0,
    }
}

#[test]
fn sums_of_gateways_become_rates_and_add_up() {
    let facts = facts(adopted(), vec![pod("x", "10.0.0.1")]);
    let mut gateways = Gateways::default();
    let mut last = Signals::default();
    for second in 0..40 {
        last = Signals::default();
        let reports = [
            report("one", 1_000 + second, 10 * second, 2, true),
            report("two", 1_000 + second, 5 * second, 1, true),
        ];
        add(&mut gateways, &mut last, &reports, &facts, 1_000 + second);
    }
    let demand = model(&facts, &last, 1_039).demand;
    assert_eq!(demand.prefill.fresh().unwrap().get(), 1_500);
    assert_eq!(demand.decode.fresh().unwrap().get(), 150);
    assert_eq!(demand.backlog.fresh().unwrap().get(), 14);
    // One began again: its rate is unknown for a moment, the other's still is not.
    last = Signals::default();
    let reports = [report("one", 1_040, 1, 2, true), report("two", 1_040, 200, 1, true)];
    add(&mut gateways, &mut last, &reports, &facts, 1_040);
    let demand = model(&facts, &last, 1_040).demand;
    assert_eq!(demand.prefill.last_seen().unwrap().get(), 500);
    assert_eq!(demand.sources, Sources { reporting: 1, silent: 1 });
}

#[test]
fn an_operator_that_has_just_begun_knows_rates_and_bursts_from_what_gateways_remember() {
    let facts = facts(adopted(), vec![pod("x", "10.0.0.1")]);
    // Ten requests in one second, and none in the half minute before and after.
    let moment = |second: u64| {
        let report_of = report("one", second, if second < 1_015 { 0 } else { 10 }, 0, true);
        (SystemTime::UNIX_EPOCH + Duration::from_secs(second), report_of.models)
    };
    let (still, none) = (moment(1_014).0, Arc::default());
    let changed = [moment(1_000), (still, none), moment(1_015)].into_iter().collect();
    let report_of = GatewayReport { past: changed, ..report("one", 1_030, 10, 0, true) };
    let mut signals = Signals::default();
    add(&mut Gateways::default(), &mut signals, &[report_of], &facts, 1_030);
    let demand = model(&facts, &signals, 1_030).demand;
    assert_eq!(demand.prefill.fresh().map(|rate| rate.get()), Some(34));
    assert_eq!(demand.burst.fresh().map(|rate| rate.get()), Some(200), "within five seconds");
}

#[test]
fn prompts_that_a_cache_has_are_no_work_and_an_older_gateway_counts_as_before() {
    let facts = facts(adopted(), vec![pod("x", "10.0.0.1")]);
    let with = |gateway: &str, second: u64, uncached: Option<u64>| {
        let mut report = report(gateway, 1_000 + second, 10 * second, 0, true);
        let model = ModelDemand { uncached_tokens: uncached, ..report.models[0].clone() };
        report.models = [ModelDemand { backlog_tokens: 5_000, ..model }].into();
        report
    };
    let prefill_and_backlog = |uncached: &dyn Fn(u64) -> Option<u64>| {
        let (mut gateways, mut last) = (Gateways::default(), Signals::default());
        for second in 0..40 {
            last = Signals::default();
            let reports = [with("one", second, uncached(second))];
            add(&mut gateways, &mut last, &reports, &facts, 1_000 + second);
        }
        let demand = model(&facts, &last, 1_039).demand;
        (demand.prefill.fresh().unwrap().get(), demand.backlog.fresh().unwrap().get())
    };
    // Agents: a tenth of each prompt is new. The rest is still held in memory.
    assert_eq!(prefill_and_backlog(&|second| Some(100 * second)), (100, 500));
    assert_eq!(prefill_and_backlog(&|_| None), (1_000, 5_000));
    // More than came is an engine's word against our count; what waits is not made more by it.
    assert_eq!(prefill_and_backlog(&|second| Some(2_000 * second)), (2_000, 5_000));
}

#[test]
fn a_pod_that_drains_is_empty_only_once_every_gateway_has_heard_of_it() {
    let marked = PodFacts { draining: Some(at(1_000)), ..pod("x", "10.0.0.1") };
    let facts = facts(adopted(), vec![marked]);
    let empty = |reports: &[GatewayReport]| {
        let mut signals = Signals::default();
        signals.in_flight.all_came();
        add(&mut Gateways::default(), &mut signals, reports, &facts, 1_010);
        let model = model(&facts, &signals, 1_010);
        let variant = model.variants.into_values().next().unwrap();
        variant.replicas.into_values().next().unwrap().is_safe_to_delete()
    };
    let reported = report("one", 1_005, 5, 0, false);
    assert!(empty(std::slice::from_ref(&reported)));
    assert!(!empty(&[reported.clone(), report("two", 1_005, 5, 0, true)]));
    assert!(!empty(&[reported.clone(), report("two", 1_005, 5, 1, false)]));
    // Silent since before the mark: it may have requests under way, wherever it runs.
    let silent = GatewayReport { gone: true, ..report("gateway-1", 990, 5, 0, false) };
    let both = [reported.clone(), silent];
    assert!(!empty(&both));
    // Its pod was there and is gone, and all its requests with it.
    let mut gateways = Gateways::default();
    let mut with_pod = facts.clone();
    with_pod.pods.insert("gateways".to_owned(), vec![pod("gateway-1", "10.0.0.9")]);
    add(&mut gateways, &mut Signals::default(), &both, &with_pod, 1_010);
    let mut signals = Signals::default();
    signals.in_flight.all_came();
    let gone = add(&mut gateways, &mut signals, &both, &facts, 1_010);
    assert_eq!(gone.into_iter().collect::<Vec<_>>(), ["gateway-1"]);
    let model = model(&facts, &signals, 1_010);
    let variant = model.variants.into_values().next().unwrap();
    assert!(variant.replicas.into_values().next().unwrap().is_safe_to_delete());
}

#[test]
fn requests_at_a_pod_that_is_gone_are_its_own_and_not_those_of_the_next_at_its_address() {
    let marked = PodFacts { draining: Some(at(1_000)), ..pod("x", "10.0.0.1") };
    let facts = facts(adopted(), vec![marked.clone()]);
    let safe = |uid: &str| {
        let mut report_of = report("one", 1_005, 5, 1, false);
        let gone = EndpointState::Gone as i32;
        let endpoint =
            EndpointLoad { uid: uid.to_owned(), state: gone, ..report_of.endpoints[0].clone() };
        let listed = EndpointLoad { in_flight: 0, ..report_of.endpoints[0].clone() };
        report_of.endpoints = [listed, endpoint].into();
        let mut signals = Signals::default();
        signals.in_flight.all_came();
        add(&mut Gateways::default(), &mut signals, &[report_of], &facts, 1_010);
        let model = model(&facts, &signals, 1_010);
        let variant = model.variants.into_values().next().unwrap();
        variant.replicas.into_values().next().unwrap().is_safe_to_delete()
    };
    assert!(!safe(&marked.uid));
    assert!(!safe(""), "nobody knows whose they are");
    assert!(safe("of a pod before"));
}

#[test]
fn a_model_that_is_waited_for_has_a_backlog_at_once() {
    let facts = facts(adopted(), vec![]);
    let mut signals = Signals::default();
    let asleep = GatewayReport {
        models: [ModelDemand { model: "m".to_owned(), ..ModelDemand::default() }].into(),
        ..report("one", 1_000, 0, 0, true)
    };
    let waited_for = BTreeSet::from([PublicName { name: "m".to_owned(), ..PublicName::default() }]);
    let time = (at(1_000), MAX_AGE);
    Gateways::default().add(&mut signals, &book_of(&[asleep]), &waited_for, &facts, time);
    let demand = model(&facts, &signals, 1_000).demand;
    assert_eq!(demand.freshness(), Freshness::Fresh);
    assert_eq!(demand.backlog.fresh().unwrap().get(), 1);
}
