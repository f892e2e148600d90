//! Several runs in a queue: their places, their marks, and who may start.

use super::*;
use crate::loans::LoanOrder;
use crate::runs::check::{answers, own_checks};
use crate::runs::gate::{RunGate, gate};
use crate::runs::preempt::{PreemptionPlace, mark, places};
use flyball_core::units::Gpus;
use std::collections::BTreeSet;

/// A Workload of the JobSet of this name, as Kueue has it.
fn workload(name: &str, more: &Value) -> ((String, String), Arc<kube::api::DynamicObject>) {
    let mut object = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": { "name": format!("jobset-{name}"), "namespace": "ml", "resourceVersion": "7",
            "ownerReferences": [
                { "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": name, "uid": "u" },
            ] },
        "spec": { "priority": 10 },
        "status": { "admission": { "clusterQueue": "gpus" }, "conditions": [
            { "type": "QuotaReserved", "status": "True" }, { "type": "Admitted", "status": "True" },
        ] },
    });
    for (path, value) in more.as_object().into_iter().flatten() {
        let (parent, field) = path.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[field] = value.clone();
    }
    let key = ("ml".to_owned(), format!("jobset-{name}"));
    (key, Arc::new(serde_json::from_value(object).unwrap()))
}

/// A run of this name with two pods of two GPUs, which has saved so many seconds ago.
fn queued(name: &str, unsaved: u64, all: &JobObjects, more: &Value) -> (SeenRun, RunReport) {
    let mut world = World::new();
    let run = &mut world.run;
    run["metadata"]["name"] = json!(name);
    run["spec"]["mode"] = json!("Act");
    run["spec"]["workloadRef"]["name"] = json!(name);
    run["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.pods(0, name, "on-demand");
    let pods = std::mem::take(&mut world.facts.gangs).into_values().next().unwrap();
    world.facts.gangs = [(("ml".to_owned(), JobKind::JobSet, name.to_owned()), pods)].into();
    let set = json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": { "name": name, "namespace": "ml" },
        "spec": { "replicatedJobs": [{ "name": "w", "replicas": 2, "template": { "spec": { "template": {
            "spec": { "containers": [{ "name": "a", "resources": { "limits": { "nvidia.com/gpu": 2 } } }] },
        } } } }] },
    });
    let set: Arc<_> = Arc::new(serde_json::from_value(set).unwrap());
    world.workloads = std::mem::take(&mut world.workloads)
        .with(JobKind::JobSet, Ok([(("ml".to_owned(), name.to_owned()), set)].into()))
        .with(JobKind::Workload, Ok(all.clone()));
    let now = 4_000;
    let answer = beat(400, Some(400 - unsaved / 10), now);
    let run: Arc<TrainingRun> = Arc::new(serde_json::from_value(world.run.clone()).unwrap());
    let World { facts, workloads, zones, .. } = &mut world;
    let seen = observe(&run, facts, workloads, zones, at(now)).unwrap();
    let mut tracked = TrackedRun::resume(&run, at(now));
    let report = consider(&seen, &answer, &mut tracked, TICK, at(now));
    (seen, report)
}

fn placed(runs: &[(SeenRun, RunReport)], all: &JobObjects) -> Vec<Option<PreemptionPlace>> {
    let known: Vec<_> = runs
        .iter()
        .filter_map(|(_, report)| Some((report.key.clone(), report.preemptible.as_ref()?)))
        .collect();
    let places = places(&known, all);
    runs.iter().map(|(_, report)| places.get(&report.key).copied()).collect()
}

fn boosts(places: &[Option<PreemptionPlace>]) -> Vec<Option<u32>> {
    places.iter().map(|place| place.map(|place| place.boost)).collect()
}

