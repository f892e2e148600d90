//! A request that an engine answers.

use super::sending::Sending;
use super::worker::Worker;
use crate::admit::Turn;
use crate::aim::Job;
use crate::answer_cache::Gather;
use crate::choose::Chosen;
use crate::finished::{Finished, RequestOutcome};
use crate::phase::{Open, Phase};
use crate::shadow::Followed;
use crate::sse::{Finish, Usage};
use flyball_fleet::{FleetModel, Millis, Time};
use http::StatusCode;
use http::response::Parts;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A request that an engine answers.
pub(super) struct Answering {
    pub(super) sending: Sending,
    status: u16,
    /// When the engine that began got it.
    sent: Instant,
    /// From its head to its beginning.
    first: Duration,
    /// What its engine has in use until the end, if that tells what it forgets.
    used: Option<(Arc<FleetModel>, Vec<u64>)>,
    /// The answer, if it goes to the cache.
    gather: Option<Gather>,
    bytes_out: u64,
    pub(super) continued: u32,
    /// How long it waited after it made room.
    waited: Duration,
    /// The engine that went on last, if one did.
    continued_by: Option<Chosen>,
    usage: Usage,
    estimated: bool,
    finish: Option<Finish>,
}

impl Open<Sending> {
    /// The engine has begun with this head to answer what it was sent then.
    pub(super) fn answer(
        self,
        worker: &Worker,
        job: &Job,
        head: &Parts,
        sent: Instant,
    ) -> Open<Answering> {
        // What policies that only watch learn from is streams at the first try.
        let ok = head.status == StatusCode::OK && self.retries == 0;
        if ok && self.admitted.is_stream() {
            self.followed.iter().for_each(Followed::first);
        }
        // An engine that tells what it forgets counts when a prompt was last in use: that is when the
        // answer ends.
        let used = |_| (Arc::clone(&job.model.engines), job.scanned.prefixes.clone());
        let used = self.chosen.endpoint.forgot().map(used);
        let gather = |key| Gather::new(&worker.cache, key, head.status, &head.headers);
        let gather = job.cache_key.and_then(gather);
        let (status, first) = (head.status.as_u16(), self.head().age());
        self.then(|sending| Answering {
            sending,
            status,
            sent,
            first,
            used,
            gather,
            bytes_out: 0,
            continued: 0,
            waited: Duration::ZERO,
            continued_by: None,
            usage: Usage::default(),
            estimated: true,
            finish: None,
        })
    }
}

impl Answering {
    /// The engine that answers.
    pub(super) fn engine(&self) -> &Chosen {
        self.continued_by.as_ref().unwrap_or(&self.sending.chosen)
    }

    /// Another engine goes on.
    pub(super) fn continue_with(&mut self, engine: Chosen) {
        self.continued += 1;
        self.continued_by = Some(engine);
    }

    /// After it made room and waited so long, an engine goes on in this turn.
    pub(super) fn resume_with(&mut self, engine: Chosen, turn: Box<Turn>, waited: Duration) {
        self.sending.admitted.waited(turn.made_room(), waited);
        self.sending.admitted.turn = Some(turn);
        self.continued_by = Some(engine);
        self.waited += waited;
    }

    /// More of the answer goes to the client.
    pub(super) fn add(&mut self, piece: &[u8]) {
        if let Some(gather) = &mut self.gather {
            gather.add(piece);
        }
        self.bytes_out += piece.len() as u64;
    }

    /// What the answer took, as it said or as was counted.
    pub(super) fn account(&mut self, usage: Usage, estimated: bool, finish: Option<Finish>) {
        (self.usage, self.estimated, self.finish) = (usage, estimated, finish);
    }

    /// The answer is whole: it goes to the cache, if it is one engine's and no error.
    pub(super) fn keep(&mut self, erred: bool, now: Millis) {
        let is_one = self.continued_by.is_none();
        if let Some(gather) = self.gather.take().filter(|_| !erred && is_one) {
            gather.keep(now);
        }
    }
}

impl Phase for Answering {
    fn describe<'a>(&'a self, finished: &mut Finished<'a>) {
        self.sending.describe(finished);
        finished.endpoint = Some(&self.engine().endpoint.name);
        finished.hoped_blocks = self.engine().hoped_blocks;
        finished.status = self.status;
        finished.first = Some(self.first);
        finished.continued = self.continued;
        finished.usage = self.usage;
        finished.estimated = self.estimated;
        finished.finish = self.finish;
        finished.bytes_out = self.bytes_out;
    }

    fn settle(&mut self, outcome: RequestOutcome, now: Time) {
        if let Some(turn) = self.sending.admitted.turn.take() {
            let took = now.at.saturating_duration_since(self.sent);
            turn.spend(self.usage, took.saturating_sub(self.waited));
        }
        let is_stream = self.sending.admitted.is_stream();
        let granted = self.sending.admitted.granted();
        match (self.status, outcome) {
            // What an engine refuses costs nothing, and neither does an answer that is only one as a whole and broke off.
            (400.., _) => granted.release(),
            (_, RequestOutcome::Broken) if !is_stream => granted.release(),
            _ => granted.pay(self.usage, self.estimated, is_stream),
        }
        if let Some(followed) = self.sending.followed.take() {
            let whole = self.sending.admitted.is_stream()
                && outcome == RequestOutcome::Answered
                && self.usage.output > 0;
            followed.end(whole.then_some(self.usage.output));
        }
        if let Some((model, prefixes)) = self.used.take() {
            model.used(&prefixes, &self.engine().endpoint, now.millis);
        }
    }
}
