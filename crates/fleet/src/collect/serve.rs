//! The collector apart: `flyball collect`.
//!
//! It finds the engines of some models, asks them, and answers gateways. It keeps nothing on disk; a
//! new one knows everything after three intervals.

use super::messages::{BYTES, Hello, PATH};
use super::rounds::{Answer, Office, Pace, rounds};
use super::table::Table;
use crate::discover::{self, DiscoveryProblem, DiscoveryStatus, Listing, Readiness, Sought};
use bytes::Bytes;
use flyball_engines::Engine;
use futures::stream::{FuturesUnordered, StreamExt as _};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};

/// Connections at once: one for each gateway, and some for probes.
const CONNECTIONS: usize = 2048;

/// For a whole request to arrive.
const REQUEST: Duration = Duration::from_secs(5);

/// Why a collector ends.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// The address is not to be had.
    #[error(
        "cannot listen on {0}: {1}; hint: another process may use the port; choose another --listen"
    )]
    Listen(SocketAddr, std::io::Error),
    /// Engines cannot be looked for.
    #[error(transparent)]
    Discover(#[from] DiscoveryProblem),
}

/// Runs a collector for these models, which may change meanwhile, until `until`.
pub async fn serve(
    models: &watch::Sender<Vec<Sought>>,
    standing: &DiscoveryStatus,
    readiness: &Readiness,
    listen: SocketAddr,
    until: impl Future<Output = ()>,
) -> Result<(), Ended> {
    let listener = TcpListener::bind(listen).await.map_err(|error| Ended::Listen(listen, error))?;
    let address = listener.local_addr().unwrap_or(listen);
    tracing::info!(%address, models = models.borrow().len(), "collector is listening");
    let (out, listing) = watch::channel(Listing::default());
    let ready = || {
        let models = models.borrow();
        let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
        readiness.judge(&out.borrow(), &names, standing, Instant::now())
    };
    tokio::select! {
        ended = discover_targets(models, &out, standing) => match ended? {},
        never = collect(&listener, listing, &ready, Pace::default()) => match never {},
        () = until => Ok(()),
    }
}

/// Looks for engines, anew when the models change. What was found before stays meanwhile.
async fn discover_targets(
    models: &watch::Sender<Vec<Sought>>,
    out: &watch::Sender<Listing>,
    standing: &DiscoveryStatus,
) -> Result<Infallible, DiscoveryProblem> {
    let mut sought = models.subscribe();
    loop {
        let now = sought.borrow_and_update().clone();
        tokio::select! {
            ended = discover::watch(&now, None, out, standing) => return ended,
            // Its sender lives as long as this does.
            _ = sought.changed() => {}
        }
    }
}

/// Asks engines and answers gateways without end.
pub(super) async fn collect(
    listener: &TcpListener,
    listing: watch::Receiver<Listing>,
    ready: &dyn Fn() -> Result<(), String>,
    pace: Pace,
) -> Infallible {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Larger than any revision before: there are fewer than a thousand changes per millisecond.
    let revision = u64::try_from(since.as_micros()).unwrap_or(0);
    let room = Room {
        table: Mutex::new(Table::new(Instant::now(), revision, pace.gone)),
        wake: Notify::new(),
        ready,
    };
    let mut office = Desk { room: &room, listing };
    office.listing.mark_changed();
    tokio::select! {
        never = rounds(&mut office, pace) => never,
        never = accept(listener, &room) => never,
    }
}

/// What the two halves share.
struct Room<'a> {
    table: Mutex<Table>,
    wake: Notify,
    ready: &'a dyn Fn() -> Result<(), String>,
}

impl Room<'_> {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Desk<'a> {
    room: &'a Room<'a>,
    listing: watch::Receiver<Listing>,
}

impl Office for Desk<'_> {
    fn targets(&mut self) -> Option<BTreeMap<SocketAddr, Engine>> {
        if !self.listing.has_changed().unwrap_or(false) {
            return None;
        }
        let listing = self.listing.borrow_and_update();
        let found = listing.models.values().flatten();
        let targets: BTreeMap<_, _> = found.map(|found| (found.address, found.engine)).collect();
        self.room.table().engines_are(&targets.keys().copied().collect());
        Some(targets)
    }

    fn hurried(&mut self) -> Vec<SocketAddr> {
        self.room.table().hurried(Instant::now())
    }

    fn asking(&mut self, address: SocketAddr) {
        self.room.table().asking(address, Instant::now());
    }

    fn answered(&mut self, answer: Answer) {
        self.room.table().answered(&answer);
    }

    async fn changed(&self) {
        self.room.wake.notified().await;
    }
}

async fn accept(listener: &TcpListener, room: &Room<'_>) -> Infallible {
    let mut connections = FuturesUnordered::new();
    loop {
        let full = connections.len() >= CONNECTIONS;
        tokio::select! {
            accepted = listener.accept(), if !full => match accepted {
                Ok((stream, _)) => connections.push(connection(stream, room)),
                Err(error) => {
                    // Out of files, or a client that was gone again: neither ends a server.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(()) = connections.next() => {}
        }
    }
}

async fn connection(stream: TcpStream, room: &Room<'_>) {
    let answer = |request| async move { Ok::<_, Infallible>(respond(request, room).await) };
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST)
        .max_buf_size(64 << 10)
        .serve_connection(TokioIo::new(stream), service_fn(answer))
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "connection lost");
    }
}

async fn respond(request: Request<Incoming>, room: &Room<'_>) -> Response<Full<Bytes>> {
    match (request.method(), request.uri().path()) {
        (&Method::POST, PATH) => {}
        (&Method::GET, "/healthz") => return text(StatusCode::OK, "ok\n".to_owned()),
        (&Method::GET, "/readyz") => {
            let (gateways, silent) = room.table().counts();
            let counts = format!("gateways {gateways}, silent engines {silent}\n");
            return match (room.ready)() {
                Ok(()) => text(StatusCode::OK, format!("ready, {counts}")),
                Err(why) => {
                    text(StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}; {counts}"))
                }
            };
        }
        _ => return text(StatusCode::NOT_FOUND, "not found\n".to_owned()),
    }
    let body = Limited::new(request.into_body(), BYTES).collect();
    let body = match tokio::time::timeout(REQUEST, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => return text(StatusCode::PAYLOAD_TOO_LARGE, "too large\n".to_owned()),
        Err(_) => return text(StatusCode::REQUEST_TIMEOUT, "too slow\n".to_owned()),
    };
    let hello: Hello = match serde_json::from_slice(&body) {
        Ok(hello) => hello,
        Err(error) => return text(StatusCode::BAD_REQUEST, format!("{error}\n")),
    };
    let hurried = !hello.cancels.is_empty();
    let reply = room.table().hello(hello, Instant::now());
    if hurried {
        room.wake.notify_one();
    }
    match reply.map(|reply| serde_json::to_vec(&reply)) {
        Ok(Ok(reply)) => {
            let mut response = Response::new(Full::new(Bytes::from(reply)));
            let json = header::HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, json);
            response
        }
        Ok(Err(error)) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        Err(refused) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{refused}\n")),
    }
}

fn text(status: StatusCode, words: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(words)));
    *response.status_mut() = status;
    response
}
