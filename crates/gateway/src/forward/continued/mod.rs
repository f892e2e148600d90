//! Goes on with a stream that broke off: another engine is given the text so far and writes the
//! rest. So is a batch request that made room for others, when it has another turn.
//!
//! Only where what follows depends on nothing but the text before it: plain chat and completions,
//! one answer, no tools, no schema (`Scanned::plain`). `so_far` reads the text as it passes, `body`
//! asks for the rest, `joined` makes the events of the second engine those of one answer. What was
//! sampled before cannot be sampled again, so the rest is another one that fits; at temperature 0 it
//! is about the same one.
//!
//! Start at [`Resumable`].

mod body;
mod joined;
mod so_far;

pub(super) use joined::Joined;
pub(super) use so_far::{Came, SoFar};

use super::attempt::{Failed, Prepared, Stream, attempt, is_alive};
use super::room::unless_made_room;
use super::{Trail, Worker, flight, note};
use crate::admit::Turn;
use crate::aim::Job;
use crate::answer::Problem;
use crate::choose::{Chosen, RoutingQuery};
use crate::surface::Surface;
use bytes::Bytes;
use flyball_engines::Engine;
use flyball_fleet::{FleetEndpoint, Flight};
use http::{HeaderMap, HeaderValue};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Times that one stream is continued. Whoever breaks three engines may be the reason.
pub(super) const MOST: u32 = 2;

/// Engines that are asked for one continuation.
const TRIES: usize = 2;

/// Between two looks whether the gateway is going away.
const TICK: Duration = Duration::from_secs(1);

/// What is kept of a request while its stream runs.
#[derive(Clone)]
pub(super) struct Resumable {
    job: Arc<Job>,
    surface: Surface,
    request_id: HeaderValue,
    traceparent: Option<HeaderValue>,
    trail: Arc<Trail>,
}

/// Where the rest comes from.
pub(super) struct Next {
    pub(super) stream: Stream,
    pub(super) flight: Flight,
    pub(super) chosen: Chosen,
    /// Its new turn, and how long it waited for that, if it had made room for others.
    pub(super) again: Option<(Box<Turn>, Duration)>,
}

/// An engine that said in the middle of a stream that it failed. It may be dead.
pub(super) struct Failing {
    pub(super) endpoint: Arc<FleetEndpoint>,
    /// When it got the request.
    pub(super) sent: Instant,
}

impl Resumable {
    /// Of a request whose stream could be continued; `None` if it could not.
    pub(super) fn of(
        job: Box<Job>,
        surface: Surface,
        request_id: &HeaderValue,
        traceparent: Option<HeaderValue>,
        trail: Arc<Trail>,
    ) -> Option<Self> {
        let scanned = &job.scanned;
        let fits = matches!(surface, Surface::Chat | Surface::Completions)
            && scanned.stream
            && scanned.plain
            && scanned.answers.unwrap_or(1) == 1;
        let request_id = request_id.clone();
        fits.then(|| Self { job: Arc::from(job), surface, request_id, traceparent, trail })
    }

    /// Finds an engine that goes on after this text of so many tokens.
    pub(super) async fn go_on(
        self,
        worker: Arc<Worker>,
        text: String,
        tokens: u64,
        tried: Vec<u32>,
        failing: Option<Failing>,
    ) -> Result<Next, Problem> {
        let asking = async {
            self.probe(failing, &worker).await;
            let _retry = worker.retry()?;
            self.ask(&worker, &text, tokens, tried, None).await
        };
        let next = tokio::select! {
            next = asking => next,
            () = going_away(&worker) => None,
        };
        next.ok_or(Problem::BrokenStream)
    }

    /// Whether an engine of this kind could go on after this text.
    pub(super) fn could_go_on(&self, text: &str, tokens: u64, engine: Engine) -> bool {
        let original = body::OriginalRequest::read(self.surface, &self.job.pieces);
        original.is_some_and(|original| original.rest(text, tokens, engine).is_some())
    }

