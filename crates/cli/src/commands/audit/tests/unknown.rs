//! What the log does not say is not guessed.

use super::*;

fn spec(keys: Value) -> Value {
    json!({ "models": ["m"], "keys": keys })
}

fn patch(second: u32, request: Value, response: Value) -> Value {
    LoggedCall { request, ..call(second, "patch", response) }.event()
}

#[test]
fn with_metadata_alone_a_change_is_one_and_no_more() {
    let events = [
        call(1, "create", Value::Null).event(),
        call(2, "patch", Value::Null).event(),
        call(3, "delete", Value::Null).event(),
    ];
    let none = String::new();
    let expected = [(none.clone(), Some(false)), (none.clone(), Some(false)), (none, Some(true))];
    assert_eq!(outcomes(&events), expected);
}

#[test]
fn with_requests_alone_a_merge_patch_replaces_what_it_names() {
    let whole = tenant(1, spec(json!([key("a", 1)])));
    let mut revoked = key("a", 1);
    revoked["disabled"] = json!(true);
    let events = [
        LoggedCall { request: whole, ..call(1, "create", Value::Null) }.event(),
        patch(2, json!({ "spec": { "keys": [revoked] } }), Value::Null),
        patch(3, json!({ "spec": { "weight": 3, "limits": { "concurrency": 2 } } }), Value::Null),
        patch(
            4,
            json!({ "spec": { "limits": { "concurrency": 2 }, "weight": null } }),
            Value::Null,
        ),
        // Applied: the rest of the object depends on who manages what.
        patch(5, tenant(1, json!({ "models": ["n"] })), Value::Null),
        patch(6, json!({ "spec": { "models": ["o"] } }), Value::Null),
    ];
    let known = |words: &str| (words.to_owned(), Some(true));
    let written = |words: &str| (words.to_owned(), Some(false));
    let expected = [
        known("key created a (0000000001)"),
        known("key revoked a (0000000001)"),
        known("spec.limits; spec.weight"),
        known("spec.weight"),
        written("spec.models"),
        written("spec.models"),
    ];
    assert_eq!(outcomes(&events), expected);
}

#[test]
fn a_log_that_begins_later_does_not_say_what_was_there_before() {
    let events = [
        patch(1, json!({ "spec": { "keys": [] } }), tenant(7, spec(json!([])))),
        patch(2, json!({ "spec": { "keys": [] } }), tenant(8, spec(json!([key("a", 1)])))),
    ];
    let expected = [
        ("spec.keys".to_owned(), Some(false)),
        ("key created a (0000000001)".to_owned(), Some(true)),
    ];
    assert_eq!(outcomes(&events), expected);
}

#[test]
fn a_change_that_no_line_tells_of_is_not_put_down_to_the_next_one() {
    let events = [
        call(1, "create", tenant(1, spec(json!([])))).event(),
        patch(2, json!({ "spec": { "models": ["m"] } }), tenant(4, spec(json!([key("a", 1)])))),
        // Nothing of the spec.
        call(3, "patch", tenant(4, spec(json!([key("a", 1)])))).event(),
        // Another object of the name.
        {
            let mut other = tenant(5, spec(json!([])));
            other["metadata"]["uid"] = json!("other");
            call(4, "patch", other).event()
        },
    ];
    let acts = acts(&events);
    assert_eq!(acts[1].missing_before, Some(2));
    let expected = [
        (String::new(), Some(true)),
        ("spec.models".to_owned(), Some(false)),
        (String::new(), Some(true)),
        (String::new(), Some(false)),
    ];
    assert_eq!(outcomes(&events), expected);
}

#[test]
fn what_was_refused_or_only_tried_changes_nothing() {
    let with = |number: u8| tenant(2, spec(json!([key("a", number)])));
    let mut dry = call(3, "patch", with(1)).event();
    dry["requestURI"] = json!("/x?dryRun=All");
    let refused = LoggedCall { code: 422, ..call(2, "patch", with(9)) }.event();
    let mut dry_deletion = call(4, "delete", Value::Null).event();
    dry_deletion["requestObject"] = json!({ "kind": "DeleteOptions", "dryRun": ["All"] });
    let events = [
        call(1, "create", tenant(1, spec(json!([])))).event(),
        refused,
        dry,
        dry_deletion,
        call(5, "patch", with(2)).event(),
    ];
    let acted: Vec<(String, String)> =
        acts(&events).into_iter().map(|act| (act.act, act.outcome)).collect();
    let acted: Vec<_> =
        acted.iter().map(|(act, outcome)| (act.as_str(), outcome.as_str())).collect();
    let expected = [
        ("created", "accepted"),
        ("changed", "refused 422"),
        ("changed", "dry run"),
        ("deleted", "dry run"),
        ("changed", "accepted"),
    ];
    assert_eq!(acted, expected);
    let outcomes = outcomes(&events);
    assert_eq!(outcomes[2].0, "key created a (0000000001)");
    assert_eq!(outcomes[4].0, "key created a (0000000002)");
}

#[test]
fn annotations_of_ours_are_named_and_those_of_others_are_not() {
    let with = |annotations: Value| {
        let mut whole = tenant(1, spec(json!([])));
        whole["metadata"]["annotations"] = annotations;
        whole
    };
    let other = "kubectl.kubernetes.io/last-applied-configuration";
    let frozen = json!({ "flyball.dev/frozen-until": "2026-11-16T00:00:00Z", other: CANARY });
    let events =
        [call(1, "create", with(Value::Null)).event(), call(2, "patch", with(frozen)).event()];
    assert_eq!(
        outcomes(&events)[1],
        ("annotation flyball.dev/frozen-until".to_owned(), Some(true))
    );
}

#[test]
fn statuses_reads_and_other_groups_are_left_out_and_the_scale_is_not() {
    let of = |change: &dyn Fn(&mut Value)| {
        let mut event = call(1, "patch", Value::Null).event();
        change(&mut event);
        event
    };
    let left_out = [
        of(&|event| event["objectRef"]["subresource"] = json!("status")),
        of(&|event| event["objectRef"]["apiGroup"] = json!("apps")),
        of(&|event| event["objectRef"]["apiGroup"] = json!("evil.flyball.dev.example.com")),
        of(&|event| event["objectRef"] = Value::Null),
        of(&|event| event["stage"] = json!("RequestReceived")),
        of(&|event| event["stage"] = json!("ResponseStarted")),
        of(&|event| event["verb"] = json!("get")),
    ];
    assert_eq!(acts(&left_out), []);
    let scaled = of(&|event| {
        event["objectRef"]["resource"] = json!("modelservices");
        event["objectRef"]["subresource"] = json!("scale");
        event["requestObject"] = json!({ "spec": { "replicas": 3 } });
    });
    let panicked = of(&|event| event["stage"] = json!("Panic"));
    let found = acts(&[scaled, panicked]);
    assert_eq!(found[0].object, "modelservice/ml/search/scale");
    assert_eq!(found[0].changes[0].words(), "spec.replicas");
    assert!(found[1].outcome.starts_with("failed"), "{}", found[1].outcome);
}
