//! Sends a request on and brings its answer back.
//!
//! A try that fails before the first byte has reached the client is made again elsewhere, unseen:
//! `attempt` is one try, `relay` what follows when one has begun. `connection` keeps connections to
//! engines and cuts them when a client hangs up. `outgoing` is the request as the engine gets it.

mod attempt;
mod connection;
mod outgoing;
mod record;
mod relay;

pub(crate) use connection::Pool;
pub(crate) use record::Record;
pub(crate) use relay::Relay;

use crate::accept::Worker;
use crate::answer::{Payload, Problem};
use crate::choose::{Chosen, Wish};
use crate::fleet::{Endpoint, Flight, Model};
use crate::kept;
use crate::scan::Scanned;
use attempt::{Began, Failed, Prepared, attempt};
use bytes::Bytes;
use http::{HeaderMap, Response};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Tries after the first. A third engine rarely knows more than the second.
const RETRIES: u32 = 2;

/// A request that was admitted.
pub(crate) struct Job {
    pub(crate) headers: HeaderMap,
    pub(crate) scanned: Scanned,
    pub(crate) pieces: Arc<[Bytes]>,
    pub(crate) model: Arc<Model>,
    /// By what its answer is kept, if it is.
    pub(crate) kept: Option<kept::Key>,
}

/// Gets an answer, from the best engine that gives one. The record is kept by the answer's body;
/// with a problem it is over.
pub(crate) async fn forward(
    worker: &Arc<Worker>,
    job: Job,
    mut record: Record,
) -> Result<Response<Payload>, (Problem, Record)> {
    let live = worker.shared.live();
    let (timeouts, policy) = (live.timeouts, live.policy(&job.model.name));
    drop(live);
    let wish = Wish::new(&job.model, policy, &job.scanned, worker.next_number());
    let traceparent = record.traceparent_onward();
    let mut tried = Vec::new();
    let mut retry = None;
    let mut problem = Problem::NoEndpoint;
    loop {
        let Some(chosen) = wish.choose(&tried, worker.shared.now(), record.turn.as_ref()) else {
            return Err((problem, record));
        };
        record.hoped_blocks = chosen.hoped_blocks;
        if record.chosen.is_none() {
            let engine = chosen.endpoint.key;
            record.followed =
                worker.shared.shadows.arrived(&job.model.name, &wish.arrival(), engine);
        }
        record.chosen.get_or_insert(record.began().elapsed());
        record.endpoint = Some(Arc::clone(&chosen.endpoint));
        let flight = flight(worker, &chosen, record.stream);
        let began = Instant::now();
        if let Some(turn) = &mut record.turn {
            turn.begun();
        }
        let prepared = Prepared {
            surface: record.surface,
            headers: &job.headers,
            request_id: &record.request_id,
            traceparent: traceparent.as_ref(),
            pieces: &job.pieces,
            connect: Duration::from_millis(timeouts.connect_ms),
            until: Instant::now() + Duration::from_millis(timeouts.first_byte_ms),
        };
        let failed = match attempt(&worker.pool, &chosen.endpoint, &prepared).await {
            Ok(began) => {
                let idle = Duration::from_millis(timeouts.answer_idle_ms);
                return Ok(answer(worker, began, flight.landed(), record, idle));
            }
            Err(failed) => failed,
        };
        flight.failed(failed);
        record.tried(&chosen.endpoint, began, failed.name());
        note(&chosen.endpoint, failed, worker);
        problem = problem_of(failed);
        retry = retry.or_else(|| worker.shared.retry());
        // A copy must not take a retry from a client.
        if record.mirrored || record.retries >= retries_after(failed) || retry.is_none() {
            return Err((problem, record));
        }
        record.retries += 1;
        tried.push(chosen.endpoint.slot);
    }
}

const fn problem_of(failed: Failed) -> Problem {
    match failed {
        Failed::TooLate => Problem::TooLate,
        _ => Problem::NoAnswer,
    }
}

/// Silence costs the whole of `first_byte_ms`, so it is borne twice and not three times.
const fn retries_after(failed: Failed) -> u32 {
    match failed {
        Failed::TooLate => 1,
        _ => RETRIES,
    }
}

fn answer(
    worker: &Arc<Worker>,
    began: Began,
    flight: Flight,
    mut record: Record,
    idle: Duration,
) -> Response<Payload> {
    let Began { mut head, stream } = began;
    outgoing::clean(&mut head.headers);
    if let Some(keep) = &mut record.keep {
        keep.head(head.status, &head.headers);
    }
    head.headers.insert("x-request-id", record.request_id.clone());
    // The version and the reason phrase were the engine's.
    head.version = http::Version::default();
    head.extensions.clear();
    record.status = head.status.as_u16();
    record.begin_in_shadow();
    if let Some(place) = &mut record.place {
        place.let_go();
    }
    let relay = Relay::new(Arc::clone(worker), stream, flight, record, idle);
    Response::from_parts(head, Payload::relay(relay))
}

/// Tells the breaker.
fn note(endpoint: &Arc<Endpoint>, failed: Failed, worker: &Worker) {
    let now = worker.shared.now();
    let opened = match failed {
        // Full is no failure.
        Failed::Said(429) => false,
        Failed::NotConnected => endpoint.breaker.failed(now, true),
        Failed::Said(_) | Failed::Broken | Failed::TooLate | Failed::Lost => {
            endpoint.breaker.failed(now, false)
        }
    };
    if opened {
        worker.shared.listener.breaker_opened();
    }
}

/// A flight before its answer has begun. Dropped there, the client has hung up while it waited.
struct Waiting<'a> {
    flight: Option<Flight>,
    worker: &'a Worker,
}

fn flight<'a>(worker: &'a Worker, chosen: &Chosen, stream: bool) -> Waiting<'a> {
    let endpoint = Arc::clone(&chosen.endpoint);
    let flight = Flight::begin(endpoint, chosen.to_read, chosen.to_hold, stream);
    Waiting { flight: Some(flight), worker }
}

impl Waiting<'_> {
    fn landed(mut self) -> Flight {
        self.flight.take().expect("taken only here and in `failed`, which both consume it")
    }

    fn failed(mut self, failed: Failed) {
        let flight = self.flight.take();
        // The engine may still work on what it was not given time for.
        if let (Some(flight), Failed::Lost | Failed::TooLate) = (flight, failed) {
            self.worker.shared.cancelled(flight);
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(flight) = self.flight.take() {
            self.worker.shared.cancelled(flight);
        }
    }
}
