use serde_json::{Value, json};

use super::*;
use crate::output::{answer_json, answer_table, conforms};

fn entry(model: &str, at: &str, to: Value) -> Entry {
    let entry = json!({
        "model": model, "from": null, "to": to, "ready": 1, "mode": "Recommend",
        "receipt": {
            "id": "1-0", "at": at, "reason": "SignalsMissing", "bound": "Staleness",
            "message": "The work is not known.",
        },
    });
    serde_json::from_value(entry).unwrap()
}

fn list(decisions: Vec<Entry>) -> DecisionList {
    DecisionList { asked_at: "2026-11-15T14:05:30Z".to_owned(), decisions }
}

#[test]
fn decisions_are_a_table_in_which_unknown_is_a_dash() {
    let answer = list(vec![
        entry("demo/qwen", "2026-11-14T23:00:00.5Z", json!(1)),
        entry("team-a/a-model-with-a-rather-long-name", "2026-11-15T14:00:00Z", Value::Null),
    ]);
    conforms("decisions", &answer_json(&answer));
    insta::assert_snapshot!(answer_table(&answer, Detail::Full));
    let none = list(Vec::new());
    assert_eq!(answer_table(&none, Detail::Full), "no decision that fits is remembered\n");
}

#[test]
fn reasons_are_read_in_any_case() {
    assert_eq!(reason("signalsmissing").unwrap(), Reason::SignalsMissing);
    let failure = reason("SignalMissing").unwrap_err();
    assert_eq!(failure.hint.as_deref(), Some("did you mean --reason SignalsMissing?"));
    assert_eq!(reason("FLY-101").unwrap_err().exit, Exit::Usage);
}
