mod known;
mod restart;

use super::*;
use crate::decide::{Brain, Decided};
use crate::observe::demand::Signals;
use crate::observe::testing;
use crate::observe::{
    Facts, NodeFacts, ObservedCluster, ObservedMemory, PodFacts, Workload, observe,
};
use crate::report::tenants::BudgetShare;
use crate::runs::GangPods;
use flyball_core::invariants::{Holding, removals};
use flyball_core::units::{Micros, Timestamp};
use flyball_estimator::reading::{CacheUsed, EngineReading};
use flyball_resources::ModelService;
use flyball_resources::model_service::{ModelServiceStatus, TargetKind};
use flyball_resources::pool::LendingStatus;
use flyball_telemetry::metrics::{Metric, MetricPart, Metrics};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + seconds * 1_000)
}

fn service(scaling: Value, status: Option<&ModelServiceStatus>) -> Arc<ModelService> {
    let service = json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "ModelService",
        "metadata": {"name": "m", "namespace": "a", "generation": 2},
        "spec": {
            "scaling": scaling,
            "objectives": {"firstTokenMilliseconds": 500},
            "variants": [{
                "targetRef": {"kind": "Deployment", "name": "m"},
                "capacity": {"prefillTokensPerSecond": 10000, "decodeTokensPerSecond": 1000, "residentTokens": 100000},
            }],
        },
        "status": status,
    });
    Arc::new(serde_json::from_value(service).unwrap())
}

fn facts(service: Arc<ModelService>, with_workload: bool) -> Facts {
    let labels = [("app".to_owned(), "m".to_owned())];
    let selector =
        LabelSelector { match_labels: Some(labels.clone().into()), ..LabelSelector::default() };
    let key = ("a".to_owned(), TargetKind::Deployment, "m".to_owned());
    let workload = Workload { replicas: 1, selector, ..Workload::default() };
    let pod = PodFacts {
        name: "x".to_owned(),
        labels: labels.into(),
        node: Some("n".to_owned()),
        created: at(0),
        ready: Some(at(60)),
        ..PodFacts::default()
    };
    Facts {
        models: vec![service],
        workloads: with_workload.then_some((key, workload)).into_iter().collect(),
        pods: [("a".to_owned(), vec![pod])].into(),
        ..Facts::default()
    }
}

/// What was seen at `now`, of engines that spoke at `seen_at`.
fn seen(facts: &Facts, learnt: &mut ObservedMemory, seen_at: u64, now: u64) -> ObservedCluster {
    // 2,000 tokens a second read, and 300 written.
    let engine = EngineReading {
        running: Some(1.0),
        waiting: Some(0.0),
        cache_used: CacheUsed::Share(0.1),
        ..testing::engine(at(seen_at), (3.0, 2_000.0 / 3.0, 100.0))
    };
    let engines = [(("a".to_owned(), "x".to_owned()), engine)].into();
    let signals = Signals { engines, ..Signals::default() };
    observe(facts, &signals, learnt, (at(now), Micros::from_seconds(60)))
}

/// The status of the model after one look.
fn published_at(facts: &Facts, seen_at: u64, now: u64) -> ModelServiceStatus {
    let mut learnt = ObservedMemory::default();
    let seen = seen(facts, &mut learnt, seen_at, now);
    let decided = Brain::default().decide(&seen);
    assert!(decided.broken.is_empty(), "{:?}", decided.broken);
    published(&seen, &decided)
}

/// The status that tells of what was decided.
fn published(seen: &ObservedCluster, all: &Decided) -> ModelServiceStatus {
    published_with(seen, all, None)
}

/// The same, with what the governor learnt.
fn published_with(
    seen: &ObservedCluster,
    all: &Decided,
    text: Option<String>,
) -> ModelServiceStatus {
    let (id, model) = seen.models.iter().next().unwrap();
    let context = StatusContext {
        snapshot: &seen.snapshot,
        decision: &all.decision,
        broken: &all.broken,
        seen: model,
        model: seen.snapshot.models.get(id),
        decided: all.decision.models.first(),
        attained_per_million: None,
        learnt: text,
    };
    status(id, &context)
}

