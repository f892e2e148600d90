mod hostile;
mod shown;
mod unknown;

use serde_json::{Value, json};

use super::act::{AuditAct, AuditChange};
use super::answer::{AuditFilter, AuditList};
use super::stream::Stream;

/// A key that must not be shown, and what a Tenant stores of one.
const CANARY: &str = "sk-fly-k3J9xQ2mZa_0123456789012345678901234567890123456789012_abc123";
const HASH: &str = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";

/// A request about the Tenant `ml/search`, at this second.
#[derive(Clone)]
struct LoggedCall {
    second: u32,
    user: &'static str,
    verb: &'static str,
    code: i64,
    /// Null is left out, as at the level Metadata.
    request: Value,
    response: Value,
}

impl LoggedCall {
    fn event(&self) -> Value {
        let time = format!("2026-11-15T14:02:{:02}.000000Z", self.second);
        let mut event = json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse",
            "auditID": format!("id-{}", self.second), "stage": "ResponseComplete",
            "requestURI": "/apis/flyball.dev/v1alpha1/namespaces/ml/tenants/search?fieldManager=kubectl-edit",
            "verb": self.verb, "user": { "username": self.user, "groups": ["team"] },
            "objectRef": {
                "resource": "tenants", "namespace": "ml", "name": "search",
                "apiGroup": "flyball.dev", "apiVersion": "v1alpha1",
            },
            "responseStatus": { "metadata": {}, "code": self.code },
            "requestReceivedTimestamp": time, "stageTimestamp": time,
        });
        for (name, body) in [("requestObject", &self.request), ("responseObject", &self.response)] {
            if !body.is_null() {
                event[name] = body.clone();
            }
        }
        event
    }
}

fn call(second: u32, verb: &'static str, response: Value) -> LoggedCall {
    let code = if verb == "create" { 201 } else { 200 };
    LoggedCall { second, user: "alice@example.com", verb, code, request: Value::Null, response }
}

/// The Tenant as it is stored.
fn tenant(generation: i64, spec: Value) -> Value {
    json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "Tenant",
        "metadata": { "name": "search", "namespace": "ml", "uid": "u", "generation": generation },
        "spec": spec,
    })
}

fn key(name: &str, number: u8) -> Value {
    json!({ "name": name, "id": format!("{number:010}"), "sha256": HASH })
}

fn stream(lines: &[String]) -> Stream {
    let mut stream = Stream::default();
    for (index, line) in lines.iter().enumerate() {
        stream.take(&|| format!("log:{}", index + 1), line.as_bytes());
    }
    stream
}

fn lines(events: &[Value]) -> Vec<String> {
    events.iter().map(Value::to_string).collect()
}

fn acts(events: &[Value]) -> Vec<AuditAct> {
    stream(&lines(events)).acts()
}

/// What was changed, in words, and whether that is all.
fn outcomes(events: &[Value]) -> Vec<(String, Option<bool>)> {
    let words = |act: &AuditAct| {
        let words: Vec<String> = act.changes.iter().map(AuditChange::words).collect();
        (words.join("; "), act.all_changes)
    };
    acts(events).iter().map(words).collect()
}

fn list(lines: &[String], filter: &AuditFilter) -> AuditList {
    AuditList::of(stream(lines), filter, "2026-11-15T15:00:00Z".parse().unwrap())
}
