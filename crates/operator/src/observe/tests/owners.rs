//! Other owners of replicas that cannot be seen.

use super::*;
use crate::settings::OperatorSettings;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use serde_json::Value;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether autoscalers may be listed and watched.
type Allowed = Arc<AtomicBool>;

/// An API server with one model and, where they may be seen, one HorizontalPodAutoscaler.
async fn api(allowed: Allowed) -> Client {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let allowed = Arc::clone(&allowed);
            let answer = service_fn(move |request| answer(request, Arc::clone(&allowed)));
            let connection = hyper::server::conn::http1::Builder::new();
            tokio::spawn(connection.serve_connection(TokioIo::new(stream), answer));
        }
    });
    let mut config = kube::Config::new(format!("http://{address}").parse().unwrap());
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

async fn answer(
    request: Request<Incoming>,
    allowed: Allowed,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let watches = request.uri().query().unwrap_or_default().contains("watch=true");
    let autoscalers = request.uri().path().ends_with("/horizontalpodautoscalers");
    let (code, body) = match (autoscalers, watches) {
        (true, _) if !allowed.load(Ordering::Relaxed) => (403, denied().to_string()),
        // A watch that ends is begun anew, and asks again whether it may.
        (true, true) => {
            tokio::time::sleep(Duration::from_millis(50)).await;
            (200, String::new())
        }
        (false, true) => std::future::pending().await,
        (_, false) => (200, list(request.uri().path()).to_string()),
    };
    Ok(Response::builder().status(code).body(Full::from(body)).unwrap())
}

fn denied() -> Value {
    json!({"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": "no", "code": 403})
}

fn list(path: &str) -> Value {
    let items = match path.rsplit('/').next() {
        Some("modelservices") => vec![serde_json::to_value(acting().as_ref()).unwrap()],
        Some("deployments") => vec![json!({
            "metadata": {"name": "m", "namespace": "a"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "m"}}, "template": {}},
        })],
        Some("horizontalpodautoscalers") => vec![json!({
            "metadata": {"name": "other", "namespace": "a"},
            "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "m"}},
        })],
        _ => vec![],
    };
    json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items})
}

/// A model that is carried out.
fn acting() -> Arc<ModelService> {
    let mut service = ModelService::clone(&adopted());
    service.spec.scaling = serde_json::from_value(json!({"mode": "Act"})).unwrap();
    Arc::new(service)
}

/// Waits until it is so; minutes, where something hangs.
async fn until(watches: &Watches, is_so: impl Fn(&Facts) -> bool) {
    let looking = async {
        while !is_so(&watches.facts()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(5), looking).await.unwrap();
}

fn rival(facts: &Facts) -> Option<String> {
    facts.workloads.values().next().and_then(|workload| workload.rival.clone())
}

#[tokio::test]
async fn autoscalers_that_may_not_be_listed_are_unknown_and_not_none() {
    for namespaces in [vec![], vec!["a".to_owned(), "b".to_owned()]] {
        let allowed = Allowed::default();
        let settings = OperatorSettings { namespaces, ..OperatorSettings::default() };
        let watches = watch(&api(Arc::clone(&allowed)).await, &settings);
        watches.listed().await;
        let facts = watches.facts();
        assert_eq!(facts.unseen_owners, BTreeSet::from(["a".to_owned()]));
        assert_eq!(rival(&facts), None, "none is seen, which says nothing");
        // The right is given: who else writes is seen, and that it is.
        allowed.store(true, Ordering::Relaxed);
        until(&watches, |facts| rival(facts).is_some()).await;
        // It is taken away again: an autoscaler that is new would not be seen.
        allowed.store(false, Ordering::Relaxed);
        until(&watches, |facts| !facts.unseen_owners.is_empty()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_denial_is_forgotten_when_it_is_not_repeated() {
    let denial = || {
        let status = serde_json::from_value(denied()).unwrap();
        kube_runtime::watcher::Error::WatchError(Box::new(status))
    };
    let denied = mirror::Denied::default();
    assert!(!denied.is_so());
    denied.note(&denial());
    tokio::time::advance(Duration::from_secs(89)).await;
    assert!(denied.is_so());
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(!denied.is_so());
    denied.note(&kube_runtime::watcher::Error::NoResourceVersion);
    assert!(!denied.is_so(), "another failure denies nothing");
}

#[test]
fn nothing_is_carried_out_where_other_owners_cannot_be_seen() {
    let mut facts = facts(acting(), vec![pod("x", "10.0.0.1")]);
    let signals = Signals::default();
    let built = |facts: &Facts| {
        let seen = observe(facts, &signals, &mut ObservedMemory::default(), (at(1_000), MAX_AGE));
        let mut decision = crate::decide::Brain::default().decide(&seen).decision;
        decision.models[0].targets[0].replicas = flyball_core::units::Replicas::new(3);
        (crate::build::build(facts, &seen, &decision).writes, seen)
    };
    assert_eq!(built(&facts).0.len(), 1);
    facts.unseen_owners.insert("b".to_owned());
    assert_eq!(built(&facts).0.len(), 1, "in another namespace");
    facts.unseen_owners.insert("a".to_owned());
    let (writes, seen) = built(&facts);
    assert_eq!(writes, []);
    assert_eq!(seen.snapshot.models.len(), 1, "it is decided about all the same");
}
