//! One run from its first look to its end, as its status says it.

mod kueue;
mod loans;

use super::heartbeat::HeartbeatAnswer;
use super::*;
use crate::observe::{JobKind, JobObjects, JobsUnknown, NodeFacts, PodFacts};
use flyball_resources::heartbeat::Heartbeat;
use flyball_resources::rfc3339;
use flyball_resources::training_run::TrainingRunStatus;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const TICK: Micros = Micros::from_minutes(1);

/// 2026-11-15T14:00:00Z, and so many seconds.
fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis((1_794_751_200 + seconds) * 1_000)
}

/// Two pods of two GPUs on a node each, and what the API server says of them.
struct World {
    run: Value,
    facts: RunFacts,
    workloads: WorkloadsOfRuns,
    zones: ZoneHistory,
    tracked: Option<TrackedRun>,
    before: Option<TrainingRunStatus>,
}

impl World {
    fn new() -> Self {
        let pool = json!({
            "apiVersion": "flyball.dev/v1alpha1", "kind": "Pool", "metadata": { "name": "h100" },
            "spec": { "accelerator": "h100-sxm-80gb", "growth": "Fixed", "prices": [
                { "purchase": "OnDemand", "perGpuHour": "3.60" },
                { "purchase": "Spot", "perGpuHour": "0.90" },
            ] },
        });
        let facts = RunFacts {
            pools: vec![Arc::new(serde_json::from_value(pool).unwrap())],
            ..RunFacts::default()
        };
        let run = json!({
            "apiVersion": "flyball.dev/v1alpha1", "kind": "TrainingRun",
            "metadata": { "name": "ft", "namespace": "ml", "generation": 3, "uid": "u" },
            "spec": {
                "workloadRef": { "kind": "JobSet", "name": "ft" }, "deadline": rfc3339(at(36_000)),
            },
        });
        let mut world = Self {
            run,
            facts,
            workloads: WorkloadsOfRuns::default(),
            zones: ZoneHistory::default(),
            tracked: None,
            before: None,
        };
        world.job_set(&json!({}), &json!({}));
        world
    }

    fn job_set(&mut self, more: &Value, status: &Value) {
        let mut spec = json!({ "replicatedJobs": [{ "name": "workers", "replicas": 2, "template": { "spec": {
            "template": { "spec": { "containers": [
                { "name": "a", "resources": { "limits": { "nvidia.com/gpu": "2" } } },
            ] } },
        } } }] });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let set = json!({
            "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
            "metadata": { "name": "ft", "namespace": "ml" }, "spec": spec, "status": status,
        });
        self.with(JobKind::JobSet, Some(set));
        self.with(JobKind::Workload, None);
    }

    fn with(&mut self, kind: JobKind, object: Option<Value>) {
        let objects: JobObjects = object
            .into_iter()
            .map(|one| {
                (("ml".to_owned(), "ft".to_owned()), Arc::new(serde_json::from_value(one).unwrap()))
            })
            .collect();
        self.workloads = std::mem::take(&mut self.workloads).with(kind, Ok(objects));
    }

    /// The pods run since then, on nodes of this kind.
    fn pods(&mut self, since: u64, uid: &str, capacity: &str) {
        let pod = |place: u32| PodFacts {
            name: format!("ft-{place}"),
            uid: format!("{uid}-{place}"),
            labels: labels(&[("jobset.sigs.k8s.io/job-global-index", &place.to_string())]),
            ip: Some("10.0.0.1".to_owned()),
            node: Some(format!("node-{place}")),
            created: at(since),
            scheduled: Some(at(since)),
            asks: BTreeMap::from([("nvidia.com/gpu".to_owned(), 2)]),
            ..PodFacts::default()
        };
        let key = ("ml".to_owned(), JobKind::JobSet, "ft".to_owned());
        self.facts.gangs = BTreeMap::from([(key, vec![pod(1), pod(0)])]);
        let node = |place: u32| {
            let node = NodeFacts {
                labels: labels(&[
                    ("karpenter.sh/capacity-type", capacity),
                    ("topology.kubernetes.io/zone", "a"),
                ]),
                allocatable: BTreeMap::from([("nvidia.com/gpu".to_owned(), 2)]),
                usable: true,
                created: at(0),
                ..NodeFacts::default()
            };
            (format!("node-{place}"), node)
        };
        self.facts.nodes = [node(0), node(1)].into();
    }

