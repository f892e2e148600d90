//! One try to get an answer out of one engine, up to the first thing worth passing on.

use super::connection::{Connection, Pool};
use super::outgoing;
use crate::shared::Shared;
use crate::sse::Watcher;
use crate::surface::Surface;
use bytes::Bytes;
use flyball_fleet::FleetEndpoint;
use flyball_fleet::wire::{self, Question, Wire};
use http::header::CONTENT_TYPE;
use http::response::Parts;
use http::{HeaderMap, HeaderValue, Method, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of comments that are held back while the first event is awaited.
const HELD_BYTES: usize = 64 << 10;

/// How often a request that waits looks whether its engine is lost, or the gateway goes away.
const TICK: Duration = Duration::from_millis(250);

/// What every try needs.
pub(crate) struct Prepared<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) surface: Surface,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) request_id: &'a HeaderValue,
    pub(crate) traceparent: Option<&'a HeaderValue>,
    pub(crate) pieces: &'a Arc<[Bytes]>,
    pub(crate) connect: Duration,
    /// When the try began.
    pub(crate) since: Instant,
    /// When the first byte of an answer must be there.
    pub(crate) until: Instant,
}

/// An answer that has begun.
pub(crate) struct Began {
    pub(crate) head: Parts,
    pub(crate) stream: Stream,
}

/// What follows the head.
pub(crate) struct Stream {
    pub(crate) body: Incoming,
    pub(crate) connection: Connection,
    /// Pieces that came already, with the first event among them; empty if nothing was awaited.
    pub(crate) first: Vec<Bytes>,
    /// Whether these end between two events.
    pub(crate) between_events: bool,
    /// Watches the answer, if it is a stream of events.
    pub(crate) watcher: Option<Watcher>,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// There was no connection: the engine never saw the request.
    NotConnected,
    /// The connection ended before all of the request was sent, or what came made no sense.
    Broken,
    /// The engine had the whole request and is gone: its connection ended, or it said that it failed
    /// and shows no life.
    Died,
    /// It said that it cannot (5xx), or that it is full (429).
    Status(u16),
    /// The engine is lost.
    Lost,
    /// There was no time left.
    TooLate,
    /// The gateway is going away, and the time to finish is over.
    Cut,
}

impl Failed {
    /// Its name in traces.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::NotConnected => "not_connected",
            Self::Broken => "broken",
            Self::Died => "died",
            Self::Status(429) => "status_429",
            Self::Status(_) => "status_5xx",
            Self::Lost => "lost",
            Self::TooLate => "too_late",
            Self::Cut => "cut",
        }
    }
}

/// One try.
pub(crate) async fn attempt(
    pool: &Pool,
    endpoint: &Arc<FleetEndpoint>,
    prepared: &Prepared<'_>,
) -> Result<Began, Failed> {
    let answer = connected(pool, endpoint, prepared).await;
    // vLLM whose engine core is dead says 500 to all that it has, and ends. In a box, so that not
    // every request carries the room of the question.
    if matches!(answer, Err(Failed::Status(500)))
        && !Box::pin(is_alive(endpoint, prepared.connect)).await
    {
        return Err(Failed::Died);
    }
    answer
}

async fn connected(
    pool: &Pool,
    endpoint: &Arc<FleetEndpoint>,
    prepared: &Prepared<'_>,
) -> Result<Began, Failed> {
    let mut nobody = Failed::NotConnected;
    // A kept connection that was closed meanwhile is the engine's habit and not its failure
    // (llama-server does it after every stream): once more on a new one. If there is none to be had,
    // it was its end.
    if let Some(idle_one) = pool.take(endpoint.slot, prepared.since) {
        match on(idle_one, endpoint, prepared).await {
            Err(Failed::Broken) => {}
            Err(Failed::Died) => nobody = Failed::Died,
            other => return other,
        }
    }
    let connection = Connection::open(endpoint, prepared.connect).await;
    on(connection.map_err(|_| nobody)?, endpoint, prepared).await
}