#[test]
fn who_has_just_saved_goes_first_and_the_others_are_marked() {
    let none = json!({});
    let all: JobObjects = ["a", "b", "c"].map(|name| workload(name, &none)).into();
    let runs = [("a", 3_000), ("b", 10), ("c", 1_000)];
    let runs = runs.map(|(name, unsaved)| queued(name, unsaved, &all, &none));
    let found = placed(&runs, &all);
    assert_eq!(boosts(&found), [Some(2), Some(0), Some(1)]);
    assert_eq!(found[1].unwrap().of, 3);
    let marks: Vec<_> = runs
        .iter()
        .zip(&found)
        .map(|((seen, _), place)| mark(seen, place.as_ref(), false))
        .collect();
    assert_eq!(marks[1], None, "nothing is added to it");
    let first = marks[0].as_ref().unwrap();
    assert_eq!((first.workload.1.as_str(), first.boost), ("jobset-a", 2));
    assert_eq!(mark(&runs[0].0, found[0].as_ref(), true), None, "frozen");
    let status = preempt::status(runs[0].1.preemptible.as_ref().unwrap(), found[0].as_ref());
    // Four GPUs for 3,000 seconds and a restart of 600.
    assert_eq!(
        (status.thrown_away_gpu_seconds, status.place, status.of),
        (14_400, Some(3), Some(3))
    );
}

#[test]
fn a_mark_that_is_there_is_not_written_again_and_goes_with_the_admission() {
    let marked = json!({ "/metadata/annotations": { "kueue.x-k8s.io/priority-boost": "1" } });
    let none = json!({});
    let all: JobObjects = [workload("a", &marked), workload("b", &none)].into();
    let runs = [("a", 3_000), ("b", 10)].map(|(name, unsaved)| queued(name, unsaved, &all, &none));
    let found = placed(&runs, &all);
    assert_eq!(boosts(&found), [Some(1), Some(0)]);
    assert_eq!(mark(&runs[0].0, found[0].as_ref(), false), None);
    // It was evicted: with its mark it would come before others that wait.
    let evicted = json!({
        "/metadata/annotations": { "kueue.x-k8s.io/priority-boost": "1" },
        "/status/conditions": [{ "type": "Admitted", "status": "False" }],
    });
    let all: JobObjects = [workload("a", &evicted), workload("b", &none)].into();
    let (seen, report) = queued("a", 3_000, &all, &none);
    assert_eq!(report.preemptible, None);
    assert_eq!(mark(&seen, None, false).unwrap().boost, 0);
    // In Recommend it is somebody else's.
    let (seen, _) = queued("a", 3_000, &all, &json!({ "mode": "Recommend" }));
    assert_eq!(mark(&seen, None, false), None);
}

#[test]
fn where_others_have_the_same_priority_nobody_is_put_before_them() {
    let none = json!({});
    let same = |more: &Value| -> Vec<Option<u32>> {
        let all: JobObjects =
            [workload("a", &none), workload("b", &none), workload("others", more)].into();
        let runs = [("a", 3_000), ("b", 10)];
        let runs = runs.map(|(name, unsaved)| queued(name, unsaved, &all, &none));
        boosts(&placed(&runs, &all))
    };
    assert_eq!(same(&none), [None, None]);
    assert_eq!(
        same(&json!({ "/status/admission": { "clusterQueue": "cpus" } })),
        [Some(1), Some(0)]
    );
    assert_eq!(same(&json!({ "/spec/priority": 9 })), [Some(1), Some(0)]);
    let finished = json!({ "/status/conditions": [
        { "type": "Admitted", "status": "True" }, { "type": "Finished", "status": "True" },
    ] });
    assert_eq!(same(&finished), [Some(1), Some(0)]);
    // One above: there is no room between the two.
    assert_eq!(same(&json!({ "/spec/priority": 11 })), [Some(0), Some(0)]);
    assert_eq!(same(&json!({ "/spec/priority": i32::MAX })), [Some(1), Some(0)]);
}

