//! Commands for a cluster with the operator, against an API server of canned answers.

use serde_json::{Value, json};

use super::flyball::{Run, command, finish, flyball, kubeconfig};
use super::server::{self, Reply};

const SERVICES: &str = "/apis/flyball.dev/v1alpha1/modelservices";
const ONE: &str = "/apis/flyball.dev/v1alpha1/namespaces/demo/modelservices";
const PROXY: &str = "/api/v1/namespaces/flyball/services/http:flyball-operator:admin/proxy";

fn model(name: &str, namespace: &str) -> Value {
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "True", "reason": "Steady", "message": "1 replica is ready",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "ModelService",
        "metadata": {"name": name, "namespace": namespace, "generation": 1},
        "spec": {"variants": [{"targetRef": {"kind": "Deployment", "name": name}}]},
        "status": {
            "observedGeneration": 1, "readyReplicas": 1, "recommendedReplicas": 1,
            "conditions": [condition("Ready")],
        },
    })
}

fn entry() -> Value {
    json!({
        "model": "demo/qwen", "from": null, "to": 3, "ready": 1, "mode": "Act",
        "receipt": {
            "id": "1-0", "at": "2026-01-01T00:00:00Z", "reason": "Pinned", "bound": "Pin",
            "message": "A person set it.", "candidates": [{"bound": "Pin", "replicas": 3}],
        },
    })
}

fn cluster(path: &str) -> Reply {
    let (path, _) = path.split_once('?').unwrap_or((path, ""));
    let list = |items: Vec<Value>| Reply::Json(json!({"metadata": {}, "items": items}));
    match path {
        SERVICES => {
            list(vec![model("qwen", "demo"), model("twin", "demo"), model("twin", "other")])
        }
        ONE => list(vec![model("qwen", "demo"), model("twin", "demo")]),
        "/apis/flyball.dev/v1alpha1/namespaces/demo/modelservices/qwen" => {
            Reply::Json(model("qwen", "demo"))
        }
        "/api/v1/services" => list(vec![json!({
            "metadata": {"namespace": "flyball", "name": "flyball-operator"},
            "spec": {"ports": [{"name": "admin", "port": 9090}]},
        })]),
        "/api/v1/namespaces/flyball/configmaps/flyball-freeze" => Reply::Json(json!({
            "metadata": {"name": "flyball-freeze"}, "data": {"because": "a flood"},
        })),
        path if path == format!("{PROXY}/decisions") => {
            Reply::Json(json!({"decisions": [entry()]}))
        }
        path if path == format!("{PROXY}/whatif") => Reply::Json(json!({
            "at": "2026-01-01T00:00:00Z",
            "models": [{"model": "demo/qwen", "before": side(1), "after": side(2)}],
        })),
        _ => Reply::Status(404, "not found"),
    }
}

fn side(replicas: i32) -> Value {
    json!({
        "replicas": replicas, "variants": [{"variant": "main", "replicas": replicas}],
        "hourlyCost": format!("{}.00", 4 * replicas), "currency": "USD", "reason": "ScaledUp",
        "bound": "NeedNow", "message": "More work.", "candidates": [],
    })
}

fn run(name: &str, args: &[&str]) -> Run {
    let config = kubeconfig(name, &server::start(cluster));
    let mut all = args.to_vec();
    all.extend(["--kubeconfig", &config]);
    flyball(&all)
}

#[test]
fn models_are_found_by_name_and_mistakes_are_named() {
    let run = |args: &[&str]| run("why", args).shown();
    let seen = run(&["why", "qwen"]);
    assert!(seen.starts_with("status: Some(0)"), "{seen}");
    assert!(seen.contains("demo/qwen   1 ready, 1 desired"), "{seen}");
    insta::assert_snapshot!("why_typo", run(&["why", "qwne"]));
    insta::assert_snapshot!("why_twins", run(&["why", "twin"]));
    assert!(run(&["why", "twin", "-n", "demo"]).starts_with("status: Some(0)"));
    insta::assert_snapshot!("why_no_moment", run(&["why", "qwen", "--at", "soon"]));
    let none = run(&["why", "qwen", "--at", "2025-01-01T00:00:00Z"]);
    assert!(none.starts_with("status: Some(3)"), "{none}");
}

#[test]
fn the_operator_is_asked_through_the_api_server() {
    let past = run("past", &["why", "qwen", "--at", "2026-02-01T00:00:00Z", "-o", "json"]).json();
    assert_eq!((&past["past"], &past["wants"]), (&true.into(), &3.into()));
    let list = run("past", &["decisions", "-o", "json"]).json();
    assert_eq!(list["decisions"][0]["receipt"]["reason"], "Pinned");
    let none = run("past", &["decisions", "--reason", "steady", "-o", "json"]).json();
    assert_eq!(none["decisions"], json!([]));
    let wrong = run("past", &["decisions", "--reason", "Pined"]);
    insta::assert_snapshot!("decisions_no_reason", wrong.shown());
}

/// An operator that asks for a token, behind an API server that makes one.
fn guarded(path: &str, headers: &str) -> Reply {
    let shown = |token: &str| headers.contains(&format!("x-flyball-token: {token}\r\n"));
    match path {
        "/api/v1/namespaces/flyball/serviceaccounts/flyball-operator-admin-client/token?" => {
            Reply::Json(json!({
                "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {},
                "spec": {"audiences": ["flyball-admin"]},
                "status": {"token": "made", "expirationTimestamp": "2026-01-01T00:00:00Z"},
            }))
        }
        path if !path.starts_with(PROXY) || shown("made") || shown("own") => cluster(path),
        _ => Reply::Status(401, "a token is required"),
    }
}