    fn observe(&mut self, now: u64, answer: &HeartbeatAnswer) -> RunReport {
        let mut run: TrainingRun = serde_json::from_value(self.run.clone()).unwrap();
        run.status = self.before.clone();
        let run = Arc::new(run);
        let seen =
            observe(&run, &self.facts, &self.workloads, &mut self.zones, at(now)).expect("listed");
        let tracked = self.tracked.get_or_insert_with(|| TrackedRun::resume(&run, at(now)));
        let report = consider(&seen, answer, tracked, TICK, at(now));
        self.before = Some(report.status.clone());
        report
    }
}

fn labels(all: &[(&str, &str)]) -> BTreeMap<String, String> {
    all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn beat(step: u64, saved: Option<u64>, now: u64) -> HeartbeatAnswer {
    HeartbeatAnswer::Received(Heartbeat {
        step,
        at: at(now),
        total_steps: Some(1_000),
        saved_step: saved,
        restored_step: 0,
        step_time: Some(Micros::from_seconds(10)),
        save_time: Some(Micros::from_seconds(5)),
        restore_time: None,
        tokens: None,
        started_at: None,
        attempt: Some("first".to_owned()),
        save_every: None,
        instructions_number: None,
        attempt_count: None,
        repeated_steps: None,
    })
}

/// One of a later start.
fn again(
    (step, restored, now): (u64, u64, u64),
    attempt: &str,
    counted: Option<(u64, u64)>,
) -> HeartbeatAnswer {
    let HeartbeatAnswer::Received(mut beat) = beat(step, Some(restored), now) else {
        unreachable!()
    };
    beat.attempt = Some(attempt.to_owned());
    beat.restored_step = restored;
    (beat.attempt_count, beat.repeated_steps) = counted.unzip();
    HeartbeatAnswer::Received(beat)
}

fn condition(status: &TrainingRunStatus, kind: &str) -> String {
    let found = status.conditions.iter().find(|one| one.type_ == kind);
    found.map_or("-".to_owned(), |one| format!("{} {}: {}", one.status, one.reason, one.message))
}

#[test]
fn a_run_on_spot_has_progress_an_end_a_cost_and_a_decision() {
    let mut world = World::new();
    world.pods(0, "a", "spot");
    world.observe(60, &beat(0, None, 60));
    let report = world.observe(3_660, &beat(360, Some(300), 3_660));
    assert_eq!(report.state, "progressing");
    insta::assert_json_snapshot!(report.status);
    assert_eq!(report.saved_age_seconds, Some(600.0));
    // Four GPUs at 0.90 for the hour.
    let cost = report.status.cost.unwrap();
    assert_eq!((cost.spent.as_str(), cost.hourly.as_deref()), ("3.6000", Some("3.6000")));
}

#[test]
fn of_pools_with_the_same_nodes_one_with_prices_counts_whatever_their_order() {
    let pool = |name: &str, more: Value| {
        let mut spec = json!({ "accelerator": "h100-sxm-80gb" });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let pool = json!({
            "apiVersion": "flyball.dev/v1alpha1", "kind": "Pool", "metadata": { "name": name }, "spec": spec,
        });
        Arc::new(serde_json::from_value(pool).unwrap())
    };
    let priced = || json!({ "prices": [{ "purchase": "OnDemand", "perGpuHour": "3.60" }] });
    let mut pools = vec![pool("a", json!({})), pool("c", priced()), pool("b", priced())];
    for _ in 0..2 {
        let mut world = World::new();
        world.facts.pools.clone_from(&pools);
        world.pods(0, "a", "on-demand");
        let status = world.observe(3_600, &beat(0, None, 3_600)).status;
        assert_eq!(status.placement.unwrap().pool.as_deref(), Some("b"));
        assert_eq!(status.cost.unwrap().hourly.as_deref(), Some("14.4000"));
        pools.reverse();
    }
}

#[test]
fn a_status_is_of_the_form_that_the_schema_has() {
    let mut world = World::new();
    world.pods(0, "a", "spot");
    world.observe(60, &beat(1, None, 60));
    let status = serde_json::to_value(world.observe(120, &beat(5, Some(4), 120)).status).unwrap();
    let crd: CustomResourceDefinition = TrainingRun::crd();
    let schema = crd.spec.versions[0].schema.as_ref().unwrap();
    let schema = serde_json::to_value(schema.open_api_v3_schema.as_ref().unwrap()).unwrap();
    let fields = &schema["properties"]["status"]["properties"];
    for (name, value) in status.as_object().unwrap() {
        let field = &fields[name];
        assert!(field.is_object(), "{name}");
        for inner in value.as_object().into_iter().flatten().map(|(inner, _)| inner) {
            assert!(field["properties"][inner].is_object(), "{name}.{inner}");
        }
    }
}

#[test]
fn work_since_the_last_save_is_lost_with_a_machine_that_was_reclaimed_and_sums_survive_a_restart() {
    let mut world = World::new();
    world.pods(0, "a", "spot");
    world.observe(60, &beat(0, None, 60));
    world.observe(1_060, &beat(100, Some(80), 1_060));
    for node in world.facts.nodes.values_mut() {
        node.outlook = crate::observe::Outlook::Leaves { taint: "t".to_owned(), since: None };
    }
    world.observe(1_070, &beat(101, Some(80), 1_070));
    world.facts.gangs.clear();
    world.observe(1_200, &HeartbeatAnswer::NotRequested);
    // Another operator.
    world.tracked = None;
    world.pods(1_300, "b", "on-demand");
    let HeartbeatAnswer::Received(mut again) = beat(82, Some(80), 1_500) else { unreachable!() };
    again.attempt = Some("second".to_owned());
    again.restored_step = 80;
    again.started_at = Some(at(1_320));
    again.restore_time = Some(Micros::from_seconds(40));
    let report = world.observe(1_500, &HeartbeatAnswer::Received(again));
    let lost = &report.status.lost;
    assert_eq!(lost.len(), 1);
    assert_eq!((lost[0].steps, lost[0].seconds, lost[0].times), (21, 210, 1));
    // Who restarts meanwhile has not seen why; the steps are counted all the same.
    assert_eq!(lost[0].cause, "Unknown");
    let progress = report.status.progress.unwrap();
    assert_eq!(progress.restart_seconds.as_deref(), Some("60.000"));
    assert_eq!(report.status.attempt_count, Some(2));
    let attempts: Vec<_> =
        report.status.attempts.iter().map(|one| (one.from_step, one.last_step)).collect();
    assert_eq!(attempts, [(Some(0), Some(101)), (Some(80), Some(82))]);
    // 1,010 s before and 200 after.
    let account = report.status.account.unwrap();
    assert_eq!((account.machine_seconds, account.step_seconds), (1_210, 1_030));
}

#[test]
fn a_reclaim_is_named_as_the_cause_by_who_saw_it() {
    let mut world = World::new();
    world.pods(0, "a", "spot");
    world.observe(60, &beat(100, Some(80), 60));
    world.facts.nodes.clear();
    world.observe(70, &HeartbeatAnswer::Failed("gone".to_owned()));
    world.pods(100, "b", "spot");
    let HeartbeatAnswer::Received(mut again) = beat(80, Some(80), 150) else { unreachable!() };
    again.attempt = Some("second".to_owned());
    again.restored_step = 80;
    let report = world.observe(150, &HeartbeatAnswer::Received(again));
    assert_eq!(report.status.lost[0].cause, "Reclaimed");
    assert_eq!(report.status.attempts[0].end.as_deref(), Some("Reclaimed"));
}

#[test]
fn a_start_that_has_not_restored_yet_has_lost_nothing() {
    let mut world = World::new();
    world.pods(0, "a", "spot");
    world.observe(60, &beat(100, Some(80), 60));
    let starts = again((0, 0, 90), "second", None);
    assert_eq!(world.observe(90, &starts).status.attempt_count, Some(1));
    let report = world.observe(95, &again((80, 80, 95), "second", None));
    assert_eq!((report.status.attempt_count, report.status.lost[0].steps), (Some(2), 20));
}

#[test]
fn starts_and_steps_that_nobody_saw_are_taken_from_the_runs_own_counts() {
    let mut world = World::new();
    world.pods(0, "a", "spot");
    world.observe(60, &again((100, 0, 60), "first", Some((1, 0))));
    // It came to 130 before it was killed; the second went on from 120 to 150 unseen, the third from 140.
    let third = again((141, 140, 90), "third", Some((3, 20)));
    let status = world.observe(90, &third).status;
    assert_eq!((status.attempt_count, status.attempts[1].number), (Some(3), 3));
    assert_eq!((status.lost[0].times, status.lost[0].steps), (2, 20));
    assert_eq!(status.progress.unwrap().repeated_steps, Some(20));
    // Another operator goes on from the status.
    world.tracked = None;
    let fourth = again((146, 145, 120), "fourth", Some((4, 27)));
    let status = world.observe(120, &fourth).status;
    assert_eq!((status.attempt_count, status.lost[0].steps), (Some(4), 27));
}

#[test]
fn what_a_run_lost_before_it_was_first_seen_is_counted_without_a_time() {
    let mut world = World::new();
    world.pods(0, "a", "spot");
    let status = world.observe(60, &again((52, 50, 60), "third", Some((3, 20)))).status;
    let lost = &status.lost[0];
    assert_eq!((status.attempt_count, lost.cause.as_str()), (Some(3), "Unknown"));
    assert_eq!((lost.times, lost.steps, lost.seconds), (2, 20, 0));
}

#[test]
fn what_is_missing_for_a_decision_is_named_and_nothing_is_guessed() {
    let mut world = World::new();
    world.pods(0, "a", "spot");
    world.run["spec"]["deadline"] = Value::Null;
    let failed = HeartbeatAnswer::Failed("no answer from 10.0.0.1:9471: cannot connect".to_owned());
    let report = world.observe(60, &failed);
    assert_eq!(report.status.decision, None);
    assert_eq!(
        condition(&report.status, "PlacementApplied"),
        "Unknown RunUndecided: not known: a deadline, how much work is left"
    );
    assert_eq!(
        condition(&report.status, "HeartbeatFresh"),
        "False RunHeartbeatMissing: no answer from 10.0.0.1:9471: cannot connect"
    );
    assert_eq!(report.status.expected_end, None);
    assert_eq!(report.status.goodput_percent, None);
}

#[test]
fn a_run_that_tells_nothing_is_estimated_from_its_time_with_wide_ends() {
    let mut world = World::new();
    world.pods(0, "a", "on-demand");
    world.run["spec"]["checkpoint"] = json!({ "heartbeat": "None", "restartSeconds": 100 });
    world.run["spec"]["workSeconds"] = json!(10_000);
    world.observe(60, &HeartbeatAnswer::NotRequested);
    let report = world.observe(1_100, &HeartbeatAnswer::NotRequested);
    let end = report.status.expected_end.unwrap();
    assert_eq!((end.origin.as_str(), end.likely.as_str()), ("Assumed", "2026-11-15T16:55:20Z"));
    assert_eq!(report.status.progress.unwrap().percent.as_deref(), Some("9.4"));
    let decision = report.status.decision.unwrap();
    assert_eq!(decision.choice, "on-demand");
}

#[test]
fn what_stands_in_the_way_is_said() {
    let mut world = World::new();
    world.workloads = WorkloadsOfRuns::default().with(JobKind::JobSet, Err(JobsUnknown::Absent));
    let report = world.observe(0, &HeartbeatAnswer::NotRequested);
    assert_eq!(condition(&report.status, "Ready"), "False RunKindMissing: JobSet is not installed");
    world.with(JobKind::JobSet, None);
    let report = world.observe(5, &HeartbeatAnswer::NotRequested);
    assert_eq!(
        condition(&report.status, "Stalled"),
        "True TargetNotFound: JobSet ft does not exist"
    );
    world.job_set(&json!({ "suspend": true }), &json!({}));
    let queued = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": { "name": "jobset-ft", "namespace": "ml", "ownerReferences": [
            { "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "ft", "uid": "u" },
        ] },
        "status": { "conditions": [{
            "type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "no quota",
            "lastTransitionTime": "2026-11-15T14:00:00Z",
        }] },
    });
    world.with(JobKind::Workload, Some(queued));
    let report = world.observe(10, &HeartbeatAnswer::NotRequested);
    assert_eq!(
        condition(&report.status, "Reconciling"),
        "True RunWaiting: it waits for Kueue: no quota"
    );
    assert_eq!(report.status.placement.unwrap().admitted, Some(false));
    world.job_set(&json!({}), &json!({}));
    world.pods(20, "a", "spot");
    for pods in world.facts.gangs.values_mut() {
        pods[0].node = None;
        pods[0].pending = true;
    }
    let report = world.observe(30, &HeartbeatAnswer::NotRequested);
    assert_eq!(
        condition(&report.status, "Ready"),
        "False RunWaiting: 1 of 2 pods run, and 1 have a node; those that wait cost 1.80 USD/h"
    );
}

