use flyball_resources::ModelService;
use serde_json::json;

use super::answer::Target;
use super::write::annotations;
use super::*;
use crate::output::{Detail, answer_json, answer_table, conforms};

fn now() -> jiff::Timestamp {
    "2026-11-15T14:05:30Z".parse().unwrap()
}

fn model(annotations: serde_json::Value) -> Target {
    let whole = json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "ModelService",
        "metadata": {"name": "qwen", "namespace": "demo", "annotations": annotations},
        "spec": {"variants": [{"targetRef": {"kind": "Deployment", "name": "qwen"}}]},
        "status": {"readyReplicas": 3, "hourlyCost": "12.00", "currency": "USD"},
    });
    Target::Model(Box::new(serde_json::from_value::<ModelService>(whole).unwrap()))
}

fn frozen() -> Target {
    model(json!({
        "flyball.dev/frozen-until": "2026-11-15T15:00:00Z",
        "flyball.dev/frozen-because": "black friday",
    }))
}

fn freeze(target: &Target, dry_run: bool) -> Brake {
    let until = "2026-11-15T16:05:30Z".parse().unwrap();
    let until = matches!(target, Target::Model(_)).then_some(until);
    let mut brake = Brake::freeze("load test of the checkout", until, now());
    brake.of(target);
    Brake { dry_run, done: !dry_run, ..brake }
}

fn resume(target: &Target, dry_run: bool) -> Brake {
    let mut brake = Brake::resume(now());
    brake.of(target);
    Brake { dry_run, done: brake.changes && !dry_run, ..brake }
}

#[test]
fn it_says_what_it_did_and_how_to_undo_it() {
    let everything = |now: Option<&str>| Target::All {
        namespace: "flyball".to_owned(),
        now: now.map(str::to_owned),
    };
    let all = [
        freeze(&model(json!({})), false),
        freeze(&model(json!({})), true),
        freeze(&frozen(), true),
        freeze(&everything(None), false),
        freeze(&everything(Some("with everything: a fire")), true),
        resume(&frozen(), false),
        resume(&frozen(), true),
        resume(&model(json!({})), false),
        resume(&everything(Some("with everything: a fire")), false),
        resume(&everything(None), false),
    ];
    all.iter().for_each(|one| conforms("brake", &answer_json(one)));
    let texts = all.iter().map(|one| answer_table(one, Detail::Full));
    insta::assert_snapshot!(texts.collect::<Vec<_>>().join("---\n"));
}

#[test]
fn a_freeze_sets_annotations_and_its_end_takes_them_away() {
    let set = annotations(&freeze(&model(json!({})), false));
    assert_eq!(set["flyball.dev/frozen-until"], "2026-11-15T16:05:30Z");
    assert_eq!(set["flyball.dev/frozen-because"], "load test of the checkout");
    let gone = annotations(&resume(&frozen(), false));
    assert!(
        gone["flyball.dev/frozen-until"].is_null() && gone["flyball.dev/frozen-because"].is_null()
    );
}

#[test]
fn a_reason_is_a_few_words() {
    assert_eq!(words(" why "), Ok("why".to_owned()));
    assert!(words("  ").is_err() && words(&"x".repeat(501)).is_err());
}
