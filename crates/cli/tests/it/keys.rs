//! Keys of Tenants, against an API server that stores what is written to it.

use std::sync::{Arc, Mutex};

use flyball_identity::{KeyHash, PresentedKey};
use serde_json::{Value, json};

use super::flyball::{Run, flyball, kubeconfig};
use super::server::{self, ReceivedRequest, Reply};

const TENANTS: &str = "/apis/flyball.dev/v1alpha1/namespaces/ml/tenants";
const SECRETS: &str = "/api/v1/namespaces/ml/secrets";

/// What the API server stores, and what goes wrong with it.
#[derive(Clone, Default)]
struct World(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    tenant: Value,
    secret: Option<Value>,
    version: u64,
    writes: usize,
    /// So often somebody else adds a key between a read and a write.
    meddled: usize,
    /// Whether Secrets can be read and not written.
    no_secrets: bool,
}

fn key(name: &str, id: &str) -> Value {
    json!({ "name": name, "id": id, "sha256": "00".repeat(32) })
}

impl World {
    fn new(keys: Value) -> Self {
        let tenant = json!({
            "apiVersion": "flyball.dev/v1alpha1", "kind": "Tenant",
            "metadata": { "name": "search", "namespace": "ml", "generation": 3 },
            "spec": { "models": ["llama-*"], "keys": keys },
        });
        Self(Arc::new(Mutex::new(State { tenant, version: 1, ..State::default() })))
    }

    fn set(self, change: impl FnOnce(&mut State)) -> Self {
        change(&mut self.0.lock().expect("nobody panicked with it"));
        self
    }

    fn run(&self, name: &str, args: &[&str]) -> Run {
        let world = self.clone();
        let address = server::start_with(move |request| {
            world.0.lock().expect("nobody panicked with it").answer(request)
        });
        let config = kubeconfig(&format!("key-{name}"), &address);
        let mut all = args.to_vec();
        all.extend(["--kubeconfig", &config]);
        flyball(&all)
    }

    fn keys(&self) -> Vec<Value> {
        self.0.lock().expect("nobody panicked with it").tenant["spec"]["keys"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    }

    fn names(&self) -> Vec<String> {
        self.keys()
            .iter()
            .map(|key| key["name"].as_str().expect("a key has a name").to_owned())
            .collect()
    }

    fn writes(&self) -> usize {
        self.0.lock().expect("nobody panicked with it").writes
    }

    fn secret(&self) -> Option<Value> {
        self.0.lock().expect("nobody panicked with it").secret.clone()
    }
}

impl State {
    fn answer(&mut self, request: &ReceivedRequest) -> Reply {
        self.tenant["metadata"]["resourceVersion"] = self.version.to_string().into();
        let path = request.path.split('?').next().unwrap_or_default();
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        match (request.method.as_str(), path) {
            ("GET", "/apis/flyball.dev/v1alpha1/tenants" | TENANTS) => {
                Reply::Json(json!({ "metadata": {}, "items": [self.tenant] }))
            }
            ("GET", path) if path == format!("{TENANTS}/search") => {
                Reply::Json(self.tenant.clone())
            }
            ("PATCH", path) if path == format!("{TENANTS}/search") => {
                assert!(request.headers.contains("content-type: application/merge-patch+json"));
                assert!(request.path.contains("fieldManager=flyball-cli"), "{}", request.path);
                self.patch(&body)
            }
            ("GET", path) if path.starts_with(SECRETS) => match &self.secret {
                Some(secret) => Reply::Json(secret.clone()),
                None => Reply::Status(404, "not found"),
            },
            ("POST" | "PATCH", path) if path.starts_with(SECRETS) && !self.no_secrets => {
                let mut secret = self.secret.take().unwrap_or_else(|| body.clone());
                secret["stringData"] = body["stringData"].clone();
                secret["metadata"]["resourceVersion"] = "7".into();
                self.secret = Some(secret.clone());
                Reply::Json(secret)
            }
            _ => Reply::Status(403, "forbidden"),
        }
    }

