//! What is known of a request so far, handed to the meter once, however it ends.

use super::Trail;
use crate::accept::Reader;
use crate::admit::Turn;
use crate::aim::Job;
use crate::answer::Problem;
use crate::choose::Chosen;
use crate::finished::{Finished, RequestOutcome, Try};
use crate::fleet::{FleetEndpoint, FleetModel};
use crate::identify::Caller;
use crate::kept::Gather;
use crate::room::Place;
use crate::shadow::Followed;
use crate::shared::Shared;
use crate::sse::{Finish, Usage};
use crate::surface::Surface;
use http::HeaderValue;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// The reason of a stream that was reset because its client did not read.
pub(crate) const CLIENT_IDLE: &str = "client_idle";

/// What is known of a request so far. Dropped without an end, the client has hung up.
///
/// In a box, because it goes from hand to hand, and each would copy all of it.
pub(crate) struct Record {
    shared: Arc<Shared>,
    over: bool,
    began: Instant,
    started: SystemTime,
    pub(crate) request_id: HeaderValue,
    pub(crate) traceparent: Option<HeaderValue>,
    pub(crate) surface: Surface,
    pub(crate) caller: Option<Arc<Caller>>,
    pub(crate) model: Option<Arc<str>>,
    pub(crate) endpoint: Option<Arc<FleetEndpoint>>,
    pub(crate) status: u16,
    pub(crate) stream: bool,
    pub(crate) read: Option<Duration>,
    pub(crate) first: Option<Duration>,
    pub(crate) chosen: Option<Duration>,
    pub(crate) queued: Duration,
    pub(crate) held: bool,
    pub(crate) split: Option<Arc<str>>,
    pub(crate) mirrored: bool,
    pub(crate) cached: bool,
    pub(crate) hedged: bool,
    pub(crate) continued: u32,
    pub(crate) finish: Option<Finish>,
    pub(crate) retries: u32,
    /// As many as there are retries and one: nothing is allocated unless something fails.
    tries: Vec<Try>,
    pub(crate) hoped_blocks: Option<u32>,
    pub(crate) usage: Usage,
    pub(crate) estimated: bool,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// Whether policies that only watch are told of it.
    pub(crate) followed: Option<Followed>,
    /// Its place among the requests at once.
    pub(crate) place: Option<Place>,
    /// Its turn at the engines.
    pub(crate) turn: Option<Turn>,
    /// What became of the engines that it was sent to.
    pub(crate) trail: Option<Arc<Trail>>,
    /// When the engine that answered got it.
    pub(crate) sent: Option<Instant>,
    /// Its answer, if that is to be kept.
    pub(crate) keep: Option<Gather>,
    /// What its engine had in use until now, if that tells what it forgets.
    used: Option<(Arc<FleetModel>, Vec<u64>)>,
}

impl Record {
    pub(crate) fn new(shared: Arc<Shared>, surface: Surface, request_id: HeaderValue) -> Box<Self> {
        Box::new(Self {
            shared,
            over: false,
            began: Instant::now(),
            started: SystemTime::now(),
            request_id,
            traceparent: None,
            surface,
            caller: None,
            model: None,
            endpoint: None,
            status: 0,
            stream: false,
            read: None,
            first: None,
            chosen: None,
            queued: Duration::ZERO,
            held: false,
            split: None,
            mirrored: false,
            cached: false,
            hedged: false,
            continued: 0,
            finish: None,
            retries: 0,
            tries: Vec::new(),
            hoped_blocks: None,
            usage: Usage::default(),
            estimated: true,
            bytes_in: 0,
            bytes_out: 0,
            followed: None,
            place: None,
            turn: None,
            trail: None,
            sent: None,
            keep: None,
            used: None,
        })
    }

    /// That of a copy, which nobody asked for.
    pub(crate) fn copy(&self) -> Box<Self> {
        let mut copy = Self::new(Arc::clone(&self.shared), self.surface, self.request_id.clone());
        copy.mirrored = true;
        copy.split = self.split.clone();
        copy.stream = self.stream;
        copy.bytes_in = self.bytes_in;
        copy
    }