#[test]
fn a_token_is_made_and_shown_where_the_operator_asks_for_one() {
    let config = kubeconfig("guarded", &server::start_reading(guarded));
    let list = flyball(&["decisions", "-o", "json", "--kubeconfig", &config]);
    assert_eq!(list.status, Some(0), "{}", list.shown());
    assert_eq!(list.json()["decisions"][0]["receipt"]["reason"], "Pinned");
    let more = ["whatif", "qwen", "--rate", "+50%", "--kubeconfig", &config];
    assert_eq!(flyball(&more).status, Some(0));
}

#[test]
fn who_may_make_no_token_is_told_what_is_missing_or_shows_another() {
    fn refused(path: &str, headers: &str) -> Reply {
        match path.contains("/serviceaccounts/") {
            true => Reply::Status(403, "forbidden"),
            false => guarded(path, headers),
        }
    }
    let config = kubeconfig("refused", &server::start_reading(refused));
    let none = flyball(&["decisions", "--kubeconfig", &config]);
    assert_eq!(none.status, Some(3), "{}", none.shown());
    assert!(none.stderr.contains("rbac.adminClients"), "{}", none.shown());
    let file = format!("{}/token", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&file, "own\n").unwrap();
    let args = ["decisions", "--kubeconfig", &config, "--token-file", &file];
    assert_eq!(flyball(&args).status, Some(0));
    std::fs::write(&file, "\n").unwrap();
    assert_eq!(flyball(&args).status, Some(2), "an empty file");
}

#[test]
fn other_worlds_are_asked_of_the_operator() {
    let more = run("worlds", &["whatif", "qwen", "--rate", "+50%", "-o", "json"]);
    assert_eq!(more.status, Some(0), "{}", more.shown());
    assert_eq!(more.json()["models"][0]["after"]["replicas"], 2);
    insta::assert_snapshot!("whatif_nothing", run("worlds", &["whatif", "qwen"]).shown());
    let file = format!("{}/diff.yaml", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&file, model("qwen", "demo").to_string()).unwrap();
    assert_eq!(run("worlds", &["diff", "-f", &file]).status, Some(0));
    assert_eq!(run("worlds", &["diff", "-f", &file, "--exit-code"]).status, Some(1));
    std::fs::write(&file, "kind: ConfigMap\n").unwrap();
    let none = run("worlds", &["diff", "-f", &file]).shown().replace(&file, "FILE");
    insta::assert_snapshot!("diff_nothing", none);
}

#[test]
fn status_waits_and_says_how_it_ended() {
    assert_eq!(run("status", &["status", "qwen"]).status, Some(0));
    fn slow(path: &str) -> Reply {
        let mut model = model("qwen", "demo");
        model["metadata"]["generation"] = 2.into();
        match path.split('?').next() {
            Some(SERVICES) => Reply::Json(json!({"metadata": {}, "items": [model]})),
            _ => Reply::Status(404, "not found"),
        }
    }
    let config = kubeconfig("slow", &server::start(slow));
    let late = flyball(&["status", "--wait", "200ms", "--kubeconfig", &config, "-o", "json"]);
    assert_eq!(late.status, Some(4), "{}", late.shown());
    assert_eq!(late.json()["timedOut"], true);
    assert!(late.stderr.contains("has not seen the newest spec"), "{}", late.shown());
    let empty = server::start(|_| Reply::Json(json!({"metadata": {}, "items": []})));
    let config = kubeconfig("empty", &empty);
    assert_eq!(flyball(&["status", "--kubeconfig", &config]).status, Some(3));
}

#[test]
fn nothing_is_changed_without_being_asked() {
    let args = ["freeze", "qwen", "--for", "2h", "--reason", "load test"];
    let refused = run("freeze", &args);
    assert_eq!(refused.status, Some(2), "{}", refused.shown());
    assert!(refused.stderr.contains("-y skips the confirmation"), "{}", refused.shown());
    let with = |more: &str| {
        let mut all = args.to_vec();
        all.push(more);
        run("freeze", &all)
    };
    assert!(with("--dry-run").stdout.contains("nothing was changed: --dry-run"));
    let done = with("-y");
    assert!(done.stdout.contains("modelservice/demo/qwen frozen until"), "{}", done.shown());
    let resumed = run("freeze", &["resume", "qwen", "-y"]);
    assert_eq!(resumed.stdout, "modelservice/demo/qwen was not frozen\n");
    let all = run("freeze", &["freeze", "--all", "--reason", "fire", "--dry-run", "-o", "json"]);
    assert_eq!(all.json()["object"], "configmap/flyball/flyball-freeze");
    assert_eq!(all.json()["before"], "with everything: a flood");
    let long = finish(&mut command(&["freeze", "qwen", "--reason", "x"]));
    assert_eq!(long.status, Some(2), "--for is needed");
}

#[test]
fn a_cluster_without_models_or_operator_is_told_apart() {
    let bare = kubeconfig("bare", &server::start(|_| Reply::Status(404, "not found")));
    insta::assert_snapshot!("why_no_kind", flyball(&["why", "x", "--kubeconfig", &bare]).shown());
    fn lonely(path: &str) -> Reply {
        match path.split('?').next() {
            Some("/api/v1/services") => Reply::Json(json!({"metadata": {}, "items": []})),
            _ => cluster(path),
        }
    }
    let lonely = kubeconfig("lonely", &server::start(lonely));
    let run = flyball(&["decisions", "--kubeconfig", &lonely]);
    insta::assert_snapshot!("decisions_no_operator", run.shown());
    let other = server::start(|_| Reply::Status(404, "not found"));
    let run = flyball(&["decisions", "--operator", &other]);
    insta::assert_snapshot!("decisions_not_an_operator", run.shown());
    let run = flyball(&["decisions", "--operator", "10.0.0.1"]);
    assert_eq!(run.status, Some(2), "{}", run.shown());
}
