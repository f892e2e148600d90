//! A second engine for a request whose first one is slow: the first to begin wins, and the other one
//! is cut off.
//!
//! Once per request, only before its first byte, only where `routing` knows an engine with the
//! prompt's beginning, and only as far as the budget reaches: a slow fleet must not be made slower
//! by sending everything twice.

use super::attempt::{Began, Failed, Prepared, attempt};
use super::trail::Trail;
use super::worker::Worker;
use super::{Waiting, flight, note};
use crate::admit::Turn;
use crate::choose::{Chosen, RoutingQuery};
use flyball_fleet::{FleetModel, Flight};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// What a race needs beside the two engines.
pub(super) struct Race<'a> {
    pub(super) worker: &'a Arc<Worker>,
    pub(super) model: &'a FleetModel,
    pub(super) query: &'a RoutingQuery<'a>,
    pub(super) prepared: &'a Prepared<'a>,
    pub(super) stream: bool,
    /// Whether a second engine may be asked at all.
    pub(super) may_hedge: bool,
    /// Its turn, which begins with the first engine.
    pub(super) turn: Option<&'a Turn>,
    pub(super) trail: &'a Trail,
}

/// How a race ended.
pub(super) struct Ended {
    /// The answer with its flight, or why there is none.
    pub(super) answer: Result<(Began, Flight), Failed>,
    /// The second engine, if one was asked.
    pub(super) second: Option<Chosen>,
    /// Whether it was the second one that began.
    pub(super) second_won: bool,
}

impl Ended {
    const fn alone(answer: Result<(Began, Flight), Failed>) -> Self {
        Self { answer, second: None, second_won: false }
    }
}

/// One engine that was asked.
struct Runner<'a> {
    waiting: Waiting<'a>,
    since: Instant,
    /// Tokens that it had to read, this prompt included.
    tokens: u64,
}

impl<'a> Race<'a> {
    /// Asks the engine that was chosen, and another one if that is slow.
    pub(super) async fn run(&self, chosen: &Chosen) -> Ended {
        let since = self.prepared.since;
        let first = self.runner(chosen, since);
        let mut primary = pin!(attempt(&self.worker.pool, &chosen.endpoint, self.prepared));
        let patience = self.patience(&first);
        let soon = match patience {
            Some(patience) => {
                let until = (since + patience).into();
                tokio::time::timeout_at(until, primary.as_mut()).await.ok()
            }
            None => Some(primary.as_mut().await),
        };
        if let Some(answer) = soon {
            return Ended::alone(self.over(first, chosen, answer));
        }
        let Some(second) = self.second(chosen) else {
            return Ended::alone(self.over(first, chosen, primary.await));
        };
        self.worker.tried.recovered.hedges.fetch_add(1, Relaxed);
        let other = self.runner(&second, Instant::now());
        let to = Arc::clone(&second.endpoint);
        // In a box, so that not every request carries the room of a second one.
        let mut hedged = Box::pin(attempt(&self.worker.pool, &to, self.prepared));
        // Who has failed is out, and the other one is waited for. Who has lost is dropped with this
        // function: its connection is cut, and then the verifier is told.
        tokio::select! {
            answer = primary.as_mut() => {
                let mut answer = self.over(first, chosen, answer);
                let failed = answer.is_err();
                if failed {
                    answer = self.over(other, &second, hedged.await);
                }
                self.judged(answer, second, failed)
            }
            answer = hedged.as_mut() => {
                let mut answer = self.over(other, &second, answer);
                let failed = answer.is_err();
                if failed {
                    answer = self.over(first, chosen, primary.await);
                } else {
                    // It would have taken at least so long, which is more than was usual.
                    self.model.pace.took(self.stream, first.tokens, first.since.elapsed());
                }
                self.judged(answer, second, !failed)
            }
        }
    }

    fn runner(&self, chosen: &Chosen, since: Instant) -> Runner<'a> {
        let waiting = flight(self.worker, chosen, self.stream, since);
        if let Some(turn) = self.turn {
            turn.begun(&chosen.endpoint, chosen.to_read);
        }
        let tokens = self.query.unread(&chosen.endpoint, since) + self.query.to_write(self.stream);
        Runner { waiting, since, tokens }
    }

    /// How long to wait for the first one alone; for ever if `None`.
    fn patience(&self, first: &Runner<'_>) -> Option<Duration> {
        self.may_hedge.then(|| self.model.pace.patience(self.stream, first.tokens)).flatten()
    }

    /// Another engine, paid for.
    fn second(&self, chosen: &Chosen) -> Option<Chosen> {
        let second = self.query.second(chosen, self.worker.shared.time())?;
        self.worker.tried.recovered.budget.spend(self.query.prompt()).then_some(second)
    }

    /// One of them has begun or failed.
    fn over(
        &self,
        runner: Runner<'a>,
        chosen: &Chosen,
        answer: Result<Began, Failed>,
    ) -> Result<(Began, Flight), Failed> {
        match answer {
            Ok(began) => {
                // A quick error says nothing about how long answers take.
                if began.head.status.is_success() {
                    self.model.pace.took(self.stream, runner.tokens, runner.since.elapsed());
                }
                Ok((began, runner.waiting.landed()))
            }
            Err(failed) => {
                runner.waiting.failed(failed);
                note(&chosen.endpoint, failed, self.worker);
                if failed == Failed::Died {
                    self.trail.died(self.worker, &chosen.endpoint, runner.since);
                }
                Err(failed)
            }
        }
    }

    fn judged(
        &self,
        answer: Result<(Began, Flight), Failed>,
        second: Chosen,
        second_answers: bool,
    ) -> Ended {
        let won = second_answers && answer.is_ok();
        if won {
            self.worker.tried.recovered.hedges_won.fetch_add(1, Relaxed);
        }
        Ended { answer, second: Some(second), second_won: won }
    }
}
