//! A tiny server in an engine's place, on loopback and in real time.

use super::apart::Apart;
use super::messages::{Hello, PATH, Reply};
use super::rounds::{Pace, rounds};
use super::serve::collect;
use super::within::Within;
use super::{CollectionStatus, Verifier, VerifierEvent};
use crate::fleet::{Fleet, Flight, FoundEngines, Listing};
use crate::wire::{Question, Wire, WireError};
use bytes::Bytes;
use flyball_engines::Engine;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Only so that a test that hangs ends.
const LONG: Duration = Duration::from_secs(120);

/// An engine that has so many requests, and nothing else.
#[derive(Debug, Default)]
struct Tiny {
    running: AtomicU32,
    connections: AtomicU32,
    requests: AtomicU32,
    /// Requests after which a connection is closed; none if it is kept.
    per_connection: u32,
    /// Tokens of its context; it does not say any if this is zero.
    context: u32,
    /// Times that it was asked for them.
    listed: AtomicU32,
    /// Whether it fails for a while.
    fails: AtomicBool,
    padding: usize,
    delay: Duration,
}

impl Tiny {
    async fn start(self) -> (Arc<Self>, SocketAddr) {
        let tiny = Arc::new(self);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(Arc::clone(&tiny).accept(listener));
        (tiny, address)
    }

    async fn accept(self: Arc<Self>, listener: TcpListener) {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            self.connections.fetch_add(1, Ordering::SeqCst);
            let tiny = Arc::clone(&self);
            tokio::spawn(async move {
                let served = AtomicU32::new(0);
                let answer = |request| tiny.answer(request, &served);
                let serving = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service_fn(answer));
                drop(serving.await);
            });
        }
    }

    async fn answer<B>(
        &self,
        request: Request<B>,
        served: &AtomicU32,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        if request.uri().path() == "/v1/models" {
            return Ok(self.models());
        }
        assert_eq!(request.uri().path(), "/metrics");
        self.requests.fetch_add(1, Ordering::SeqCst);
        sleep(self.delay).await;
        let running = self.running.load(Ordering::SeqCst);
        let page = format!(
            "{}\nvllm:num_requests_running{{engine=\"0\"}} {running}.0\n\
             vllm:num_requests_waiting{{engine=\"0\"}} 0.0\n",
            "#".repeat(self.padding)
        );
        let mut response = Response::new(Full::new(Bytes::from(page)));
        if self.fails.load(Ordering::SeqCst) {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        if served.fetch_add(1, Ordering::SeqCst) + 1 == self.per_connection {
            response.headers_mut().insert("connection", "close".parse().unwrap());
        }
        Ok(response)
    }

    fn models(&self) -> Response<Full<Bytes>> {
        self.listed.fetch_add(1, Ordering::SeqCst);
        let list = format!(r#"{{"data":[{{"id":"m","max_model_len":{}}}]}}"#, self.context);
        Response::new(Full::new(Bytes::from(list)))
    }
}

/// Often, and late answers count too: a busy machine must not look like an engine that is gone.
const QUICK: Pace = Pace {
    interval: Duration::from_millis(20),
    hurried: super::HURRIED,
    timeout: LONG,
    gone: LONG,
};

fn question() -> Question {
    Question {
        method: Method::GET,
        path: "/metrics".into(),
        body: Bytes::new(),
        limit: 1 << 20,
        timeout: LONG,
    }
}

fn fleet(addresses: &[SocketAddr]) -> Arc<Fleet> {
    let found = addresses.iter().map(|address| FoundEngines {
        name: address.to_string(),
        address: *address,
        draining: false,
        engine: Engine::Vllm,
        uid: None,
    });
    let models = BTreeMap::from([("m".to_owned(), found.collect())]);
    Arc::new(Fleet::default().after(&Listing { models }))
}

fn source(fleet: &Arc<Fleet>) -> impl Fn() -> Arc<Fleet> + Send + Sync + 'static {
    let fleet = Arc::clone(fleet);
    move || Arc::clone(&fleet)
}

fn witness() -> (Arc<Mutex<Vec<VerifierEvent>>>, Verifier) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&events);
    (events, Verifier::new(move |one| notes.lock().unwrap().push(one)))
}