#[test]
fn a_rule_that_would_be_broken_is_told_by_name() {
    let facts = facts(service(json!({}), None), true);
    let mut learnt = ObservedMemory::default();
    let seen = seen(&facts, &mut learnt, 1_000, 1_010);
    let mut all = Brain::default().decide(&seen);
    let model = seen.models.keys().next().unwrap();
    all.broken = removals(model, [("x", Holding::MayHold)]);
    let status = published(&seen, &all);
    assert_eq!(condition(&status, "Stalled"), is("True", "DecisionHeld"));
    assert_eq!(condition(&status, "Ready"), is("False", "DecisionHeld"));
    let stalled = status.conditions.iter().find(|one| one.type_ == "Stalled").unwrap();
    let text = "INV-13: model a/m: x would be removed and may hold requests";
    assert_eq!(stalled.message, text);
}

fn condition(status: &ModelServiceStatus, kind: &str) -> Option<(String, String)> {
    let one = status.conditions.iter().find(|one| one.type_ == kind)?;
    Some((one.status.clone(), one.reason.clone()))
}

fn is(status: &str, reason: &str) -> Option<(String, String)> {
    Some((status.to_owned(), reason.to_owned()))
}

#[test]
fn a_model_that_is_well_is_ready_and_neither_stalled_nor_reconciling() {
    let status = published_at(&facts(service(json!({}), None), true), 1_000, 1_010);
    assert_eq!(condition(&status, "Ready"), is("True", "Steady"));
    assert_eq!(condition(&status, "SignalsFresh"), is("True", "Steady"));
    assert_eq!(condition(&status, "ObjectivesMet"), is("Unknown", "Steady"));
    assert_eq!(condition(&status, "Stalled"), None);
    assert_eq!(condition(&status, "Reconciling"), None);
    assert_eq!((status.recommended_replicas, status.ready_replicas), (Some(1), Some(1)));
    assert_eq!(status.observed_generation, Some(2));
    assert_eq!(status.hourly_cost, None, "an unknown price is not zero");
}

#[test]
fn stale_signals_are_said_and_give_nothing_back() {
    let status = published_at(&facts(service(json!({}), None), true), 1_000, 2_000);
    assert_eq!(condition(&status, "SignalsFresh"), is("False", "SignalsStale"));
    assert_eq!(condition(&status, "ObjectivesMet"), is("Unknown", "SignalsMissing"));
    assert_eq!(status.decision.unwrap().reason, "SignalsStale");
    assert_eq!(status.recommended_replicas, Some(1));
}

#[test]
fn a_missing_workload_stalls_it() {
    let status = published_at(&facts(service(json!({}), None), false), 1_000, 1_010);
    assert_eq!(condition(&status, "Stalled"), is("True", "TargetNotFound"));
    assert_eq!(condition(&status, "Ready"), is("False", "TargetNotFound"));
}

#[test]
fn a_rival_stalls_it_only_where_it_would_act() {
    let stalled = |mode: &str| {
        let mut facts = facts(service(json!({ "mode": mode }), None), true);
        for workload in facts.workloads.values_mut() {
            workload.rival = Some("hpa".to_owned());
        }
        condition(&published_at(&facts, 1_000, 1_010), "Stalled")
    };
    assert_eq!(stalled("Recommend"), None);
    assert_eq!(stalled("Act"), is("True", "ReplicasOwnedByOther"));
}

#[test]
fn owners_that_cannot_be_seen_stall_it_only_where_it_would_act() {
    let stalled = |mode: &str| {
        let mut facts = facts(service(json!({ "mode": mode }), None), true);
        facts.unseen_owners.insert("a".to_owned());
        condition(&published_at(&facts, 1_000, 1_010), "Stalled")
    };
    assert_eq!(stalled("Recommend"), None);
    assert_eq!(stalled("Act"), is("True", "PermissionMissing"));
}

