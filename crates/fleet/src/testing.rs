//! An API server of a few lines for the tests of this crate and of those that use it: it lists, it watches, it
//! fails on demand. And objects as it would send them.
//!
//! Everything is in the namespace `team`. What is not as a test needs it panics. Not for production: other
//! crates ask for the feature `testing` in their `dev-dependencies`. Start at [`ApiServer`].

use bytes::Bytes;
use futures::stream;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::{Client, Config};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio::time::{sleep, timeout};

/// What the API server has.
#[derive(Debug)]
pub struct ApiServer {
    /// By the name of their kind in paths.
    objects: Mutex<BTreeMap<&'static str, Vec<Value>>>,
    /// Paths that have this in them are answered with this status.
    refused: Mutex<Vec<(&'static str, u16)>>,
    /// With the name of the kind in paths.
    events: broadcast::Sender<(String, Value)>,
    watches: AtomicU32,
    down: AtomicBool,
    /// What was listed, as the query said it.
    selectors: Mutex<Vec<String>>,
    /// What is said at these paths.
    pages: Mutex<BTreeMap<&'static str, String>>,
}

type Answer = Response<BoxBody<Bytes, Infallible>>;

impl ApiServer {
    /// One that has these EndpointSlices, and a client for it.
    pub async fn start(slices: Vec<Value>) -> (Arc<Self>, Client) {
        let server = Arc::new(Self {
            objects: Mutex::new(BTreeMap::from([("endpointslices", slices)])),
            refused: Mutex::default(),
            events: broadcast::channel(16).0,
            watches: AtomicU32::new(0),
            down: AtomicBool::new(false),
            selectors: Mutex::default(),
            pages: Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a port");
        let address = listener.local_addr().expect("it is bound");
        let own = Arc::clone(&server);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("loopback accepts");
                tokio::spawn(Arc::clone(&own).serve(stream));
            }
        });
        let url = format!("http://{address}").parse().expect("an address makes a URL");
        let mut config = Config::new(url);
        config.default_retry = false;
        (server, Client::try_from(config).expect("plain HTTP needs nothing"))
    }

    /// Says no to paths that have this in them.
    pub fn refuse(&self, part: &'static str, status: u16) {
        locked(&self.refused).push((part, status));
    }

    /// There are these objects of a kind from now on; nobody is told.
    pub fn put(&self, plural: &'static str, objects: Vec<Value>) {
        locked(&self.objects).insert(plural, objects);
    }

    /// Says this at a path from now on.
    pub fn serve_page(&self, path: &'static str, page: impl Into<String>) {
        locked(&self.pages).insert(path, page.into());
    }

    /// How often something was listed.
    pub fn lists(&self) -> usize {
        locked(&self.selectors).len()
    }

    /// How often a watch began.
    pub fn watches(&self) -> u32 {
        self.watches.load(Ordering::SeqCst)
    }

    /// Whether something was listed with this in its query.
    pub fn has_listed(&self, part: &str) -> bool {
        locked(&self.selectors).iter().any(|query| query.contains(part))
    }

    /// Ends all watches and answers nothing, or answers again.
    pub fn go_down(&self, down: bool) {
        self.down.store(down, Ordering::SeqCst);
        if down {
            drop(self.events.send((String::new(), Value::Null)));
        }
    }

    /// Tells whoever watches this object's kind: `ADDED`, `MODIFIED` or `DELETED`.
    pub fn send_event(&self, event: &str, object: &Value) {
        let of = object["kind"].as_str().expect("an object has a kind").to_lowercase() + "s";
        let event = json!({"type": event, "object": object});
        self.events.send((of, event)).expect("somebody watches");
    }

    /// Waits until so many watches began.
    pub async fn watched(&self, times: u32) {
        until("watched", || self.watches() >= times).await;
    }

