//! `flyball top` against gateways of canned answers.

use crate::flyball::flyball;
use crate::server::{Reply, start};
use serde_json::json;

fn gateway(path: &str) -> Reply {
    let times =
        json!({"p50Seconds": 0.098_304, "p95Seconds": 0.098_304, "buckets": [[98_304, 120]]});
    let minute = json!({
        "answered": 120, "refused": 0, "failed": 0, "broken": 0, "cancelled": 3,
        "inputTokens": 120_000, "cachedTokens": 90_000, "outputTokens": 24_000,
        "firstToken": times, "perToken": {"p50Seconds": null, "p95Seconds": null, "buckets": []},
    });
    let engine = json!({
        "name": "serving/qwen-0", "address": "10.0.0.1:8000", "state": "open", "inFlight": 4,
        "running": 4, "waiting": 0, "kvUsed": 0.25,
    });
    let queue = json!({
        "waiting": 0, "held": 0, "backlogTokens": 0, "backlogCost": 0, "oldestSeconds": 0.0,
        "waitSeconds": null, "etaSeconds": null,
    });
    match path {
        "/state" => Reply::Json(json!({
            "version": 1, "time": "2026-11-06T21:20:00Z", "gateways": 1, "connections": 9,
            "requests": 4, "heldBytes": 0, "troubles": [], "refusals": [],
            "models": [{
                "name": "qwen", "engines": [engine], "queue": queue, "requestsPerSecond": 2.0,
                "lastMinute": minute, "added": "later",
            }],
            "callers": [{"name": "search", "requestsPerSecond": 2.0, "lastMinute": minute}],
        })),
        _ => Reply::Status(404, "not found"),
    }
}

#[test]
fn gateways_are_added_up() {
    let (one, two) = (start(gateway), start(gateway));
    let run = flyball(&["top", "--gateway", &one, "--gateway", &two]);
    insta::assert_snapshot!("top_two", run.shown());
    let json = flyball(&["top", "--gateway", &one, "-o", "json"]).json();
    assert_eq!((&json["kind"], &json["models"][0]["openEngines"]), (&"Top".into(), &1.into()));
    assert_eq!(json["models"][0]["lastMinute"]["prefixHitRate"], 0.75);
}

#[test]
fn whoever_does_not_answer_is_named() {
    let one = start(gateway);
    let other = start(|_| Reply::Json(json!({"version": 7})));
    let run = flyball(&["top", "--gateway", &one, "--gateway", &other]);
    assert_eq!(run.status, Some(3), "{}", run.shown());
    assert!(run.stdout.contains("it writes version 7"), "{}", run.shown());
    let nobody = start(|_| Reply::Status(404, "not found"));
    insta::assert_snapshot!("top_nobody", flyball(&["top", "--gateway", &nobody]).shown());
    insta::assert_snapshot!("top_no_address", flyball(&["top", "--gateway", "10.0.0.1"]).shown());
    // Not a terminal.
    insta::assert_snapshot!("top_no_terminal", flyball(&["top", "-w", "--gateway", &one]).shown());
}
