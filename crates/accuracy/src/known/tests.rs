//! What of an answer is read, and what happens if it is not there.

use super::answer::Answer;
use super::reads::read;
use super::rows::Row;
use serde_json::{Value, json};

pub(super) fn row(id: &str, reads: &str, published: &str) -> Row {
    Row {
        id: id.to_owned(),
        kind: "serving".to_owned(),
        question: "How long?".to_owned(),
        command: "flyball plan serve -o json".to_owned(),
        reads: reads.to_owned(),
        published: published.to_owned(),
        unit: "days".to_owned(),
        low: None,
        high: None,
        fitted: "no".to_owned(),
        askable: "yes".to_owned(),
        layout: "TP2".to_owned(),
        unstated: String::new(),
    }
}

fn numbers(reads: &str, json: &Value) -> [f64; 3] {
    match read(&row("a", reads, "1"), json).unwrap().answer {
        Answer::Number { low, point, high } => [low, point, high],
        other => panic!("{other:?}"),
    }
}

fn served() -> Value {
    let one = |layout: &str, gpus: u32, replicas: u32| {
        json!({
            "layout": layout, "gpusPerReplica": gpus, "replicas": replicas, "evidence": "same GPU",
            "ttftP95Ms": {"low": 10.0, "point": 20.0, "high": 40.0},
            "tpotMs": {"low": 8.0, "point": 10.0, "high": 16.0},
            "tpotFullMs": {"low": 16.0, "point": 20.0, "high": 32.0},
            "replicaCapacity": {"low": 1.0, "point": 2.0, "high": 4.0},
        })
    };
    json!({
        "kind": "ServePlan", "load": {"rate": 4.0},
        "choices": [one("TP1", 1, 1)],
        "points": [one("TP2", 2, 1), one("TP8 PP2", 16, 2)],
    })
}

#[test]
fn time_per_token_is_that_of_the_layout_that_was_run() {
    let json = served();
    assert_eq!(numbers("mean time per token at this rate", &json), [8.0, 10.0, 16.0]);
    assert_eq!(numbers("64 / mean time per token", &json), [4000.0, 6400.0, 8000.0]);
    let both = numbers("TTFT + 127 x mean time per token, 8 running", &json);
    assert_eq!(both, [1026.0, 1290.0, 2072.0]);
    // One that does not carry the rate alone is read as it is when it is full.
    assert_eq!(numbers("16 / mean time per token of TP8 PP2", &json), [500.0, 800.0, 1000.0]);
}

#[test]
fn capacities_are_multiplied_as_the_words_say() {
    let json = served();
    assert_eq!(numbers("replicaCapacity of TP2", &json), [1.0, 2.0, 4.0]);
    assert_eq!(numbers("replicaCapacity x 2048 / 2 of TP2", &json), [1024.0, 2048.0, 4096.0]);
    assert_eq!(numbers("replicaCapacity x 100 over 8 GPUs", &json), [400.0, 800.0, 1600.0]);
    assert_eq!(numbers("choices with PP2: the fewest gpusPerReplica", &json), [16.0; 3]);
    assert_eq!(numbers("choices[0].replicas of TP2", &json), [1.0, 1.0, 4.0]);
}

#[test]
fn speeds_of_training_have_the_interval_of_a_step_the_other_way_round() {
    let json = json!({"kind": "TrainPlan", "choices": [{
        "gpus": 10, "layout": "TP8 DP2 full recompute", "tokensPerSecond": 1000.0, "mfu": 0.4,
        "stepSeconds": {"low": 1.0, "point": 2.0, "high": 4.0},
        "days": {"low": 1.0, "point": 2.0, "high": 3.0},
    }]});
    assert_eq!(numbers("tokensPerSecond / gpus", &json), [50.0, 100.0, 200.0]);
    assert_eq!(numbers("mfu", &json), [20.0, 40.0, 80.0]);
    assert_eq!(numbers("days x gpus x 24", &json), [240.0, 480.0, 720.0]);
    let layout = read(&row("a", "choices[0].layout", "no recompute"), &json).unwrap();
    assert_eq!(layout.answer, Answer::Words(vec!["TP8 DP2 full recompute".to_owned()]));
}

#[test]
fn warnings_are_read_with_the_answer() {
    let mut json = served();
    json["warnings"] = json!(["an old engine"]);
    let found = read(&row("a", "replicaCapacity", "1"), &json).unwrap();
    assert_eq!(found.warnings, ["an old engine"]);
}

#[test]
fn hostile_answers_are_errors_and_never_numbers() {
    let reads = ["days", "mfu", "verdict", "replicaCapacity x", "replicaCapacity ? 2", "nonsense"];
    let hostile = [
        json!(null),
        json!([]),
        json!({"kind": "ServePlan"}),
        json!({"kind": "TrainPlan", "choices": []}),
        json!({"kind": "TrainPlan", "choices": [{"days": {"low": 9, "point": 2, "high": "x"}}]}),
        json!({"kind": "TrainPlan", "choices": [{"days": {"low": 9, "point": 2, "high": 3}}]}),
        json!({"kind": "FitReport", "fits": [{"answer": 7}]}),
    ];
    for reads in reads {
        for json in &hostile {
            assert!(read(&row("a", reads, "1"), json).is_err(), "{reads}: {json}");
        }
    }
}