#[test]
fn two_runs_of_one_workload_have_no_place() {
    let none = json!({});
    let all: JobObjects = [workload("a", &none), workload("other", &none)].into();
    let one = queued("a", 10, &all, &none);
    let mut other = queued("a", 10, &all, &none);
    other.1.key.1 = "twin".to_owned();
    assert_eq!(boosts(&placed(&[one, other], &all)), [None, None]);
}

#[test]
fn silence_counts_as_the_middle_of_an_interval() {
    let none = json!({});
    let all: JobObjects = [workload("a", &none)].into();
    let (seen, _) = queued("a", 10, &all, &none);
    let mut tracked = TrackedRun::resume(&seen.run, at(4_000));
    let report = consider(&seen, &HeartbeatAnswer::NotRequested, &mut tracked, TICK, at(4_000));
    let status = preempt::status(report.preemptible.as_ref().unwrap(), None);
    assert_eq!(status.thrown_away_gpu_seconds, 4 * (900 + 600));
}

/// Waits for the check of this name, in this state.
fn asking(state: &str) -> Value {
    json!({
        "/status/conditions": [{ "type": "QuotaReserved", "status": "True" }],
        "/status/admissionChecks": [
            { "name": "theirs", "state": "Pending" },
            { "name": "ours", "state": state, "lastTransitionTime": "2026-11-15T14:00:00Z" },
        ],
    })
}

/// What is answered a minute after that.
fn answered(more: &Value, gates: &[(&str, Option<RunGate>)]) -> Vec<Value> {
    let all: JobObjects = [workload("a", more)].into();
    let gates = gates
        .iter()
        .map(|(name, gate)| (("ml".to_owned(), JobKind::JobSet, (*name).to_owned()), gate.clone()));
    let checks = BTreeSet::from(["ours".to_owned()]);
    let answers = answers(&checks, &all, &gates.collect(), at(60));
    answers.iter().map(|one| one.patch("kueue.x-k8s.io/v1beta2", at(60))).collect()
}

#[test]
fn a_workload_that_is_to_wait_is_sent_back_and_any_other_may_start() {
    let shut = || Some(RunGate::Shut("it waits for a loan".to_owned()));
    let open = || Some(RunGate::Open("on-demand".to_owned()));
    let [patch] = &answered(&asking("Pending"), &[("a", shut())])[..] else { panic!() };
    assert_eq!(
        patch["status"]["admissionChecks"],
        json!([{
            "name": "ours", "state": "Retry", "message": "it waits for a loan",
            "lastTransitionTime": "2026-11-15T14:01:00Z",
        }])
    );
    assert_eq!(patch["metadata"]["resourceVersion"], "7", "an answer to this and to nothing later");
    for gates in [vec![("a", open())], vec![("b", shut())], vec![]] {
        let [patch] = &answered(&asking("Pending"), &gates)[..] else { panic!() };
        let [check] = &patch["status"]["admissionChecks"].as_array().unwrap()[..] else { panic!() };
        assert_eq!(check["state"], "Ready");
    }
    // Its quota is its own for half a minute; why it waits is said once.
    let mut young = asking("Pending");
    young["/status/admissionChecks"][1]["lastTransitionTime"] = json!("2026-11-15T14:00:40Z");
    let [patch] = &answered(&young, &[("a", shut())])[..] else { panic!() };
    let check = &patch["status"]["admissionChecks"][0];
    assert_eq!(
        (&check["state"], &check["message"]),
        (&json!("Pending"), &json!("it waits for a loan"))
    );
    assert_eq!(check["lastTransitionTime"], "2026-11-15T14:00:40Z", "or it would never be over");
    young["/status/admissionChecks"][1]["message"] = json!("it waits for a loan");
    assert_eq!(answered(&young, &[("a", shut())]), [Value::Null; 0]);
    // A run of which nothing is known yet waits; what was answered is not answered again.
    assert_eq!(answered(&asking("Pending"), &[("a", None)]), [Value::Null; 0]);
    for state in ["Ready", "Retry", "Rejected"] {
        assert_eq!(answered(&asking(state), &[("a", shut())]), [Value::Null; 0]);
    }
}