#[test]
fn a_stall_is_told_after_its_time_and_not_before() {
    let mut world = World::new();
    world.pods(0, "a", "spot");
    world.observe(60, &beat(7, None, 60));
    assert_eq!(world.observe(300, &beat(7, None, 60)).state, "progressing");
    let report = world.observe(400, &beat(7, None, 60));
    assert_eq!(
        condition(&report.status, "Ready"),
        "False RunStalled: no step for 5 min 40 s, with all 2 pods running"
    );
    assert!(condition(&report.status, "HeartbeatFresh").starts_with("False"));
}

#[test]
fn a_run_that_ended_says_so_with_steps_and_cost() {
    let mut world = World::new();
    world.pods(0, "a", "on-demand");
    world.observe(60, &beat(998, Some(990), 60));
    world.job_set(
        &json!({}),
        &json!({ "terminalState": "Completed", "conditions": [{
            "type": "Completed", "status": "True", "message": "jobset completed successfully",
            "lastTransitionTime": rfc3339(at(100)),
        }] }),
    );
    world.facts.gangs.clear();
    let report = world.observe(110, &HeartbeatAnswer::NotRequested);
    assert_eq!(report.state, "complete");
    assert_eq!(
        condition(&report.status, "Complete"),
        "True RunComplete: the job has ended with success; its last heartbeat was at step 998 of 1000"
    );
    assert_eq!(condition(&report.status, "DeadlineMet"), "True RunComplete: it has ended in time");
    let cost = report.status.cost.unwrap();
    assert_eq!(cost.expected.as_ref(), Some(&cost.spent));
    assert_eq!(report.status.attempts[0].end.as_deref(), Some("Complete"));
    assert_eq!(report.status.decision, None);
}

