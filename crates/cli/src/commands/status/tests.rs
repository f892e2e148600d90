use serde_json::{Value, json};

use super::*;
use crate::output::{answer_json, answer_table, conforms};

fn model(generation: i64, conditions: &[(&str, &str)]) -> ModelService {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(kind, status)| {
            json!({
                "type": kind, "status": status, "reason": "Steady", "message": format!("{kind} is said"),
                "lastTransitionTime": "2026-11-15T14:02:10Z",
            })
        })
        .collect();
    let whole = json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "ModelService",
        "metadata": {"name": "qwen", "namespace": "demo", "generation": generation},
        "spec": {"variants": [{"targetRef": {"kind": "Deployment", "name": "qwen"}}]},
        "status": {
            "observedGeneration": 1, "readyReplicas": 1, "recommendedReplicas": 2,
            "conditions": conditions,
        },
    });
    serde_json::from_value(whole).unwrap()
}

fn state(generation: i64, conditions: &[(&str, &str)]) -> State {
    judge::judge(&model(generation, conditions)).state
}

#[test]
fn settled_is_what_kstatus_says() {
    use State::{InProgress, Settled as Done, Stalled};
    assert_eq!(state(1, &[("Ready", "True")]), Done);
    assert_eq!(state(1, &[("Ready", "True"), ("Reconciling", "True")]), InProgress);
    assert_eq!(state(1, &[("Ready", "False"), ("Stalled", "True")]), Stalled);
    for unknown in ["False", "Unknown"] {
        assert_eq!(state(1, &[("Ready", unknown)]), InProgress);
    }
    assert_eq!(state(1, &[]), InProgress);
    // A status about an older spec says nothing about this one.
    assert_eq!(state(2, &[("Ready", "True")]), InProgress);
    assert_eq!(state(2, &[("Stalled", "True")]), InProgress);
    let mut unseen = model(1, &[]);
    unseen.status = None;
    assert_eq!(judge::judge(&unseen).message, "no operator has observed it yet");
}

#[test]
fn the_answer_and_its_status() {
    let answer = |conditions: &[(&str, &str)], timed_out| StatusAnswer {
        timed_out,
        waited_seconds: 75,
        models: vec![judge::judge(&model(1, conditions))],
    };
    let settled = answer(&[("Ready", "True")], false);
    assert_eq!(settled.exit(), Exit::Yes);
    let stalled = answer(&[("Stalled", "True")], false);
    assert_eq!(stalled.exit(), Exit::No);
    let late = answer(&[("Reconciling", "True")], true);
    assert_eq!(late.exit(), Exit::TimedOut);
    let all = [settled, stalled, late];
    all.iter().for_each(|one| conforms("status", &answer_json(one)));
    let texts = all.iter().map(|one| answer_table(one, Detail::Full));
    insta::assert_snapshot!(texts.collect::<Vec<_>>().join("\n"));
}
