use serde_json::{Value, json};

use super::*;
use crate::output::{Answer as _, Detail, answer_json, answer_table, conforms};

fn run(name: &str, status: Value) -> TrainingRun {
    let whole = json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "TrainingRun",
        "metadata": { "name": name, "namespace": "ml", "generation": 2 },
        "spec": {
            "workloadRef": { "kind": "JobSet", "name": name }, "deadline": "2026-11-16T08:00:00Z",
        },
        "status": status,
    });
    serde_json::from_value(whole).unwrap()
}

fn condition(kind: &str, so: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": kind, "status": so, "reason": reason, "message": message,
        "lastTransitionTime": "2026-11-15T14:02:10Z",
    })
}

fn status(generation: i64, conditions: &[Value]) -> Value {
    json!({
        "observedGeneration": generation,
        "progress": {
            "step": 360, "savedStep": 300, "totalSteps": 1000, "percent": "36.0",
            "stepSeconds": "10.000",
        },
        "expectedEnd": {
            "earliest": "2026-11-15T15:43:00Z", "likely": "2026-11-15T15:50:00Z",
            "latest": "2026-11-15T16:03:00Z", "origin": "Measured",
        },
        "cost": { "spent": "3.6000", "expected": "10.1200", "hourly": "3.6000", "currency": "USD" },
        "goodputPercent": "91.2",
        "lost": [{ "cause": "Reclaimed", "times": 2, "steps": 61, "seconds": 610 }],
        "placement": { "nodes": 2, "wantedNodes": 2, "gpus": 4, "purchase": "Spot", "zone": "a" },
        "decision": {
            "id": "1", "at": "2026-11-15T14:00:00Z", "choice": "spot in a", "reason": "RunStays",
            "message": "spot in a: Any change would cost more than it saves.",
            "latestOnDemandAt": "2026-11-16T05:00:00Z", "slackSeconds": 54_000,
        },
        "suggestedSaveSeconds": 420,
        "conditions": conditions,
    })
}

fn all() -> Vec<TrainingRun> {
    let ready = |so, reason, message| condition("Ready", so, reason, message);
    let in_time = condition("DeadlineMet", "True", "RunStays", "it can still lose 15 h");
    let runs = [ready("True", "RunProgressing", "at step 360 of 1000"), in_time];
    let stalled = [ready("False", "RunStalled", "no step for 12 min")];
    let waits = [
        ready("False", "RunWaiting", "it waits for Kueue: no quota"),
        condition("Reconciling", "True", "RunWaiting", "it waits for Kueue: no quota"),
    ];
    let over = [
        ready("True", "RunComplete", "the job has ended with success"),
        condition("Complete", "True", "RunComplete", "the job has ended with success"),
    ];
    vec![
        run("runs", status(2, &runs)),
        run("stalled", status(2, &stalled)),
        run("waits", json!({ "observedGeneration": 2, "conditions": waits })),
        run("over", status(2, &over)),
        run("new", Value::Null),
        run("stale", status(1, &runs)),
    ]
}

fn now() -> jiff::Timestamp {
    "2026-11-15T14:05:00Z".parse().unwrap()
}

#[test]
fn what_no_status_says_is_unknown_and_no_zero() {
    let list = RunList::of(&all(), false, now());
    conforms("runs", &answer_json(&list));
    insta::assert_snapshot!(answer_table(&list, Detail::Full));
    insta::assert_snapshot!(answer_table(&list, Detail::Problems));
    let empty = RunList::of(&[], false, now());
    let said = "0 runs: 0 running, 0 waiting, 0 stalled, 0 complete, 0 failed, 0 unknown\n";
    assert_eq!(answer_table(&empty, Detail::Full), said);
}

#[test]
fn one_run_is_shown_in_full_and_its_end_is_an_exit_status() {
    let shown: Vec<String> = all()
        .iter()
        .map(|run| answer_table(&RunList::of(std::slice::from_ref(run), true, now()), Detail::Full))
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
    let exit = |name: &str, timed_out: bool| {
        let run = all().into_iter().find(|run| full_name(run) == format!("ml/{name}")).unwrap();
        let list = RunList::of(&[run], true, now());
        RunList { waited: true, timed_out, ..list }.exit()
    };
    assert_eq!(exit("over", false), Exit::Yes);
    assert_eq!(exit("stalled", true), Exit::TimedOut);
    assert_eq!(exit("runs", false), Exit::No);
    assert_eq!(RunList::of(&all()[..1], true, now()).exit(), Exit::Yes, "it was not waited for");
}

#[test]
fn a_change_is_a_line() {
    let line = ListedRun::of(&all()[0]).line(now());
    assert_eq!(line, "ml/runs is running, at step 360 of 1000, end 15:50:00");
}