    /// The `traceparent` that the engine gets.
    pub(crate) fn traceparent_onward(&self) -> Option<HeaderValue> {
        let callers = self.traceparent.as_ref();
        let id = self.request_id.to_str().unwrap_or_default();
        let said = callers.and_then(|value| value.to_str().ok());
        self.shared.listener.traceparent(said, id, self.started).or_else(|| callers.cloned())
    }

    /// An engine was asked, and is the one that answers if one does.
    pub(crate) fn sent_to(&mut self, chosen: &Chosen) {
        self.hoped_blocks = chosen.hoped_blocks;
        self.endpoint = Some(Arc::clone(&chosen.endpoint));
    }

    /// The engine has begun. If it tells what it forgets, it counts when its prompt was last in use:
    /// that is when the answer ends.
    pub(crate) fn remember(&mut self, job: &Job) {
        if self.endpoint.as_ref().is_some_and(|endpoint| endpoint.forgot().is_some()) {
            self.used = Some((Arc::clone(&job.model.engines), job.scanned.prefixes.clone()));
        }
    }

    /// Since its head had arrived.
    pub(crate) fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// From its head to this moment.
    pub(crate) fn age_at(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.began)
    }

    /// An engine was tried since then and gave no answer.
    pub(crate) fn tried(&mut self, endpoint: &FleetEndpoint, since: Instant, why: &'static str) {
        let began = since.saturating_duration_since(self.began);
        let endpoint = Arc::clone(&endpoint.name);
        self.tries.push(Try { endpoint, began, ended: self.age(), why });
    }

    /// Its answer begins. What policies that only watch learn from is streams at the first try.
    pub(crate) fn begin_in_shadow(&self) {
        if self.stream && self.status == 200 && self.retries == 0 {
            self.followed.iter().for_each(Followed::first);
        }
    }

    /// It is over with an answer of our own.
    pub(crate) fn refuse(&mut self, problem: &Problem) {
        self.status = problem.status().as_u16();
        let tried = self.endpoint.is_some();
        self.finish(
            if tried { RequestOutcome::Failed } else { RequestOutcome::Refused },
            Some(problem.code()),
        );
    }

    /// It is over.
    pub(crate) fn finish(&mut self, outcome: RequestOutcome, reason: Option<&'static str>) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        let now = Instant::now();
        if let (Some(turn), Some(sent)) = (self.turn.take(), self.sent) {
            turn.spend(self.usage, now.saturating_duration_since(sent));
        }
        if let Some(followed) = self.followed.take() {
            let whole = self.stream && outcome == RequestOutcome::Answered && self.usage.output > 0;
            followed.end(whole.then_some(self.usage.output));
        }
        if let (Some((model, prefixes)), Some(endpoint)) = (self.used.take(), &self.endpoint) {
            model.used(&prefixes, endpoint, self.shared.now());
        }
        let finished = Finished {
            request_id: self.request_id.to_str().unwrap_or_default(),
            traceparent: self.traceparent.as_ref().and_then(|value| value.to_str().ok()),
            caller: self.caller.as_ref().map_or("", |caller| &caller.name),
            model: self.model.as_deref(),
            endpoint: self.endpoint.as_ref().map(|endpoint| &*endpoint.name),
            surface: self.surface,
            status: self.status,
            outcome,
            reason,
            stream: self.stream,
            started: self.started,
            took: now.saturating_duration_since(self.began),
            read: self.read,
            first: self.first,
            chosen: self.chosen,
            queued: self.queued,
            held: self.held,
            split: self.split.as_deref(),
            mirrored: self.mirrored,
            cached: self.cached,
            hedged: self.hedged,
            continued: self.continued,
            finish: self.finish,
            retries: self.retries,
            tries: &self.tries,
            hoped_blocks: self.hoped_blocks,
            usage: self.usage,
            estimated: self.estimated,
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
        };
        self.shared.judge(&finished);
        self.shared.listener.finished(&finished);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.finish(RequestOutcome::Cancelled, Reader::is_late().then_some(CLIENT_IDLE));
    }
}
