//! Goes on with a stream that broke off: another engine is given the text so far and writes the
//! rest.
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
use super::{Trail, Worker, flight, note};
use crate::aim::Job;
use crate::choose::{Chosen, RoutingQuery};
use crate::surface::Surface;
use bytes::Bytes;
use flyball_fleet::{FleetEndpoint, Flight};
use http::{HeaderMap, HeaderValue};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Times that one stream is continued. Whoever breaks three engines may be the reason.
pub(super) const MOST: u32 = 2;

/// Engines that are asked for one continuation.
const TRIES: usize = 2;

/// Between two looks whether the gateway is going away.
const LOOK: Duration = Duration::from_secs(1);

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
        job: Job,
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
        fits.then(|| Self { job: Arc::new(job), surface, request_id, traceparent, trail })
    }

    /// Finds an engine that goes on after this text of so many tokens; `None` if there is none.
    pub(super) async fn go_on(
        self,
        worker: Arc<Worker>,
        text: String,
        tokens: u64,
        tried: Vec<u32>,
        failing: Option<Failing>,
    ) -> Option<Next> {
        let asking = async {
            self.look_at(failing, &worker).await;
            self.ask(&worker, &text, tokens, tried).await
        };
        tokio::select! {
            next = asking => next,
            () = going_away(&worker) => None,
        }
    }

    /// Whether the engine that failed died of it.
    async fn look_at(&self, failing: Option<Failing>, worker: &Worker) {
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
    ) -> Option<Next> {
        let _retry = worker.retry().filter(|_| self.trail.may_go_on(worker))?;
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
        let asked = body::Asked::read(self.surface, pieces)?;
        for _ in 0..TRIES {
            let now = worker.shared.time();
            let chosen = query.choose(&tried, now, None)?;
            self.trail.goes_on();
            tried.push(chosen.endpoint.slot);
            let body = asked.rest(text, tokens, chosen.endpoint.engine)?;
            let waiting = flight(worker, &chosen, true, now.at);
            let pieces: Arc<[Bytes]> = [body].into();
            let prepared = self.prepared(worker, headers, &pieces, now.at);
            let began = attempt(&worker.pool, &chosen.endpoint, &prepared).await;
            match began {
                Ok(began) if began.head.status.is_success() && began.stream.watcher.is_some() => {
                    return Some(Next { stream: began.stream, flight: waiting.landed(), chosen });
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
        tokio::time::sleep(LOOK).await;
    }
}