#[test]
fn what_was_admitted_is_never_sent_back() {
    let shut = || Some(RunGate::Shut("wait".to_owned()));
    let conditions = |all: &[&str]| {
        let mut more = asking("Pending");
        let all = all.iter().map(|kind| json!({ "type": kind, "status": "True" }));
        more["/status/conditions"] = all.collect();
        more
    };
    assert_eq!(
        answered(&conditions(&["QuotaReserved", "Admitted"]), &[("a", shut())]),
        [Value::Null; 0]
    );
    assert_eq!(
        answered(&conditions(&["QuotaReserved", "Finished"]), &[("a", shut())]),
        [Value::Null; 0]
    );
    assert_eq!(
        answered(&conditions(&[]), &[("a", shut())]),
        [Value::Null; 0],
        "it has no quota yet"
    );
    let mut inactive = asking("Pending");
    inactive["/spec/active"] = json!(false);
    assert_eq!(answered(&inactive, &[("a", shut())]), [Value::Null; 0]);
    for broken in [json!("none"), json!([{ "state": "Pending" }]), json!({ "name": "ours" })] {
        let mut more = asking("Pending");
        more["/status/admissionChecks"] = broken;
        assert_eq!(answered(&more, &[("a", shut())]), [Value::Null; 0]);
    }
}

#[test]
fn checks_of_other_controllers_are_not_ours() {
    let check = |name: &str, controller: &str, status: Value| {
        let object = json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck",
            "metadata": { "name": name }, "spec": { "controllerName": controller }, "status": status,
        });
        ((String::new(), name.to_owned()), Arc::new(serde_json::from_value(object).unwrap()))
    };
    let active = json!({ "conditions": [{ "type": "Active", "status": "True" }] });
    let all: JobObjects = [
        check("new", "flyball.dev/runs", Value::Null),
        check("known", "flyball.dev/runs", active.clone()),
        check("theirs", "kueue.x-k8s.io/multikueue", active),
    ]
    .into();
    assert_eq!(own_checks(&all), [("known".to_owned(), true), ("new".to_owned(), false)].into());
}

#[test]
fn the_gate_is_shut_by_a_budget_a_loan_and_a_wait_and_by_nothing_in_recommend() {
    let none = json!({});
    let all: JobObjects = [workload("a", &none)].into();
    let of = |more: Value, change: fn(&mut TrackedRun)| {
        let (seen, _) = queued("a", 10, &all, &more);
        let mut tracked = TrackedRun::resume(&seen.run, at(4_000));
        consider(&seen, &beat(400, Some(399), 4_000), &mut tracked, TICK, at(4_000));
        change(&mut tracked);
        gate(&seen, &tracked, false)
    };
    let text = |gate: RunGate| match gate {
        RunGate::Open(why) => format!("open: {why}"),
        RunGate::Shut(why) => format!("shut: {why}"),
    };
    let nothing = |_: &mut TrackedRun| {};
    let five = json!({ "budget": { "amount": "5" } });
    assert_eq!(
        text(of(five.clone(), nothing)),
        "open: on-demand: Any change would cost more than it saves."
    );
    let spend = |tracked: &mut TrackedRun| tracked.totals.spent_micros = 5_000_000;
    assert_eq!(text(of(five, spend)), "shut: 5.00 of its budget of 5.00 USD is spent");
    let recommend = json!({ "budget": { "amount": "5" }, "mode": "Recommend" });
    assert!(matches!(of(recommend, spend), RunGate::Open(_)));
    // Another currency cannot be held against prices.
    let euros = json!({ "budget": { "amount": "5", "currency": "EUR" } });
    assert!(matches!(of(euros, spend), RunGate::Open(_)));
    let wait = |tracked: &mut TrackedRun| {
        let (_, decision) = tracked.decided.as_mut().unwrap();
        decision.choice = flyball_training::TrainingChoice::Wait;
        decision.reason = flyball_training::TrainingReason::SpotExpected;
    };
    assert!(text(of(none.clone(), wait)).starts_with("shut: wait: Spot is expected back soon"));
    let borrow = json!({ "borrow": true, "pool": "h100" });
    assert!(text(of(borrow.clone(), nothing)).starts_with("open: its Pool lends nothing"));
    // A Pool that lends, with and without a loan.
    let lends = |order: Option<u32>| {
        let (mut seen, _) = queued("a", 10, &all, &borrow);
        seen.market.lends = true;
        let mut tracked = TrackedRun::resume(&seen.run, at(4_000));
        tracked.loan = order.map(|gpus| LoanOrder {
            gpus: Gpus::new(gpus),
            since: at(0),
            promise: Micros::from_seconds(9),
        });
        (text(gate(&seen, &tracked, false)), text(gate(&seen, &tracked, true)))
    };
    assert_eq!(lends(None).0, "shut: it waits for a loan");
    assert_eq!(lends(Some(0)).0, "shut: it waits for a loan");
    assert_eq!(lends(Some(4)).0, "open: its accelerators are lent to it");
    assert_eq!(lends(Some(0)).1, "open: Flyball is frozen");
}

