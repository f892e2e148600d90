//! Sends a request on and brings its answer back.
//!
//! A try that fails before the first byte has reached the client is made again elsewhere, unseen:
//! `attempt` is one try, `hedge` asks a second engine where the first is slow (`recovered` says how
//! often), `relay` is what follows when one has begun, `continued` goes on elsewhere with what broke off.
//! `sending` and `answering` are what is known of the request before and after an engine has begun.
//! `connection` keeps connections to engines and cuts them when a client hangs up, `worker` has those of
//! one thread. `room` lets a batch request make room for others. `outgoing` is the request as the engine gets it. `trail` and `suspects` see to it that a
//! prompt which kills engines kills two and not all.

mod answering;
mod attempt;
mod connection;
mod continued;
mod hedge;
mod outgoing;
mod recovered;
mod relay;
mod room;
mod sending;
mod suspects;
mod trail;
mod worker;

pub use recovered::Recoveries;
pub(crate) use relay::Relay;
pub(crate) use suspects::Key;
pub use suspects::Suspected;
pub(crate) use worker::{Tried, Worker};

use crate::aim::Job;
use crate::answer::Problem;
use crate::choose::{Chosen, RoutingQuery};
use crate::names::REQUEST_ID;
use crate::phase::{Admitted, Open};
use crate::settings::Recovery;
use crate::surface::Surface;
use answering::Answering;
use attempt::{Began, Failed, Prepared};
use continued::Resumable;
use flyball_fleet::{FleetEndpoint, Flight, Time};
use hedge::{Ended, Race};
use http::{HeaderValue, Response, StatusCode};
use sending::Sending;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trail::Trail;

/// Tries after the first. A third engine rarely knows more than the second.
const RETRIES: u32 = 2;

/// Gets an answer, from the best engine that gives one. With a problem the request is over.
pub(crate) async fn forward(
    worker: &Arc<Worker>,
    mut job: Box<Job>,
    mut admitted: Open<Admitted>,
) -> Result<Response<Box<Relay>>, Problem> {
    loop {
        match ask(worker, job, admitted).await? {
            Outcome::Answered(answer) => return Ok(answer),
            Outcome::MadeRoom(made_room) => {
                (job, admitted) = room::wait_again(worker, *made_room).await?;
            }
        }
    }
}

/// What came of asking engines.
enum Outcome {
    Answered(Response<Box<Relay>>),
    /// Before anything was passed on it made room for others, and nothing is left of it at an engine.
    MadeRoom(Box<(Box<Job>, Open<Sending>)>),
}

async fn ask(
    worker: &Arc<Worker>,
    job: Box<Job>,
    admitted: Open<Admitted>,
) -> Result<Outcome, Problem> {
    let (timeouts, recovery, policy) = {
        let live = worker.shared.live();
        (live.timeouts, live.recovery, live.policy(job.model.name()))
    };
    let (engines, number) = (&*job.model.engines, worker.next_number());
    let query = RoutingQuery::new(engines, &job.model.gate.scale, policy, &job.scanned, number);
    worker.tried.recovered.budget.earn(query.prompt(), recovery.hedge_per_thousand);
    let traceparent = admitted.head().traceparent_onward();
    let mut now = worker.shared.time();
    let mut sending = choose(worker, &job, &query, admitted, now)?;
    let may_hedge = may_hedge(worker, &sending, recovery);
    let (mut tried, mut retry) = (Vec::new(), None);
    loop {
        sending.trail.goes_on();
        let prepared = Prepared {
            shared: &worker.shared,
            surface: sending.head().surface,
            headers: &job.headers,
            request_id: &sending.head().request_id,
            traceparent: traceparent.as_ref(),
            pieces: &job.pieces,
            connect: Duration::from_millis(timeouts.connect_ms),
            since: now.at,
            until: now.at + Duration::from_millis(timeouts.first_byte_ms),
        };
        let race = Race {
            worker,
            model: engines,
            query: &query,
            prepared: &prepared,
            stream: job.scanned.stream,
            may_hedge: may_hedge && sending.retries == 0,
            turn: sending.admitted.turn.as_deref(),
            trail: &sending.trail,
        };
        let turn = sending.admitted.turn.as_deref();
        let ended = {
            // Where it is: handed on as a value, all of its room would be copied.
            let asking = pin!(race.run(&sending.chosen));
            room::unless_made_room(turn, asking).await
        };
        let Some(ended) = ended else {
            return Ok(Outcome::MadeRoom(Box::new((job, sending))));
        };
        let Ended { answer, second, second_won } = ended;
        if let Some(second) = second {
            sending.hedged = true;
            tried.push(second.endpoint.slot);
            if second_won {
                query.went_to(&second, worker.shared.now());
                sending.chosen = second;
            }
        }
        let failed = match answer {
            Ok((mut began, flight)) => {
                outgoing::clean(&mut began.head.headers);
                let answering = sending.answer(worker, &job, &began.head, flight.began());
                let resumable = resumable(worker, job, &began, &answering, traceparent, recovery);
                let idle = Duration::from_millis(timeouts.answer_idle_ms);
                let answer = self::answer(worker, began, flight, answering, idle, resumable);
                return Ok(Outcome::Answered(answer));
            }
            Err(failed) => failed,
        };
        sending.tried(now.at, failed.name());
        let problem = sending.trail.refusal(worker).unwrap_or_else(|| problem_of(failed));
        retry = retry.or_else(|| worker.retry());
        // A copy must not take a retry from a client.
        let is_last = sending.head().mirrored || sending.retries >= retries_after(failed);
        if is_last || retry.is_none() || !sending.trail.may_go_on(worker) {
            return Err(sending.refuse(problem));
        }
        sending.retries += 1;
        tried.push(sending.chosen.endpoint.slot);
        now = worker.shared.time();
        match query.choose(&tried, now, sending.admitted.turn.as_deref()) {
            Some(chosen) => sending.chosen = chosen,
            None => return Err(sending.refuse(problem)),
        }
    }
}