#[test]
fn a_name_that_another_model_has_too_is_said_and_stalls_nothing() {
    let mut both = facts(service(json!({}), None), true);
    assert_eq!(condition(&published_at(&both, 1_000, 1_010), "NamesUnique"), None);
    let mut other = ModelService::clone(&both.models[0]);
    other.metadata.namespace = Some("b".to_owned());
    both.models.push(Arc::new(other));
    let status = published_at(&both, 1_000, 1_010);
    assert_eq!(condition(&status, "NamesUnique"), is("False", "NameConflict"));
    let one = status.conditions.iter().find(|one| one.type_ == "NamesUnique").unwrap();
    assert!(one.message.starts_with("m is also a public name of b/m: "), "{}", one.message);
    assert_eq!(condition(&status, "Ready"), is("True", "Steady"));
}

#[test]
fn a_decision_that_repeats_itself_keeps_its_time_and_is_written_once() {
    let first = published_at(&facts(service(json!({}), None), true), 1_000, 1_010);
    let second = published_at(&facts(service(json!({}), Some(&first)), true), 1_020, 1_025);
    assert_eq!(first.decision.as_ref().unwrap().at, second.decision.as_ref().unwrap().at);
    assert_eq!(first.variants[0].since, second.variants[0].since);
    let minute = Some(Duration::from_secs(61));
    assert!(is_worth_writing(None, &first, None));
    assert!(!is_worth_writing(Some(&first), &second, Some(Duration::from_secs(5))));
    assert_eq!(is_worth_writing(Some(&first), &second, minute), first != second);
    let stale = published_at(&facts(service(json!({}), Some(&second)), true), 1_020, 2_000);
    assert!(is_worth_writing(Some(&second), &stale, Some(Duration::from_secs(5))));

    let mut history = History::default();
    let id = "a/m".parse().unwrap();
    assert!(history.note(&id, "Recommend", &first).is_some());
    assert!(history.note(&id, "Recommend", &second).is_none());
    assert!(history.note(&id, "Recommend", &stale).is_some());
    assert_eq!(history.of(Some(&id)).len(), 2);
}

#[test]
fn history_is_bounded() {
    let status = published_at(&facts(service(json!({}), None), true), 1_000, 1_010);
    let mut history = History::default();
    let id = "a/m".parse().unwrap();
    for n in 0..1_000 {
        let mut status = status.clone();
        if let Some(receipt) = &mut status.decision {
            receipt.id = n.to_string();
        }
        history.note(&id, "Act", &status);
    }
    assert_eq!(history.of(None).len(), 240);
}

#[test]
fn settings_that_cut_requests_are_said_and_nothing_else_changes() {
    let adopted = |args: &[&str]| {
        let mut facts = facts(service(json!({}), None), true);
        for workload in facts.workloads.values_mut() {
            workload.image = "vllm/vllm-openai:v0.32.0".to_owned();
            workload.args = args.iter().map(|arg| (*arg).to_owned()).collect();
            workload.grace_seconds = Some(75);
        }
        published_at(&facts, 1_000, 1_010)
    };
    let cuts = adopted(&["--model", "m"]);
    assert_eq!(condition(&cuts, "DrainsSafely"), is("False", "DrainTooShort"));
    assert_eq!(condition(&cuts, "Ready"), is("True", "Steady"));
    let fine = adopted(&["--shutdown-timeout", "60"]);
    assert_eq!(condition(&fine, "DrainsSafely"), is("True", "Steady"));
    let unknown = published_at(&facts(service(json!({}), None), true), 1_000, 1_010);
    assert_eq!(condition(&unknown, "DrainsSafely"), None);
    let news = |before| turned_bad(before, &cuts).map(|(reason, _)| reason.name());
    assert_eq!(news(Some(&fine)), Some("DrainTooShort"));
    assert_eq!(news(Some(&cuts)), None, "it was told");
    assert_eq!(turned_bad(Some(&cuts), &fine), None, "that it is well again is no trouble");
}

fn lending() -> LendingStatus {
    LendingStatus {
        lent_gpus: 4,
        promise_seconds: Some(65),
        take_backs: 3,
        late_take_backs: 1,
        ..LendingStatus::default()
    }
}