/// Waits until it holds, and fails if that takes long.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(timeout(LONG, waiting).await.is_ok(), "{what}");
}

#[tokio::test]
async fn a_connection_is_kept_and_renewed_when_it_was_closed() {
    let (server, address) = Tiny::default().start().await;
    let mut wire = Wire::new(address.to_string());
    for _ in 0..5 {
        wire.ask(&question()).await.unwrap();
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
    let (closed, address) = Tiny { per_connection: 2, ..Tiny::default() }.start().await;
    let mut wire = Wire::new(address.to_string());
    for _ in 0..6 {
        wire.ask(&question()).await.unwrap();
    }
    assert_eq!(closed.connections.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn what_is_too_large_or_too_slow_or_not_there_is_a_problem() {
    let (_, address) = Tiny { padding: 2 << 20, ..Tiny::default() }.start().await;
    let mut wire = Wire::new(address.to_string());
    assert!(matches!(wire.ask(&question()).await, Err(WireError::Body(_))));
    let (_, address) = Tiny { delay: LONG, ..Tiny::default() }.start().await;
    let mut wire = Wire::new(address.to_string());
    let hasty = Question { timeout: Duration::from_millis(20), ..question() };
    assert!(matches!(wire.ask(&hasty).await, Err(WireError::Late)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut wire = Wire::new(listener.local_addr().unwrap().to_string());
    drop(listener);
    assert!(matches!(wire.ask(&question()).await, Err(WireError::Connect(_))));
}

#[tokio::test]
async fn engines_are_asked_in_turn_and_their_reports_arrive() {
    let (tiny, address) = Tiny { running: AtomicU32::new(3), ..Tiny::default() }.start().await;
    let (_, verifier) = witness();
    let (fleet, standing) = (fleet(&[address]), CollectionStatus::default());
    let source = source(&fleet);
    let mut office = Within::new(&source, &verifier, &standing);
    let polled = until("asked", || tiny.requests.load(Ordering::SeqCst) >= 10);
    tokio::select! {
        never = rounds(&mut office, QUICK) => match never {},
        () = polled => {}
    }
    assert_eq!(tiny.connections.load(Ordering::SeqCst), 1);
    let endpoint = format!("{:?}", fleet.endpoints().next().unwrap());
    assert!(endpoint.contains("running: 3"), "{endpoint}");
}

#[tokio::test]
async fn an_engine_is_asked_for_its_context_once_and_again_after_it_failed() {
    let (tiny, address) = Tiny { context: 4_096, ..Tiny::default() }.start().await;
    let (silent, other) = Tiny::default().start().await;
    let (_, verifier) = witness();
    let (fleet, standing) = (fleet(&[address, other]), CollectionStatus::default());
    let source = source(&fleet);
    let mut office = Within::new(&source, &verifier, &standing);
    let context = |at: SocketAddr| {
        fleet.endpoints().find(|one| one.address == at).and_then(|one| one.context_tokens())
    };
    let story = async {
        until("told", || context(address) == Some(4_096)).await;
        until("asked often", || tiny.requests.load(Ordering::SeqCst) >= 10).await;
        assert_eq!(tiny.listed.load(Ordering::SeqCst), 1);
        tiny.fails.store(true, Ordering::SeqCst);
        let before = tiny.requests.load(Ordering::SeqCst);
        until("failed", || tiny.requests.load(Ordering::SeqCst) >= before + 2).await;
        tiny.fails.store(false, Ordering::SeqCst);
        until("asked anew", || tiny.listed.load(Ordering::SeqCst) == 2).await;
        until("silent", || silent.requests.load(Ordering::SeqCst) >= 10).await;
    };
    tokio::select! {
        never = rounds(&mut office, QUICK) => match never {},
        () = story => {}
    }
    assert_eq!((context(other), silent.listed.load(Ordering::SeqCst)), (None, 1));
}

#[tokio::test]
async fn a_cancel_is_timed_to_the_moment_at_which_the_slot_is_free() {
    let (tiny, address) = Tiny { running: AtomicU32::new(1), ..Tiny::default() }.start().await;
    let (events, verifier) = witness();
    let (fleet, standing) = (fleet(&[address]), CollectionStatus::default());
    let source = source(&fleet);
    let mut office = Within::new(&source, &verifier, &standing);
    let story = async {
        let began = Instant::now();
        verifier.cancelled(fleet.endpoints().next().unwrap(), began);
        sleep(Duration::from_millis(120)).await;
        tiny.running.store(0, Ordering::SeqCst);
        until("freed", || !events.lock().unwrap().is_empty()).await;
        began.elapsed()
    };
    let waited = tokio::select! {
        never = rounds(&mut office, Pace::default()) => match never {},
        waited = story => waited,
    };
    let events = events.lock().unwrap().clone();
    let [VerifierEvent::Freed(took)] = *events else { panic!("{events:?}") };
    assert!(took >= Duration::from_millis(120) && took <= waited, "{took:?} of {waited:?}");
}

#[tokio::test]
async fn an_engine_that_ignores_cancels_is_quarantined_after_five_seconds() {
    let (_, deaf) = Tiny { running: AtomicU32::new(1), ..Tiny::default() }.start().await;
    let (_, good) = Tiny::default().start().await;
    let (events, verifier) = witness();
    let (fleet, standing) = (fleet(&[deaf, good]), CollectionStatus::default());
    let source = source(&fleet);
    let mut office = Within::new(&source, &verifier, &standing);
    let endpoints: Vec<_> = fleet.endpoints().cloned().collect();
    let is_open =
        |address| endpoints.iter().find(|endpoint| endpoint.address == address).unwrap().is_open();
    let began = Instant::now();
    for endpoint in &endpoints {
        verifier.cancelled(endpoint, began);
    }
    let quarantined = until("quarantined", || !is_open(deaf));
    tokio::select! {
        never = rounds(&mut office, Pace::default()) => match never {},
        () = quarantined => {}
    }
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(5), "{took:?}");
    assert!(is_open(good));
    assert_eq!(verifier.zombies(), 1);
    let events = events.lock().unwrap();
    assert!(
        matches!(
            events[..],
            [VerifierEvent::Freed(_), VerifierEvent::Quarantined { zombies: 1, .. }]
        ),
        "{events:?}"
    );
}

#[tokio::test]
async fn an_engine_that_does_not_answer_is_lost_if_another_does() {
    let (_, good) = Tiny::default().start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone = listener.local_addr().unwrap();
    drop(listener);
    let (_, verifier) = witness();
    for (addresses, lost) in [(vec![good, gone], true), (vec![gone], false)] {
        let (fleet, standing) = (fleet(&addresses), CollectionStatus::default());
        let source = source(&fleet);
        let endpoint = fleet.endpoints().find(|e| e.address == gone).cloned().unwrap();
        let mut office = Within::new(&source, &verifier, &standing);
        tokio::select! {
            never = rounds(&mut office, QUICK) => match never {},
            () = until("lost", || endpoint.is_lost()), if lost => {}
            () = sleep(Duration::from_millis(500)), if !lost => {}
        }
        assert_eq!(endpoint.is_open(), !lost);
        assert!(fleet.endpoints().all(|e| e.address == gone || e.is_open()));
    }
}

#[tokio::test]
async fn what_two_models_have_at_one_engine_is_added_up() {
    let (tiny, address) = Tiny { running: AtomicU32::new(3), ..Tiny::default() }.start().await;
    let found = FoundEngines {
        name: "e".to_owned(),
        address,
        draining: false,
        engine: Engine::Vllm,
        uid: None,
    };
    let models = ["a", "b"].map(|model| (model.to_owned(), vec![found.clone()]));
    let listing = Listing { models: models.into_iter().collect() };
    let fleet = Arc::new(Fleet::default().after(&listing));
    let source = source(&fleet);
    let endpoints: Vec<_> = fleet.endpoints().cloned().collect();
    let _two = [0, 1].map(|i| Flight::begin(Arc::clone(&endpoints[i]), 0, 0, true, Instant::now()));
    let (events, verifier) = witness();
    let standing = CollectionStatus::default();
    let mut office = Within::new(&source, &verifier, &standing);
    let story = async {
        // Two are known, three are there: the cancelled one is not free.
        verifier.cancelled(&endpoints[0], Instant::now());
        sleep(Duration::from_millis(300)).await;
        assert!(events.lock().unwrap().is_empty());
        tiny.running.store(2, Ordering::SeqCst);
        until("freed", || !events.lock().unwrap().is_empty()).await;
    };
    tokio::select! {
        never = rounds(&mut office, Pace::default()) => match never {},
        () = story => {}
    }
    assert_eq!(tiny.connections.load(Ordering::SeqCst), 1, "one engine is asked once");
}

/// A gateway that says what the test wants.
async fn send_hello(wire: &mut Wire, in_flight: u32, engine: SocketAddr) -> Reply {
    let hello = Hello {
        gateway: "other".to_owned(),
        in_flight: BTreeMap::from([(engine, in_flight)]),
        ..Hello::default()
    };
    let body = Bytes::from(serde_json::to_vec(&hello).unwrap());
    let question = Question { method: Method::POST, path: PATH.into(), body, ..question() };
    serde_json::from_slice(&wire.ask(&question).await.unwrap()).unwrap()
}

#[tokio::test]
async fn one_collector_adds_up_what_all_gateways_have() {
    let (tiny, engine) = Tiny { running: AtomicU32::new(3), ..Tiny::default() }.start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let collector = listener.local_addr().unwrap().to_string();
    let found = FoundEngines {
        name: engine.to_string(),
        address: engine,
        draining: false,
        engine: Engine::Vllm,
        uid: None,
    };
    let models = BTreeMap::from([("m".to_owned(), vec![found])]);
    let (_out, listing) = watch::channel(Listing { models });
    let (events, verifier) = witness();
    let (fleet, standing) = (fleet(&[engine]), CollectionStatus::default());
    let source = source(&fleet);
    let gateway = Apart::new(&source, &verifier, &standing, &collector);
    let (leave, left) = tokio::sync::oneshot::channel::<()>();
    // On a machine that stands still for longer than a gateway may, nobody is gone.
    let pace = Pace { gone: LONG, ..Pace::default() };
    let story = async {
        let mut wire = Wire::new(collector.clone());
        // The other gateway has the three that the engine has. A new collector needs a while
        // before it proves anything.
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(2) || standing.silent_engines() > 0 {
            assert!(began.elapsed() < LONG);
            send_hello(&mut wire, 3, engine).await;
            sleep(Duration::from_millis(50)).await;
        }
        // One more runs, and nobody has it: it is ours, cancelled.
        tiny.running.store(4, Ordering::SeqCst);
        verifier.cancelled(fleet.endpoints().next().unwrap(), Instant::now());
        for _ in 0..6 {
            assert!(events.lock().unwrap().is_empty());
            send_hello(&mut wire, 3, engine).await;
            sleep(Duration::from_millis(50)).await;
        }
        tiny.running.store(3, Ordering::SeqCst);
        while events.lock().unwrap().is_empty() {
            assert!(began.elapsed() < LONG);
            send_hello(&mut wire, 3, engine).await;
            sleep(Duration::from_millis(20)).await;
        }
        drop(leave);
        sleep(Duration::from_millis(200)).await;
    };
    tokio::select! {
        never = collect(&listener, listing, &|| Ok(()), pace) => match never {},
        () = async {
            tokio::join!(story, gateway.talk(pace, async { drop(left.await) }));
        } => {}
    }
    let events = events.lock().unwrap().clone();
    let [VerifierEvent::Freed(took)] = *events else { panic!("{events:?}") };
    assert!(took >= Duration::from_millis(300), "{took:?}");
}

#[tokio::test]
async fn a_collector_that_is_away_is_noticed_and_nothing_else_changes() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let collector = listener.local_addr().unwrap().to_string();
    drop(listener);
    let (_, verifier) = witness();
    let engine = SocketAddr::from(([127, 0, 0, 1], 9));
    let (fleet, standing) = (fleet(&[engine]), CollectionStatus::default());
    let source = source(&fleet);
    let gateway = Apart::new(&source, &verifier, &standing, &collector);
    tokio::select! {
        () = gateway.talk(Pace::default(), std::future::pending()) => {}
        () = until("noticed", || standing.collector_away()) => {}
    }
    assert_eq!(standing.silent_engines(), 1);
    assert!(fleet.endpoints().all(|endpoint| endpoint.is_open()));
}
