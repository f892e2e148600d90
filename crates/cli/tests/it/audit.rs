//! `flyball audit`: files and stdin, and how it ends.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use super::flyball::{Run, command, finish, folder};

fn event(second: u32, verb: &str, code: u16) -> Value {
    let time = format!("2020-01-02T14:02:{second:02}.000000Z");
    json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata",
        "auditID": "a", "stage": "ResponseComplete", "verb": verb,
        "requestURI": "/apis/flyball.dev/v1alpha1/namespaces/ml/tenants/search",
        "user": { "username": "alice@example.com" },
        "objectRef": {
            "resource": "tenants", "namespace": "ml", "name": "search", "apiGroup": "flyball.dev",
        },
        "responseStatus": { "code": code }, "stageTimestamp": time,
    })
}

const GATEWAY: &str = "{\"time\":\"2020-01-02T14:02:01.5Z\",\"act\":\"tenants\",\
                       \"what\":\"+ml/search\",\"outcome\":\"loaded from Tenants\"}\n";

fn run(name: &str, text: &str, args: &[&str]) -> Run {
    let folder = folder("audit");
    std::fs::write(format!("{folder}/{name}"), text).expect("a file can be written");
    std::fs::write(format!("{folder}/gateway.jsonl"), GATEWAY).expect("a file can be written");
    finish(command(args).current_dir(&folder))
}

#[test]
fn files_in_any_order_are_one_stream() {
    let log = format!("{}\n{}\n", event(2, "patch", 403), event(1, "create", 201));
    let run = run("api.log", &log, &["audit", "gateway.jsonl", "api.log", "api.log"]);
    assert_eq!(run.status, Some(0), "{}", run.shown());
    insta::assert_snapshot!("audit_files", run.shown());
}

#[test]
fn stdin_is_a_log_too() {
    let mut child = command(&["audit", "-", "-o", "json", "--tenant", "ml/search"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(GATEWAY.as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let printed: Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!((output.status.code(), &printed["acts"][0]["who"]), (Some(0), &json!("gateway")));
}

#[test]
fn what_cannot_be_read_is_said_and_is_no_yes() {
    let broken = format!("{}\n{{\"kind\":\"Event\"", event(1, "create", 201));
    let broken = run("broken.log", &broken, &["audit", "broken.log"]);
    insta::assert_snapshot!("audit_broken", broken.shown());
    assert_eq!(broken.status, Some(3));
    // Eight million bytes and more, in one line.
    let long = format!("{{\"a\":\"{}\"}}\n{}\n", "x".repeat(9 << 20), event(1, "create", 201));
    let long = run("long.log", &long, &["audit", "long.log", "-o", "json"]);
    assert_eq!(long.status, Some(3));
    assert_eq!(long.json()["problems"], json!(["long.log:1: it is longer than 8 MiB"]));
    assert_eq!(long.json()["acts"][0]["act"], "created");
    let missing = run("other.log", "", &["audit", "missing.log"]);
    insta::assert_snapshot!("audit_missing", missing.shown());
    for (name, value) in [("--since", "soon"), ("--tenant", "search"), ("--tenant", "a/b/c")] {
        let wrong = run("other.log", "", &["audit", "other.log", name, value]);
        assert_eq!(wrong.status, Some(2), "{}", wrong.shown());
    }
}