#[test]
fn nothing_new_is_nothing_to_write_and_a_decision_is_told_once() {
    use std::time::Duration;
    let mut world = World::new();
    world.pods(0, "a", "spot");
    let first = world.observe(60, &beat(10, None, 60)).status;
    assert!(is_news(None, &first, None));
    let (soon, later) = (Some(Duration::from_secs(5)), Some(Duration::from_secs(30)));
    let next = world.observe(65, &beat(10, None, 60)).status;
    assert!(!is_news(Some(&first), &next, soon), "numbers only");
    assert!(is_news(Some(&first), &next, later), "the end has moved");
    let over = TrainingRunStatus { account: None, ..first.clone() };
    assert!(!is_news(Some(&over), &first, later), "up to when sums go is nothing that changed");
    let mut slack = first.clone();
    slack.decision.as_mut().unwrap().slack_seconds = Some(1);
    assert!(!is_news(Some(&first), &slack, later), "only time has passed");
    assert!(is_news(Some(&first), &slack, Some(Duration::from_mins(10))));
    let told = turned(None, &first);
    let reasons: Vec<_> = told.iter().map(|(reason, _)| reason.name()).collect();
    assert_eq!(reasons, ["RunStays", "RunProgressing"]);
    assert_eq!(turned(Some(&first), &next), []);
}