    /// Having made room for others, waits for another turn and goes on after this text. While it asks, it may have to make
    /// room again.
    pub(super) async fn go_on_later(
        self,
        worker: Arc<Worker>,
        text: String,
        tokens: u64,
        mut turn: Box<Turn>,
    ) -> Result<Next, Problem> {
        let since = Instant::now();
        loop {
            turn = turn.again().turn().await?;
            let asking = self.ask(&worker, &text, tokens, Vec::new(), Some(&turn));
            match unless_made_room(Some(&turn), asking).await {
                Some(Some(next)) => {
                    return Ok(Next { again: Some((turn, since.elapsed())), ..next });
                }
                Some(None) if worker.shared.is_cut() => return Err(Problem::Draining),
                Some(None) => return Err(Problem::BrokenStream),
                None => {}
            }
        }
    }

    /// Whether the engine that failed died of it.
    async fn probe(&self, failing: Option<Failing>, worker: &Worker) {
        let Some(Failing { endpoint, sent }) = failing else { return };
        let within = Duration::from_millis(worker.shared.live().timeouts.connect_ms);
        if !is_alive(&endpoint, within).await {
            self.trail.died(worker, &endpoint, sent);
        }
    }

    async fn ask(
        &self,
        worker: &Arc<Worker>,
        text: &str,
        tokens: u64,
        mut tried: Vec<u32>,
        turn: Option<&Turn>,
    ) -> Option<Next> {
        if !self.trail.may_go_on(worker) {
            return None;
        }
        let Job { headers, scanned, pieces, model, .. } = &*self.job;
        // Engines may have come since.
        let model = worker.shared.served().model(model.name()).cloned()?;
        let policy = worker.shared.live().policy(model.name());
        let query = RoutingQuery::new(
            &model.engines,
            &model.gate.scale,
            policy,
            scanned,
            worker.next_number(),
        );
        let original = body::OriginalRequest::read(self.surface, pieces)?;
        for _ in 0..TRIES {
            let now = worker.shared.time();
            let chosen = query.choose(&tried, now, turn)?;
            self.trail.goes_on();
            tried.push(chosen.endpoint.slot);
            let body = original.rest(text, tokens, chosen.endpoint.engine)?;
            let waiting = flight(worker, &chosen, true, now.at);
            if let Some(turn) = turn {
                turn.begun(&chosen.endpoint, chosen.to_read);
            }
            let pieces: Arc<[Bytes]> = [body].into();
            let prepared = self.prepared(worker, headers, &pieces, now.at);
            let began = attempt(&worker.pool, &chosen.endpoint, &prepared).await;
            match began {
                Ok(began) if began.head.status.is_success() && began.stream.watcher.is_some() => {
                    let (stream, flight, again) = (began.stream, waiting.landed(), None);
                    return Some(Next { stream, flight, chosen, again });
                }
                // It does not take what we ask; another one of its kind would not either.
                Ok(_) => return None,
                Err(failed) => {
                    waiting.failed(failed);
                    note(&chosen.endpoint, failed, worker);
                    if failed == Failed::Died {
                        self.trail.died(worker, &chosen.endpoint, now.at);
                    }
                    if !self.trail.may_go_on(worker) {
                        return None;
                    }
                }
            }
        }
        None
    }

    fn prepared<'a>(
        &'a self,
        worker: &'a Worker,
        headers: &'a HeaderMap,
        pieces: &'a Arc<[Bytes]>,
        since: Instant,
    ) -> Prepared<'a> {
        let timeouts = worker.shared.live().timeouts;
        Prepared {
            shared: &worker.shared,
            surface: self.surface,
            headers,
            request_id: &self.request_id,
            traceparent: self.traceparent.as_ref(),
            pieces,
            connect: Duration::from_millis(timeouts.connect_ms),
            since,
            until: since + Duration::from_millis(timeouts.first_byte_ms),
        }
    }
}

async fn going_away(worker: &Worker) {
    while !worker.shared.is_cut() {
        tokio::time::sleep(TICK).await;
    }
}
