//! The watches against an API server of a few lines: it lists, it watches, it fails on demand.

use super::{endpoint, slice_json};
use crate::discover::{DiscoveryStatus, Listing, watch};
use crate::settings::ModelSettings;
use bytes::Bytes;
use futures::stream;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::{Client, Config};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{broadcast, watch as channel};
use tokio::time::{sleep, timeout};

/// What the API server has.
pub(crate) struct Server {
    slices: Mutex<Vec<Value>>,
    /// Everything else, by the name of its kind in paths.
    objects: Mutex<BTreeMap<&'static str, Vec<Value>>>,
    /// Paths that have this in them are answered with this status.
    refused: Mutex<Vec<(&'static str, u16)>>,
    /// With the name of the kind in paths.
    events: broadcast::Sender<(String, Value)>,
    watches: AtomicU32,
    down: AtomicBool,
    selectors: Mutex<Vec<String>>,
}

type Answer = Response<BoxBody<Bytes, Infallible>>;

impl Server {
    pub(crate) async fn start(slices: Vec<Value>) -> (Arc<Self>, Client) {
        let server = Arc::new(Self {
            slices: Mutex::new(slices),
            objects: Mutex::default(),
            refused: Mutex::default(),
            events: broadcast::channel(16).0,
            watches: AtomicU32::new(0),
            down: AtomicBool::new(false),
            selectors: Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let own = Arc::clone(&server);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let own = Arc::clone(&own);
                tokio::spawn(async move {
                    let answer = |request| {
                        let answer = own.answer(&request);
                        async move { Ok::<_, Infallible>(answer) }
                    };
                    let serving = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service_fn(answer));
                    drop(serving.await);
                });
            }
        });
        let mut config = Config::new(format!("http://{address}").parse().unwrap());
        config.default_retry = false;
        (server, Client::try_from(config).unwrap())
    }

    /// Says no to paths that have this in them.
    pub(crate) fn refuse(&self, part: &'static str, status: u16) {
        self.refused.lock().unwrap().push((part, status));
    }

    /// There are these objects of a kind from now on; nobody is told.
    pub(crate) fn put(&self, plural: &'static str, objects: Vec<Value>) {
        self.objects.lock().unwrap().insert(plural, objects);
    }

    /// How often something was listed.
    pub(crate) fn lists(&self) -> usize {
        self.selectors.lock().unwrap().len()
    }

    /// How often a watch began.
    pub(crate) fn watches(&self) -> u32 {
        self.watches.load(Ordering::SeqCst)
    }

    /// Whether something was listed with this in its question.
    pub(crate) fn asked(&self, part: &str) -> bool {
        self.selectors.lock().unwrap().iter().any(|query| query.contains(part))
    }

    /// Ends all watches and answers nothing, or answers again.
    pub(crate) fn go_down(&self, down: bool) {
        self.down.store(down, Ordering::SeqCst);
        if down {
            drop(self.events.send((String::new(), Value::Null)));
        }
    }

    fn answer(&self, request: &Request<Incoming>) -> Answer {
        let path = request.uri().path();
        if let Some((_, code)) =
            self.refused.lock().unwrap().iter().find(|(part, _)| path.contains(part))
        {
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "not for you", "reason": "Forbidden", "code": code,
            });
            return reply(StatusCode::from_u16(*code).unwrap(), &status.to_string());
        }
        if self.down.load(Ordering::SeqCst) {
            return reply(StatusCode::SERVICE_UNAVAILABLE, "down");
        }
        let query = request.uri().query().unwrap_or_default();
        let plural = path.rsplit('/').next().unwrap_or_default();
        let slices = plural == "endpointslices";
        assert!(!slices || path.ends_with("/namespaces/team/endpointslices"));
        if query.contains("watch=true") {
            self.watches.fetch_add(1, Ordering::SeqCst);
            return self.stream(plural.to_owned());
        }
        self.selectors.lock().unwrap().push(query.to_owned());
        let items = match slices {
            true => self.slices.lock().unwrap().clone(),
            false => self.objects.lock().unwrap().get(plural).cloned().unwrap_or_default(),
        };
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

    pub(crate) fn tell(&self, kind: &str, object: &Value) {
        let of = object["kind"].as_str().unwrap().to_lowercase() + "s";
        self.events.send((of, json!({"type": kind, "object": object}))).unwrap();
    }

    pub(crate) async fn watched(&self, times: u32) {
        until("watched", || self.watches() >= times).await;
    }
}

fn reply(status: StatusCode, text: &str) -> Answer {
    let mut response = Response::new(Full::new(Bytes::from(text.to_owned())).boxed());
    *response.status_mut() = status;
    response
}

pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(timeout(Duration::from_secs(120), waiting).await.is_ok(), "{what}");
}

pub(crate) fn model() -> ModelSettings {
    ModelSettings {
        name: "m".to_owned(),
        service: Some("team/llama:8000".to_owned()),
        ..ModelSettings::default()
    }
}

pub(crate) fn with(pods: &[&str]) -> Value {
    let engine = |pod: &&str| endpoint(pod, &format!("10.0.0.{}", pod.len()), json!({}));
    slice_json("a", "llama", &pods.iter().map(engine).collect::<Vec<_>>())
}

fn names(listing: &channel::Sender<Listing>) -> Option<Vec<String>> {
    let listing = listing.borrow();
    Some(listing.models.get("m")?.iter().map(|found| found.name.clone()).collect())
}

/// Runs the story while models are watched.
async fn during(
    models: &[ModelSettings],
    client: Client,
    out: &channel::Sender<Listing>,
    standing: &DiscoveryStatus,
    story: impl Future<Output = ()>,
) {
    tokio::select! {
        ended = watch(models, Some(client), out, standing) => panic!("{ended:?}"),
        () = story => {}
    }
}

#[tokio::test]
async fn engines_come_and_go_as_slices_change() {
    let (server, client) = Server::start(vec![with(&["p"])]).await;
    let (out, standing) = (channel::Sender::new(Listing::default()), DiscoveryStatus::default());
    let named =
        |names: &[&str]| Some(names.iter().map(|n| format!("team/{n}")).collect::<Vec<_>>());
    during(&[model()], client, &out, &standing, async {
        until("listed", || names(&out) == named(&["p"])).await;
        server.watched(1).await;
        server.tell("MODIFIED", &with(&["p", "qq"]));
        until("a new one", || names(&out) == named(&["p", "qq"])).await;
        server.tell("MODIFIED", &with(&["qq"]));
        until("one is gone", || names(&out) == named(&["qq"])).await;
    })
    .await;
    let selector = server.selectors.lock().unwrap()[0].clone();
    assert!(selector.contains("kubernetes.io%2Fservice-name+in+%28llama%29"), "{selector}");
}

#[tokio::test]
async fn an_empty_list_is_believed_when_the_api_server_says_so_itself() {
    let (server, client) = Server::start(vec![with(&["p"])]).await;
    let (out, standing) = (channel::Sender::new(Listing::default()), DiscoveryStatus::default());
    during(&[model()], client, &out, &standing, async {
        until("listed", || names(&out).is_some()).await;
        server.watched(1).await;
        // The watch says that it is gone, the list that it is there.
        server.tell("DELETED", &with(&["p"]));
        until("doubted", || standing.doubted_models() == 1).await;
        sleep(Duration::from_millis(200)).await;
        assert_eq!(names(&out).unwrap().len(), 1);
        server.slices.lock().unwrap().clear();
        until("believed", || names(&out) == Some(Vec::new())).await;
        until("no doubt", || standing.doubted_models() == 0).await;
        server.tell("ADDED", &with(&["p"]));
        until("back", || names(&out).is_some_and(|names| names.len() == 1)).await;
    })
    .await;
}

#[tokio::test]
async fn the_last_listing_stays_while_the_api_server_is_away_and_over_a_restart() {
    let (server, client) = Server::start(vec![with(&["p"])]).await;
    let (out, standing) = (channel::Sender::new(Listing::default()), DiscoveryStatus::default());
    let away = async {
        until("listed", || names(&out).is_some()).await;
        server.watched(1).await;
        server.go_down(true);
        until("noticed", || standing.failing_watches() == 1).await;
        assert_eq!(names(&out).unwrap().len(), 1);
    };
    during(&[model()], client.clone(), &out, &standing, away).await;
    assert_eq!(standing.failing_watches(), 0, "who is not polled does not fail");
    // Settings were read anew, still without an API server.
    let fixed = ModelSettings {
        name: "fixed".to_owned(),
        endpoints: vec!["10.1.1.1:8000".parse().unwrap()],
        ..ModelSettings::default()
    };
    let models = [model(), fixed];
    let restarted = async {
        until("static ones at once", || out.borrow().models.contains_key("fixed")).await;
        assert_eq!(names(&out).unwrap().len(), 1);
        server.go_down(false);
        server.slices.lock().unwrap()[0] = with(&["p", "qq"]);
        until("listed again", || names(&out).unwrap().len() == 2).await;
    };
    during(&models, client, &out, &standing, restarted).await;
}