    fn patch(&mut self, body: &Value) -> Reply {
        if self.meddled > 0 {
            self.meddled -= 1;
            self.version += 1;
            let other = key(&format!("other-{}", self.meddled), "othersKey0");
            self.tenant["spec"]["keys"].as_array_mut().expect("keys are a list").push(other);
        }
        if body["metadata"]["resourceVersion"] != self.version.to_string().as_str() {
            return Reply::Status(409, "the object has been modified");
        }
        self.version += 1;
        self.writes += 1;
        self.tenant["spec"]["keys"] = body["spec"]["keys"].clone();
        Reply::Json(self.tenant.clone())
    }
}

#[test]
fn a_key_is_the_only_thing_on_stdout_and_its_hash_the_only_thing_stored() {
    let world = World::new(json!([]));
    let run = world.run("create", &["key", "create", "ml/search", "--name", "app"]);
    assert_eq!(run.status, Some(0), "{}", run.shown());
    let key = run.stdout.trim_end();
    let presented = PresentedKey::read(key.as_bytes()).expect("a key, and nothing else");
    let stored = &world.keys()[0];
    assert_eq!(stored["sha256"], KeyHash::of(key.as_bytes()).to_hex().as_str());
    assert_eq!((&stored["name"], &stored["id"]), (&"app".into(), &presented.id().into()));
    let secret = &key[18..61];
    assert!(!run.stderr.contains(secret) && !stored.to_string().contains(secret));
    let expires: jiff::Timestamp = stored["expires"].as_str().unwrap().parse().unwrap();
    let days = expires.duration_since(jiff::Timestamp::now()).as_hours() / 24;
    assert!((89..=90).contains(&days), "{days}");
    let other =
        world.run("create", &["key", "create", "search", "--expires", "never", "-o", "json"]);
    assert_eq!(other.json()["name"], "key-1");
    assert_ne!(other.json()["key"], key);
    assert_eq!(world.keys()[1].get("expires"), None);
    assert!(other.stderr.contains("without an end"), "{}", other.shown());
}

#[test]
fn no_key_is_lost_that_somebody_else_adds_at_the_same_time() {
    let world = World::new(json!([key("first", "firstKey00")])).set(|state| state.meddled = 3);
    let run = world.run("meddled", &["key", "create", "ml/search", "--name", "app"]);
    assert_eq!(run.status, Some(0), "{}", run.shown());
    assert_eq!(world.names(), ["first", "other-2", "other-1", "other-0", "app"]);
    assert_eq!(world.writes(), 1);
    let world = World::new(json!([key("first", "firstKey00")])).set(|state| state.meddled = 2);
    let run = world.run("meddled", &["key", "revoke", "ml/search", "first"]);
    assert_eq!(run.status, Some(0), "{}", run.shown());
    assert_eq!(world.names(), ["first", "other-1", "other-0"]);
    assert_eq!(world.keys()[0]["disabled"], true);
}

#[test]
fn whoever_is_never_first_is_told_so_and_gets_no_key() {
    let world = World::new(json!([])).set(|state| state.meddled = 1_000);
    let run = world.run("crowded", &["key", "create", "ml/search"]);
    assert_eq!((run.status, run.stdout.as_str()), (Some(3), ""), "{}", run.shown());
    assert!(run.stderr.contains("somebody else has changed it"), "{}", run.shown());
    assert_eq!(world.writes(), 0);
}

#[test]
fn fields_that_this_release_does_not_know_stay() {
    let mut known = key("first", "firstKey00");
    known["scopes"] = json!(["chat"]);
    let world = World::new(json!([known.clone()]));
    assert_eq!(world.run("newer", &["key", "create", "ml/search"]).status, Some(0));
    assert_eq!(world.keys()[0], known);
}

#[test]
fn a_dry_run_changes_nothing_and_makes_no_key() {
    let world = World::new(json!([key("app", "firstKey00")]));
    for args in [
        &["key", "create", "ml/search", "--dry-run"][..],
        &["key", "create", "ml/search", "--dry-run", "--to-secret", "app-key"],
        &["key", "rotate", "ml/search", "app", "--dry-run"],
        &["key", "revoke", "ml/search", "--all", "--dry-run"],
    ] {
        let run = world.run("dry", args);
        assert_eq!(run.status, Some(0), "{}", run.shown());
        assert!(run.stdout.contains("nothing was changed: --dry-run"), "{}", run.shown());
        assert!(!run.shown().contains("sk-fly-"), "{}", run.shown());
    }
    assert_eq!((world.writes(), world.secret()), (0, None));
}

#[test]
fn a_key_goes_to_a_secret_and_is_not_shown() {
    let world = World::new(json!([]));
    let run = world.run("secret", &["key", "create", "ml/search", "--to-secret", "app-key"]);
    assert_eq!(run.status, Some(0), "{}", run.shown());
    let secret = world.secret().expect("a Secret");
    let key = secret["stringData"]["api-key"].as_str().unwrap();
    assert_eq!(world.keys()[0]["sha256"], KeyHash::of(key.as_bytes()).to_hex().as_str());
    assert!(!run.shown().contains("sk-fly-"), "{}", run.shown());
    // A second one would take the first one's place, and its owner would not know.
    let again = world.run("secret", &["key", "create", "ml/search", "--to-secret", "app-key"]);
    assert_eq!(again.status, Some(2), "{}", again.shown());
    assert_eq!(world.writes(), 1);
    let args = ["key", "rotate", "ml/search", "key-1", "--to-secret", "app-key", "-o", "json"];
    let rotated = world.run("secret", &args);
    assert_eq!(rotated.status, Some(0), "{}", rotated.shown());
    assert_eq!(rotated.json()["key"], Value::Null);
    let newer = world.secret().expect("a Secret")["stringData"]["api-key"].clone();
    assert_ne!(newer, key);
    assert_eq!(world.names(), ["key-1", "key-2"]);
}

#[test]
fn a_secret_of_another_purpose_is_not_touched_and_nothing_is_changed() {
    let foreign = json!({ "metadata": { "name": "app-key", "namespace": "ml" }, "data": {} });
    let world = World::new(json!([key("app", "firstKey00")]))
        .set(|state| state.secret = Some(foreign.clone()));
    for args in [
        &["key", "create", "ml/search", "--to-secret", "app-key"][..],
        &["key", "rotate", "ml/search", "app", "--to-secret", "app-key"],
    ] {
        let run = world.run("foreign", args);
        assert_eq!(run.status, Some(2), "{}", run.shown());
    }
    assert_eq!((world.writes(), world.secret()), (0, Some(foreign)));
}

#[test]
fn a_key_that_reached_no_secret_is_named_so_that_it_can_be_revoked() {
    let world = World::new(json!([])).set(|state| state.no_secrets = true);
    let run = world.run("stuck", &["key", "create", "ml/search", "--to-secret", "app-key"]);
    assert_eq!((run.status, run.stdout.as_str()), (Some(3), ""), "{}", run.shown());
    assert!(run.stderr.contains("flyball key revoke ml/search key-1"), "{}", run.shown());
    assert!(!run.shown().contains("sk-fly-"), "{}", run.shown());
}

#[test]
fn both_keys_are_valid_during_the_overlap() {
    let mut old = key("app-7", "firstKey00");
    old["expires"] = "2099-01-01T00:00:00Z".into();
    let world = World::new(json!([old]));
    let run = world.run("rotate", &["key", "rotate", "ml/search", "app-7", "--overlap", "2h"]);
    assert_eq!(run.status, Some(0), "{}", run.shown());
    assert!(PresentedKey::read(run.stdout.trim_end().as_bytes()).is_ok(), "{}", run.shown());
    assert_eq!(world.names(), ["app-7", "app-8"]);
    let end: jiff::Timestamp = world.keys()[0]["expires"].as_str().unwrap().parse().unwrap();
    let minutes = end.duration_since(jiff::Timestamp::now()).as_mins();
    assert!((100..=120).contains(&minutes), "{minutes}");
    let absent = world.run("rotate", &["key", "rotate", "ml/search", "app-9"]);
    assert_eq!((absent.status, absent.stdout.as_str()), (Some(2), ""), "{}", absent.shown());
}

#[test]
fn keys_are_revoked_by_name_by_id_or_all_and_stay_in_the_list() {
    let all = json!([key("a", "aaaaaaaaaa"), key("b", "bbbbbbbbbb"), key("c", "cccccccccc")]);
    let world = World::new(all);
    let run = |args: &[&str]| {
        let mut words = vec!["key", "revoke", "ml/search"];
        words.extend(args);
        world.run("revoke", &words)
    };
    let disabled =
        || -> Vec<bool> { world.keys().iter().map(|key| key["disabled"] == true).collect() };
    assert_eq!(run(&["a"]).stdout, "disabled 1 key of tenant ml/search: a\n");
    assert_eq!(disabled(), [true, false, false]);
    assert_eq!(run(&["--id", "bbbbbbbbbb", "-o", "json"]).json()["disabled"], json!(["b"]));
    assert_eq!(disabled(), [true, true, false]);
    let unconfirmed = run(&["--all"]);
    assert_eq!(unconfirmed.status, Some(2), "nobody can confirm: {}", unconfirmed.shown());
    assert_eq!(disabled(), [true, true, false]);
    assert_eq!(run(&["--all", "-y"]).stdout, "disabled 1 key of tenant ml/search: c\n");
    let again = run(&["--all", "-y"]);
    assert_eq!(again.status, Some(0));
    assert!(again.stdout.contains("disabled already"), "{}", again.shown());
    assert_eq!(world.writes(), 3);
    assert_eq!(run(&["x"]).status, Some(2));
    assert_eq!(run(&["--id", "xxxxxxxxxx"]).status, Some(2));
    assert_eq!(run(&[]).status, Some(2), "one of three is needed");
    assert_eq!(run(&["a", "--all"]).status, Some(2), "one of three and not two");
}

#[test]
fn a_key_that_somebody_pastes_where_a_name_belongs_is_not_shown() {
    let world = World::new(json!([]));
    let made = world.run("paste", &["key", "create", "ml/search"]).stdout;
    let key = made.trim_end();
    for args in [
        &["key", "revoke", "ml/search", key][..],
        &["key", "revoke", "ml/search", "--id", key],
        &["key", "rotate", "ml/search", key],
    ] {
        let run = world.run("paste", args);
        assert_eq!(run.status, Some(2), "{}", run.shown());
        assert!(!run.shown().contains(&key[18..61]), "{}", run.shown());
    }
}

#[test]
fn a_tenant_that_is_not_there_can_be_made_from_the_hint() {
    let world = World::new(json!([]));
    insta::assert_snapshot!(
        "key_no_tenant",
        world.run("none", &["key", "create", "ml/ops"]).shown()
    );
    insta::assert_snapshot!("key_typo", world.run("none", &["key", "list", "ml/serch"]).shown());
    let bare = server::start(|_| Reply::Status(404, "not found"));
    let bare = kubeconfig("bare-tenants", &bare);
    let run = flyball(&["key", "list", "ml/search", "--kubeconfig", &bare]);
    insta::assert_snapshot!("key_no_kind", run.shown());
}

#[test]
fn keys_and_tenants_are_listed_with_what_is_unknown() {
    let mut expired = key("old", "oldKey0000");
    expired["expires"] = "2026-01-01T00:00:00Z".into();
    let mut disabled = key("gone", "goneKey000");
    disabled["disabled"] = true.into();
    let world = World::new(json!([key("app", "firstKey00"), expired, disabled]));
    insta::assert_snapshot!("key_list", world.run("list", &["key", "list", "search"]).shown());
    insta::assert_snapshot!("tenants_unknown", world.run("list", &["tenants", "-A"]).shown());
    let json = world.run("list", &["tenants", "-n", "ml", "-o", "json"]).json();
    assert_eq!(json["tenants"][0]["validKeys"], Value::Null);
    assert_eq!(
        (&json["tenants"][0]["keys"], &json["tenants"][0]["ready"]),
        (&3.into(), &Value::Null)
    );
}