/// A run that Flyball made, with its JobSet and Kueue's Workload as they are now.
fn acting(world: &mut World, placed: &str, suspend: bool, active: bool) {
    world.run["spec"].as_object_mut().unwrap().remove("workloadRef");
    world.run["spec"]["mode"] = json!("Act");
    world.run["spec"]["job"] =
        json!({ "image": "train:1", "nodes": 2, "gpusPerNode": 2, "queue": "research" });
    world.job_set(&json!({ "suspend": suspend }), &json!({}));
    let mut set = serde_json::to_value(
        &**world.workloads.of(JobKind::JobSet).unwrap().first_key_value().unwrap().1,
    )
    .unwrap();
    set["metadata"]["annotations"] = json!({ "flyball.dev/placed": placed });
    let container = "/spec/replicatedJobs/0/template/spec/template/spec/containers/0";
    set.pointer_mut(container).unwrap()["env"] =
        json!([{ "name": "FLYBALL_SAVE_EVERY_SECONDS", "value": "77" }]);
    world.with(JobKind::JobSet, Some(set));
    let workload = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": { "name": "jobset-ft", "namespace": "ml", "ownerReferences": [
            { "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "ft", "uid": "u" },
        ] },
        "spec": { "active": active },
    });
    world.with(JobKind::Workload, Some(workload));
}