    async fn serve(self: Arc<Self>, stream: TcpStream) {
        let answer = |request| {
            let answer = self.answer(&request);
            async move { Ok::<_, Infallible>(answer) }
        };
        let serving = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service_fn(answer));
        drop(serving.await);
    }

    fn answer(&self, request: &Request<Incoming>) -> Answer {
        let path = request.uri().path();
        if let Some((_, code)) = locked(&self.refused).iter().find(|(part, _)| path.contains(part))
        {
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "not for you", "reason": "Forbidden", "code": code,
            });
            let code = StatusCode::from_u16(*code).expect("a test refuses with a status");
            return reply(code, &status.to_string());
        }
        if self.down.load(Ordering::SeqCst) {
            return reply(StatusCode::SERVICE_UNAVAILABLE, "down");
        }
        if let Some(page) = locked(&self.pages).get(path) {
            return reply(StatusCode::OK, page);
        }
        let query = request.uri().query().unwrap_or_default();
        let plural = path.rsplit('/').next().unwrap_or_default();
        let slices = plural == "endpointslices";
        assert!(!slices || path.ends_with("/namespaces/team/endpointslices"), "{path}");
        if query.contains("watch=true") {
            self.watches.fetch_add(1, Ordering::SeqCst);
            return self.stream(plural.to_owned());
        }
        locked(&self.selectors).push(query.to_owned());
        let items = locked(&self.objects).get(plural).cloned().unwrap_or_default();
        let list = json!({
            "apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1"},
            "items": items,
        });
        reply(StatusCode::OK, &list.to_string())
    }

    /// Events of a kind as they come; null ends the connection.
    fn stream(&self, plural: String) -> Answer {
        let start = (self.events.subscribe(), plural);
        let lines = stream::unfold(start, |(mut events, plural)| async {
            loop {
                let (of, event) = events.recv().await.ok().filter(|(_, event)| !event.is_null())?;
                if of == plural {
                    let line = Bytes::from(format!("{event}\n"));
                    return Some((Ok::<_, Infallible>(Frame::data(line)), (events, plural)));
                }
            }
        });
        Response::new(BodyExt::boxed(StreamBody::new(lines)))
    }
}

/// Waits until this holds.
pub async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(timeout(Duration::from_secs(120), waiting).await.is_ok(), "{what}");
}

/// An EndpointSlice of the Service `llama` with these pods, on port 8000.
pub fn llama_slice(pods: &[&str]) -> Value {
    let engine = |pod: &&str| endpoint(pod, &format!("10.0.0.{}", pod.len()), json!({}));
    endpoint_slice("a", "llama", &pods.iter().map(engine).collect::<Vec<_>>())
}

/// An EndpointSlice of a Service.
pub fn endpoint_slice(name: &str, service: &str, endpoints: &[Value]) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": name,
            "namespace": "team",
            "resourceVersion": "1",
            "labels": {"kubernetes.io/service-name": service},
        },
        "addressType": "IPv4",
        "ports": [
            {"name": "http", "port": 8000, "protocol": "TCP"},
            {"name": "gossip", "port": 8000, "protocol": "UDP"},
            {"name": "metrics", "port": 9000},
        ],
        "endpoints": endpoints,
    })
}

/// A pod as an EndpointSlice has it.
pub fn endpoint(pod: &str, address: &str, conditions: Value) -> Value {
    json!({
        "addresses": [address],
        "conditions": conditions,
        "targetRef": {"kind": "Pod", "name": pod, "namespace": "team"},
    })
}

/// A ModelService of this name, with one engine that Flyball starts.
pub fn model_service(name: &str) -> Value {
    json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "ModelService",
        "metadata": {
            "name": name, "namespace": "team", "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"model": "org/m", "variants": [{"engine": {"kind": "VLLM", "image": "i"}}]},
    })
}

/// A pod that serves a model which Flyball started.
pub fn engine_pod(name: &str, model: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "team", "resourceVersion": "1",
            "labels": {"flyball.dev/model": model, "flyball.dev/variant": "main"},
        },
        "status": {
            "podIP": "10.0.0.7",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

fn reply(status: StatusCode, text: &str) -> Answer {
    let mut response = Response::new(Full::new(Bytes::from(text.to_owned())).boxed());
    *response.status_mut() = status;
    response
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