/// Whether an engine that said that it failed still is one. Every kind of engine has this path; one
/// that does not know it is there to say so.
pub(super) async fn is_alive(endpoint: &FleetEndpoint, within: Duration) -> bool {
    let question = Question {
        method: Method::GET,
        path: endpoint.engine.facts().health.into(),
        body: Bytes::new(),
        limit: HELD_BYTES,
        timeout: within,
    };
    match Wire::new(endpoint.address.to_string()).ask(&question).await {
        Ok(_) => true,
        Err(wire::WireError::Status(status)) => !status.is_server_error(),
        Err(_) => false,
    }
}

async fn on(
    mut connection: Connection,
    endpoint: &Arc<FleetEndpoint>,
    prepared: &Prepared<'_>,
) -> Result<Began, Failed> {
    let request = outgoing::request(
        prepared.surface,
        prepared.headers,
        &endpoint.host,
        prepared.request_id,
        prepared.traceparent,
        Arc::clone(prepared.pieces),
    );
    let sent = request.body().sent();
    let answer = watched(endpoint, prepared, connection.send(request)).await?;
    let ended = |_| if sent.is_whole() { Failed::Died } else { Failed::Broken };
    let response = answer.map_err(ended)?;
    let status = response.status().as_u16();
    if status >= 500 || status == 429 {
        return Err(Failed::Status(status));
    }
    let is_event_stream = is_event_stream(&response);
    let (head, body) = response.into_parts();
    let (first, between_events, watcher) = (Vec::new(), true, None);
    let mut stream = Stream { body, connection, first, between_events, watcher };
    if is_event_stream {
        stream.await_event(endpoint, prepared).await?;
    }
    Ok(Began { head, stream })
}

impl Stream {
    /// Reads up to the first event. What breaks before it can be tried elsewhere unseen.
    async fn await_event(
        &mut self,
        endpoint: &Arc<FleetEndpoint>,
        prepared: &Prepared<'_>,
    ) -> Result<(), Failed> {
        let watcher = self.watcher.insert(Watcher::new(prepared.surface));
        let mut bytes = 0;
        loop {
            let frame = watched(endpoint, prepared, self.body.frame()).await?;
            let frame = match frame {
                Some(Ok(frame)) => frame,
                Some(Err(_)) => return Err(Failed::Died),
                None => return Err(Failed::Broken),
            };
            let Ok(piece) = frame.into_data() else { continue };
            let progress = watcher.feed(&piece).map_err(|_| Failed::Broken)?;
            self.between_events = progress.between_events;
            bytes += piece.len();
            self.first.push(piece);
            let seen = watcher.seen();
            if seen.events > 0 || seen.ended || bytes > HELD_BYTES {
                return Ok(());
            }
        }
    }
}

/// Waits for the engine, but not past the time there is, not for an engine that is lost, and not when
/// the gateway ends: there is still time to say so.
async fn watched<T>(
    endpoint: &Arc<FleetEndpoint>,
    prepared: &Prepared<'_>,
    work: impl Future<Output = T>,
) -> Result<T, Failed> {
    let mut work = std::pin::pin!(work);
    let until = prepared.until;
    let mut check = until.min(prepared.since + TICK);
    loop {
        match tokio::time::timeout_at(check.into(), work.as_mut()).await {
            Ok(done) => return Ok(done),
            Err(_) if prepared.shared.is_cut() => return Err(Failed::Cut),
            Err(_) if endpoint.is_lost() => return Err(Failed::Lost),
            Err(_) if Instant::now() >= until => return Err(Failed::TooLate),
            Err(_) => check = until.min(Instant::now() + TICK),
        }
    }
}

fn is_event_stream(response: &Response<Incoming>) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.is_some_and(|kind| kind.starts_with(b"text/event-stream"))
}