#[test]
fn a_run_that_costs_more_than_it_is_worth_is_told_so_and_goes_on() {
    let all: JobObjects = [workload("a", &json!({}))].into();
    let told = |value: &str| {
        let more = json!({ "value": { "amount": value } });
        let (_, report) = queued("a", 10, &all, &more);
        condition(&report.status, "WithinBudget")
    };
    assert_eq!(told("1000"), "-");
    // 600 steps of ten seconds are left, on four GPUs at 3.60, and saves.
    let poor = told("20");
    assert!(poor.starts_with("False RunAboveValue: finishing it costs 24.0"), "{poor}");
}

/// Two nodes of two GPUs on spot, and 640 steps of ten seconds left of 1,000.
fn sized(deadline: u64, growth: &str) -> Option<flyball_resources::training_run::RunSize> {
    let mut world = World::new();
    let mut pool: Value = serde_json::to_value(&*world.facts.pools[0]).unwrap();
    pool["spec"]["growth"] = json!(growth);
    world.facts.pools = vec![Arc::new(serde_json::from_value(pool).unwrap())];
    world.run["spec"]["deadline"] = json!(rfc3339(at(deadline)));
    world.run["spec"]["elastic"] = json!({ "minNodes": 1, "maxNodes": 8 });
    world.pods(0, "a", "spot");
    world.observe(60, &beat(0, None, 60));
    world.observe(3_660, &beat(360, Some(355), 3_660)).status.size
}

#[test]
fn the_size_that_is_recommended_is_the_one_that_is_in_time() {
    let size = sized(40_000, "Autoscaled").unwrap();
    assert_eq!((size.nodes, size.choice.as_str()), (2, "spot in a"));
    assert_eq!(Some(&size.expected_cost), size.present_cost.as_ref());
    assert!(size.message.starts_with("2 nodes are the best"), "{}", size.message);
    // 6,400 seconds of work, a restart of 600, and 5,000 to do it in.
    let size = sized(8_660, "Autoscaled").unwrap();
    assert!(size.nodes > 2 && size.present_cost.is_none(), "{size:?}");
    assert!(size.message.contains("are in time"), "{}", size.message);
    // Not even eight nodes.
    let size = sized(4_000, "Autoscaled").unwrap();
    assert_eq!(size.nodes, 8);
    assert!(size.message.ends_with("no size is in time"), "{}", size.message);
    // No on-demand machines to fall back on: nothing is sure, and nothing is recommended.
    assert_eq!(sized(40_000, "Fixed"), None);
}
