//! What a relay does when its engine breaks off: another one goes on, if the request allows it.

use super::Relay;
use super::later::Waits;
use super::paid::without_usage;
use crate::answer::Problem;
use crate::forward::attempt::Failed;
use crate::forward::continued::{Came, Failing, Joined, MOST, Next, Resumable, SoFar};
use crate::forward::note;
use bytes::Bytes;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Instant;

/// What is needed to go on with a stream.
pub(super) struct Seam {
    pub(super) resumable: Resumable,
    pub(super) so_far: SoFar,
    /// Engines that broke off.
    tried: Vec<u32>,
    /// Tokens that had come when the last one did.
    pub(super) tokens: u64,
    pub(super) asking: Option<Asking>,
    /// Says now and then that it waits, while it waits because it made room.
    pub(super) waits: Option<Waits>,
}

pub(super) type Asking = Pin<Box<dyn Future<Output = Result<Next, Problem>> + Send>>;

impl Seam {
    pub(super) fn new(resumable: Resumable) -> Self {
        let (so_far, tried) = (SoFar::default(), Vec::new());
        Self { resumable, so_far, tried, tokens: 0, asking: None, waits: None }
    }
}

impl Relay {
    /// Passes on whole events.
    pub(super) fn pass_events(&mut self, mut piece: Bytes) {
        if let Some(joined) = &self.joined {
            piece = joined.events(&piece);
        }
        if self.hides_usage {
            piece = without_usage(piece);
        }
        self.pass_joined(piece);
    }

    /// The same of events that are those of one answer already: what waited for money is not changed twice.
    pub(super) fn pass_joined(&mut self, mut piece: Bytes) {
        piece = self.paid_part(piece);
        let came = self.seam.as_mut().map(|seam| seam.so_far.take(&piece));
        if let Some(Came::Failure(at)) = came {
            self.failure = Some(piece.split_off(at));
        }
        let text =
            self.seam.as_ref().map(|seam| (seam.so_far.text().is_some(), seam.so_far.tokens()));
        match (text, &self.answering.sending.admitted.turn) {
            (Some((false, _)), _) => self.forget(),
            (Some((true, tokens)), Some(turn)) => turn.wrote(tokens),
            _ => {}
        }
        if !piece.is_empty() {
            self.queue(piece);
        }
    }

    /// The engine broke off. Whether another one is asked to go on.
    pub(super) fn ask_on(&mut self) -> bool {
        let tokens = self.tokens();
        let Some(seam) = &mut self.seam else { return false };
        let Some(text) = seam.so_far.text().filter(|_| self.answering.continued < MOST) else {
            return false;
        };
        seam.tried.push(self.answering.engine().endpoint.slot);
        seam.tokens = tokens;
        let flight = self.flight.as_ref().filter(|_| self.failure.is_some());
        let failing = flight.map(|flight| Failing {
            endpoint: Arc::clone(flight.endpoint()),
            sent: flight.began(),
        });
        let (worker, text) = (Arc::clone(&self.worker), text.to_owned());
        let asking =
            seam.resumable.clone().go_on(worker, text, tokens, seam.tried.clone(), failing);
        seam.asking = Some(Box::pin(asking));
        self.partial.clear();
        // What waits for money nobody has read: it is written again.
        self.meter.unpaid.clear();
        self.meter.has_ended = false;
        true
    }

    /// Waits for the engine that goes on; `None` if none is asked.
    pub(super) fn poll_asking(&mut self, cx: &mut Context<'_>) -> Option<Poll<io::Result<()>>> {
        let seam = self.seam.as_mut()?;
        let Poll::Ready(next) = seam.asking.as_mut()?.as_mut().poll(cx) else {
            let comment = seam.waits.as_mut().map(|waits| waits.poll_comment(cx));
            if let Some(Poll::Ready(comment)) = comment {
                self.queue(comment);
            }
            return Some(Poll::Pending);
        };
        (seam.asking, seam.waits) = (None, None);
        Some(Poll::Ready(match next {
            Ok(next) => {
                self.go_on(next);
                Ok(())
            }
            Err(problem) => self.fail(&problem),
        }))
    }

    /// Tells the breaker of an engine that broke off.
    pub(super) fn note_broken(&self) {
        if let Some(flight) = &self.flight {
            note(flight.endpoint(), Failed::Broken, &self.worker);
        }
    }

    /// Nobody could go on with what came: what was kept for that goes.
    pub(super) fn forget(&mut self) {
        self.seam = None;
        if let Some(turn) = &self.answering.sending.admitted.turn {
            turn.stands();
        }
        self.answering.sending.admitted.let_go();
    }

    fn go_on(&mut self, next: Next) {
        let Some(seam) = &self.seam else { return };
        let tokens = seam.tokens;
        let joined = Joined::behind(&seam.so_far, tokens, next.again.is_some());
        self.queue(joined.seam());
        self.joined = Some(joined);
        self.failure = None;
        match next.again {
            Some((turn, waited)) => {
                turn.writes();
                turn.wrote(tokens);
                self.answering.resume_with(next.chosen, turn, waited);
            }
            None => {
                self.answering.continue_with(next.chosen);
                self.worker.tried.recovered.continued.fetch_add(1, Relaxed);
            }
        }
        self.last_event = Instant::now();
        self.follow(next.stream, next.flight);
    }

    /// Tokens of the answer so far.
    pub(super) fn tokens(&self) -> u64 {
        let reported = self.watcher.as_ref().and_then(|watcher| watcher.seen().usage);
        match (reported, &self.joined, &self.seam) {
            // Told with every event, where that was asked for.
            (Some(reported), Some(joined), _) => joined.usage(reported).output,
            (Some(reported), None, _) => reported.output,
            (None, _, Some(seam)) => seam.so_far.tokens(),
            (None, _, None) => 0,
        }
    }
}