/// Chooses the engine that is tried first.
fn choose(
    worker: &Arc<Worker>,
    job: &Job,
    query: &RoutingQuery<'_>,
    admitted: Open<Admitted>,
    now: Time,
) -> Result<Open<Sending>, Problem> {
    let Some(chosen) = query.choose(&[], now, admitted.turn.as_deref()) else {
        return Err(admitted.refuse(Problem::NoEndpoint));
    };
    let (name, engine) = (job.model.name(), chosen.endpoint.key);
    let followed = worker.tried.shadows.arrived(name, &query.arrival(), engine);
    let trail = Trail::of(&admitted, job.scanned.whole, worker);
    let after = admitted.head().age_at(now.at);
    Ok(admitted.then(|admitted| Sending::new(admitted, chosen, after, followed, trail)))
}

/// Whether a second engine may be asked: not for what is not a client's, and not with a prompt that an
/// engine died over.
fn may_hedge(worker: &Worker, sending: &Open<Sending>, recovery: Recovery) -> bool {
    recovery.hedge_per_thousand > 0
        && sending.head().surface != Surface::Embeddings
        // What nobody waits for needs no second engine.
        && !sending.admitted.is_batch()
        && !sending.head().mirrored
        && !sending.trail.is_suspect(worker)
}

const fn problem_of(failed: Failed) -> Problem {
    match failed {
        Failed::TooLate => Problem::TooLate,
        Failed::Cut => Problem::Draining,
        _ => Problem::NoAnswer,
    }
}

/// Silence costs the whole of `first_byte_ms`, so it is borne twice and not three times.
const fn retries_after(failed: Failed) -> u32 {
    match failed {
        Failed::Cut => 0,
        Failed::TooLate => 1,
        _ => RETRIES,
    }
}

fn answer(
    worker: &Arc<Worker>,
    began: Began,
    flight: Flight,
    mut answering: Open<Answering>,
    idle: Duration,
    resumable: Option<Resumable>,
) -> Response<Box<Relay>> {
    let Began { mut head, stream } = began;
    head.headers.insert(REQUEST_ID.clone(), answering.head().request_id.clone());
    // The version and the reason phrase were the engine's.
    head.version = http::Version::default();
    head.extensions.clear();
    if resumable.is_none() {
        answering.sending.admitted.let_go();
    }
    let relay = Relay::new(Arc::clone(worker), stream, flight, answering, idle, resumable);
    Response::from_parts(head, Box::new(relay))
}

/// What is kept of a request in case its stream breaks off. Bodies that are kept count as held; if
/// that is half of what may be, the room is for those who still wait for an answer.
fn resumable(
    worker: &Worker,
    job: Box<Job>,
    began: &Began,
    answering: &Open<Answering>,
    traceparent: Option<HeaderValue>,
    recovery: Recovery,
) -> Option<Resumable> {
    let is_stream = began.head.status == StatusCode::OK && began.stream.watcher.is_some();
    let has_room = || worker.shared.room.bytes() <= worker.shared.live().limits.held_bytes / 2;
    let may = recovery.continue_streams && is_stream && has_room();
    let (head, trail) = (answering.head(), Arc::clone(&answering.sending.trail));
    let resumable = || Resumable::of(job, head.surface, &head.request_id, traceparent, trail);
    may.then(resumable).flatten()
}

/// Tells the breaker.
fn note(endpoint: &Arc<FleetEndpoint>, failed: Failed, worker: &Worker) {
    let now = worker.shared.now();
    let opened = match failed {
        // Full is no failure, and our own end is not the engine's.
        Failed::Status(429) | Failed::Cut => false,
        Failed::NotConnected => endpoint.breaker.failed(now, true),
        Failed::Status(_) | Failed::Broken | Failed::Died | Failed::TooLate | Failed::Lost => {
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

fn flight<'a>(worker: &'a Worker, chosen: &Chosen, stream: bool, now: Instant) -> Waiting<'a> {
    let endpoint = Arc::clone(&chosen.endpoint);
    let flight = Flight::begin(endpoint, chosen.to_read, chosen.to_hold, stream, now);
    Waiting { flight: Some(flight), worker }
}

impl Waiting<'_> {
    fn landed(mut self) -> Flight {
        self.flight.take().expect("taken only here and in `failed`, which both consume it")
    }

    fn failed(mut self, failed: Failed) {
        let flight = self.flight.take();
        // The engine may still work on what it was not given time for.
        if let (Some(flight), Failed::Lost | Failed::TooLate | Failed::Cut) = (flight, failed) {
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
