//! The whole stream, as it is printed.

use super::*;
use crate::output::{Answer as _, Detail, Exit, answer_json, answer_table, conforms};

/// What people and programs did in a minute; lines of two logs, not in order.
fn minute() -> Vec<String> {
    let end = "2026-11-16T14:02:00Z";
    let ending = json!({ "name": "app", "id": "0000000001", "sha256": HASH, "expires": end });
    let mut revoked = key("app-2", 2);
    revoked["disabled"] = json!(true);
    let spec = |keys: Value| json!({ "models": ["llama-*"], "keys": keys });
    let mut wider = spec(json!([ending, revoked]));
    wider["models"] = json!(["*"]);
    let mut forbidden = call(40, "patch", Value::Null).event();
    forbidden["user"]["username"] = json!("system:admin");
    forbidden["impersonatedUser"] = json!({ "username": "mallory" });
    forbidden["responseStatus"]["code"] = json!(403);
    let mut conflict = LoggedCall {
        code: 409,
        request: json!({ "metadata": { "resourceVersion": "7" }, "spec": { "keys": [] } }),
        ..call(41, "patch", Value::Null)
    }
    .event();
    conflict["responseObject"] = json!({ "kind": "Status", "apiVersion": "v1", "code": 409 });
    let mut dry = call(50, "patch", tenant(5, wider.clone())).event();
    dry["requestURI"] = json!("/apis/flyball.dev/v1alpha1/namespaces/ml/tenants/search?dryRun=All");
    let mut secret = call(21, "create", Value::Null).event();
    secret["objectRef"] =
        json!({ "resource": "secrets", "namespace": "shop", "name": "search-key" });
    secret["requestURI"] = json!("/api/v1/namespaces/shop/secrets?fieldManager=flyball-cli");
    let mut model = call(55, "patch", Value::Null).event();
    model["objectRef"]["resource"] = json!("modelservices");
    model["objectRef"]["name"] = json!("chat");
    model["user"]["username"] = json!("system:serviceaccount:ci:deployer");
    let mut events = vec![
        call(0, "create", tenant(1, json!({ "models": ["llama-*"] }))).event(),
        call(10, "patch", tenant(2, spec(json!([key("app", 1)])))).event(),
        call(20, "patch", tenant(3, spec(json!([ending, key("app-2", 2)])))).event(),
        secret,
        call(30, "patch", tenant(4, spec(json!([ending, revoked])))).event(),
        forbidden,
        conflict,
        dry,
        call(52, "update", tenant(5, wider)).event(),
        model,
        call(59, "delete", json!({ "kind": "Status", "apiVersion": "v1" })).event(),
    ];
    let gateway = |second: u32, act: &str, what: &str, outcome: &str| {
        let time = format!("2026-11-15T14:02:{second:02}.25Z");
        json!({ "time": time, "act": act, "what": what, "outcome": outcome })
    };
    events.insert(0, gateway(0, "tenants", "+ml/search", "loaded from Tenants"));
    events.push(gateway(10, "tenants", "~ml/search", "loaded from Tenants"));
    events.push(gateway(
        38,
        "key",
        "key 0000000002 of ml/search",
        "refused: disabled; requests: 17",
    ));
    events.push(gateway(39, "wake", "qwen", "told, 202"));
    let mut lines = lines(&events);
    lines.push("2026-11-15T14:02:00Z  INFO flyball: Tenants loaded".to_owned());
    lines
}

#[test]
fn a_minute_of_two_logs_is_one_stream() {
    let list = list(&minute(), &AuditFilter::default());
    conforms("audit", &answer_json(&list));
    insta::assert_snapshot!("full", answer_table(&list, Detail::Full));
    insta::assert_snapshot!("problems", answer_table(&list, Detail::Problems));
    assert_eq!(list.exit(), Exit::Yes);
    for form in [answer_json(&list), answer_table(&list, Detail::Full)] {
        assert!(!form.contains(HASH), "{form}");
    }
}

#[test]
fn one_tenant_and_a_time_can_be_asked_for() {
    let count = |since: Option<&str>, tenant: Option<(&str, &str)>| {
        let since = since.map(|text| text.parse().unwrap());
        let tenant = tenant.map(|(space, name)| (space.to_owned(), name.to_owned()));
        let list = list(&minute(), &AuditFilter { since, tenant });
        answer_table(&list, Detail::Full).lines().last().unwrap().to_owned()
    };
    assert!(count(None, None).starts_with("15 acts, 3 refused "));
    // Neither a model nor a wake call nor a Secret of which nobody knows whose it is.
    assert!(count(None, Some(("ml", "search"))).starts_with("12 acts, 3 refused "));
    assert!(count(None, Some(("ml", "other"))).starts_with("0 acts, 0 refused "));
    // What a key was before is known from lines that are not shown.
    let late = AuditFilter { since: Some("2026-11-15T14:02:30Z".parse().unwrap()), tenant: None };
    let shown = answer_table(&list(&minute(), &late), Detail::Full);
    assert!(shown.contains("key revoked") && !shown.contains("key rotated"), "{shown}");
}

/// The page shows what the command prints, so that it does not become wrong.
#[test]
fn the_guide_has_this_stream() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/audit.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let shown = answer_table(&list(&minute(), &AuditFilter::default()), Detail::Full);
    for line in shown.lines() {
        assert!(guide.contains(line.trim_end()), "docs/guides/audit.md lacks:\n{shown}");
    }
}