fn step(world: &mut World, now: u64, answer: &HeartbeatAnswer) -> Option<act::RunStep> {
    world.observe(now, answer);
    next(world, now)
}

/// The next step after a look, whatever it decided.
fn next(world: &mut World, now: u64) -> Option<act::RunStep> {
    let run: Arc<TrainingRun> = Arc::new(serde_json::from_value(world.run.clone()).unwrap());
    let seen = observe(&run, &world.facts, &world.workloads, &mut world.zones, at(now)).unwrap();
    let tracked = world.tracked.as_mut().unwrap();
    let step = act::next_step(&seen, tracked, false, at(now));
    assert_eq!(act::next_step(&seen, tracked, true, at(now)), None, "frozen");
    if let Some(step) = &step {
        tracked.did(step, at(now));
    }
    step
}

#[test]
fn a_node_that_is_about_to_go_leads_to_a_save_at_once_and_again_while_the_run_goes_on_there() {
    let save = |step: &Option<act::RunStep>| match step {
        Some(act::RunStep::Save { instructions, .. }) => Some(instructions.save_now),
        Some(other) => panic!("{other:?}"),
        None => None,
    };
    let mut world = World::new();
    world.pods(0, "a", "spot");
    world.run["spec"]["mode"] = json!("Act");
    assert_eq!(save(&step(&mut world, 60, &beat(10, Some(8), 60))), Some(false), "how often");
    let node = world.facts.nodes.get_mut("node-1").unwrap();
    node.outlook = crate::observe::Outlook::Leaves { taint: "t".to_owned(), since: None };
    let asked = step(&mut world, 65, &beat(12, Some(8), 65));
    assert_eq!(save(&asked), Some(true));
    assert_eq!(step(&mut world, 70, &beat(12, Some(8), 70)), None, "the save is under way");
    assert_eq!(step(&mut world, 120, &beat(13, Some(13), 120)), None, "there is nothing to save");
    // Ten times as long as a save takes later.
    assert_eq!(save(&step(&mut world, 125, &beat(14, Some(13), 125))), Some(true));
    world.run["spec"]["mode"] = json!("Recommend");
    assert_eq!(step(&mut world, 300, &beat(30, Some(13), 300)), None);
    // A start knows nothing of what the one before was told.
    world.run["spec"]["mode"] = json!("Act");
    world.pods(330, "b", "spot");
    let second = again((14, 13, 340), "second", None);
    assert_eq!(save(&step(&mut world, 340, &second)), Some(false), "how often, once more");
}