#[test]
fn every_metric_of_the_operator_is_on_its_page() {
    let mut facts = facts(service(json!({}), None), true);
    let pool = json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "Pool", "metadata": {"name": "unpooled"},
        "spec": {"accelerator": "h100-sxm-80gb", "limit": 9,
            "prices": [{"purchase": "OnDemand", "perGpuHour": "2"}]},
    });
    facts.pools = vec![Arc::new(serde_json::from_value(pool).unwrap())];
    let gpus = [("nvidia.com/gpu".to_owned(), 8)].into();
    let node = NodeFacts { allocatable: gpus, usable: true, ..NodeFacts::default() };
    facts.nodes = [("n".to_owned(), node)].into();
    let waits = PodFacts {
        name: "y".to_owned(),
        labels: [("app".to_owned(), "m".to_owned())].into(),
        created: at(900),
        ..PodFacts::default()
    };
    facts.pods.get_mut("a").unwrap().push(waits);
    let mut learnt = ObservedMemory::default();
    for name in ["1", "2", "x"] {
        facts.pods.get_mut("a").unwrap()[0].name = name.to_owned();
        seen(&facts, &mut learnt, 1_000, 1_010);
    }
    let seen = seen(&facts, &mut learnt, 1_000, 1_010);
    let decision = Brain::default().decide(&seen).decision;
    let status = published_at(&facts, 1_000, 1_010);
    let mut pools = pools::pools(&facts, &seen.snapshot, &decision);
    pools[0].status.lending = Some(lending());
    let board = Arc::new(Board::default());
    board.change(|shown| {
        shown.show(&seen.snapshot, &decision.models, |_| Some(990_000));
        shown.publish(seen.models.keys().map(|id| (id, &status)));
        shown.pools = Arc::new(pools);
        shown.budgets = Arc::new(vec![BudgetShare {
            tenant: "ml/search".to_owned(),
            budget: "month".to_owned(),
            spent: 0.5,
            empty_at: Some(at(2_000)),
        }]);
        shown.runs_took = Some([Duration::from_millis(1); 3]);
        shown.runs = Arc::new(vec![ShownRun {
            namespace: "ml".to_owned(),
            name: "ft".to_owned(),
            state: "progressing",
            step: Some(7),
            saved_age_seconds: Some(60.0),
            slack_seconds: Some(-5.0),
            goodput: Some(0.9),
            pods: GangPods { wanted: 4, placed: 3, running: 2 },
            hourly_cost: Some(7.2),
            suggested_save_seconds: Some(600),
        }]);
        shown.note_input("prometheus", at(1_000));
        shown.failed("apply", "conflict");
        shown.took([0.1, 0.01, 0.2]);
    });
    let page = Metrics::new("0").with(board).encode().unwrap();
    for metric in Metric::ALL.iter().filter(|metric| metric.part() == MetricPart::Operator) {
        let name = metric.name();
        let there = |line: &str| line.starts_with(name) && !line.starts_with('#');
        assert!(page.lines().any(there), "{name} is not on the page:\n{page}");
    }
    for line in [
        r#"flyball_model_cold_start_seconds{target_namespace="a",model="m",variant="main",end="point"} 60.0"#,
        r#"flyball_model_oldest_replica_seconds{target_namespace="a",model="m",state="Pending"} 110.0"#,
        r#"flyball_model_attainment_ratio{target_namespace="a",model="m",kind="met"} 0.99"#,
        r#"flyball_model_condition{target_namespace="a",model="m",condition="Ready"} 1.0"#,
        r#"flyball_training_slack_seconds{target_namespace="ml",run="ft"} -5.0"#,
        r#"flyball_training_runs{state="progressing"} 1.0"#,
        r#"flyball_training_pods{target_namespace="ml",run="ft",kind="placed"} 3.0"#,
        r#"flyball_pool_gpus{pool="unpooled",kind="limit"} 9.0"#,
        r#"flyball_pool_gpus{pool="unpooled",kind="lent"} 4.0"#,
        r#"flyball_pool_take_back_promise_seconds{pool="unpooled"} 65.0"#,
        r#"flyball_pool_take_backs_total{pool="unpooled",result="in-time"} 2"#,
        r#"flyball_pool_take_backs_total{pool="unpooled",result="late"} 1"#,
        r#"flyball_operator_errors_total{step="apply",error="conflict"} 1"#,
        r#"flyball_operator_errors_total{step="report",error="refused"} 0"#,
        "flyball_operator_reconcile_seconds_count 1",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is not on the page:\n{page}");
    }
}