#[test]
fn a_job_becomes_a_job_set_within_the_pod_security_standards() {
    let mut world = World::new();
    acting(&mut world, "", false, true);
    world.run["spec"]["job"]["checkpoints"] = json!({ "claim": "ft", "mountPath": "/checkpoints" });
    world.run["spec"]["job"]["runAsUser"] = json!(1_000);
    world.with(JobKind::JobSet, None);
    world.with(JobKind::Workload, None);
    let Some(act::RunStep::Apply(set)) = step(&mut world, 0, &HeartbeatAnswer::NotRequested) else {
        panic!("nothing is made")
    };
    insta::assert_json_snapshot!(set);
    let template = &set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"];
    assert_eq!(crate::validate::beyond(template), [""; 0]);
    world.run["spec"]["mode"] = json!("Recommend");
    assert_eq!(step(&mut world, 5, &HeartbeatAnswer::NotRequested), None);
    let ready = condition(world.before.as_ref().unwrap(), "Ready");
    assert_eq!(ready, "False Recommending: the JobSet is made once `mode` is Act");
}

#[test]
fn a_run_is_moved_after_a_save_while_it_stands_still_and_one_step_at_a_time() {
    use act::RunStep;
    use flyball_training::TrainingChoice;
    let mut world = World::new();
    acting(&mut world, "spot in a", false, true);
    world.pods(0, "a", "spot");
    let first = step(&mut world, 60, &beat(10, Some(8), 60));
    let Some(RunStep::Save { address, instructions }) = first else { panic!("{first:?}") };
    assert_eq!(address.to_string(), "10.0.0.1:9471");
    assert!(!instructions.save_now && instructions.save_every > Some(Micros::from_seconds(60)));
    assert_eq!(step(&mut world, 65, &beat(10, Some(8), 60)), None, "the instructions were sent");
    // It should leave, and there is something to save.
    let leaves = |world: &mut World, now: u64, step: u64, saved: u64| {
        world.observe(now, &beat(step, Some(saved), now));
        let (_, decision) = world.tracked.as_mut().unwrap().decided.as_mut().unwrap();
        decision.choice = TrainingChoice::OnDemand;
        decision.save_now = true;
        world.tracked.as_mut().unwrap().decided.as_mut().unwrap().0 = at(200);
        next(world, now)
    };
    let asked = leaves(&mut world, 200, 20, 8);
    assert!(
        matches!(&asked, Some(RunStep::Save { instructions, .. }) if instructions.save_now),
        "{asked:?}"
    );
    assert_eq!(leaves(&mut world, 205, 20, 8), None, "the save is under way");
    let stand = RunStep::Activate { workload: "jobset-ft".to_owned(), active: false };
    assert_eq!(leaves(&mut world, 210, 22, 21), Some(stand));
    acting(&mut world, "spot in a", true, false);
    assert_eq!(leaves(&mut world, 215, 22, 21), None, "its pods are still there");
    world.facts.gangs.clear();
    let moved = leaves(&mut world, 220, 22, 21);
    let Some(RunStep::Apply(set)) = moved else { panic!("{moved:?}") };
    assert_eq!(set["metadata"]["annotations"]["flyball.dev/placed"], "on-demand");
    // Nothing else of a suspended JobSet may change.
    assert!(set.to_string().contains(r#"{"name":"FLYBALL_SAVE_EVERY_SECONDS","value":"77"}"#));
    acting(&mut world, "on-demand", true, false);
    let go = RunStep::Activate { workload: "jobset-ft".to_owned(), active: true };
    assert_eq!(leaves(&mut world, 225, 22, 21), Some(go));
    acting(&mut world, "on-demand", true, true);
    assert_eq!(leaves(&mut world, 230, 22, 21), None, "Kueue has the word");
}
