//! The one queue of a model.

use super::batch::Batches;
use super::demand::{AdmittedDemand, Sums, millis};
use super::judge::Judge;
use super::line::{Line, TurnVerdict, Waiter};
use super::prompt::{Prompt, Scale, Took};
use crate::answer::Problem;
use arc_swap::ArcSwap;
use flyball_core::units::Tokens;
use flyball_fleet::FleetEndpoint;
use flyball_fleet::invariants::{GatewayInvariant, give_back};
use flyball_routing::fair::{Cost, QueuedRequest};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Seconds after which a batch request for which there was no place may come again.
pub(crate) const BATCH_RETRY_S: u64 = 30;

/// Tokens of an answer before any came.
const FIRST_OUTPUT: u64 = 256;

/// The queue of a model. Lives as long as the model is served, whatever becomes of its engines.
#[derive(Debug)]
pub(crate) struct Gate {
    line: Mutex<Line>,
    /// As many as stand in line; read without the lock.
    pub(super) waiting: AtomicUsize,
    /// Turns that were granted and have not begun at an engine.
    pub(super) granted: AtomicUsize,
    pub(super) endpoints: ArcSwap<Vec<Arc<FleetEndpoint>>>,
    pub(super) sums: Sums,
    /// Who felt too much.
    pub(crate) judge: Judge,
    /// Turns of other classes than batch that have begun and are not over.
    pub(super) under_way: AtomicUsize,
    /// Batch requests at engines.
    pub(super) batches: Batches,
    /// Mean milliseconds that an engine took for a request of late, batch aside.
    pub(super) usual_ms: AtomicU64,
    /// Mean tokens of answers of late.
    pub(super) usual_output: AtomicU64,
    /// How many tokens prompts have.
    pub(crate) scale: Scale,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            line: Mutex::new(Line::new(Instant::now())),
            waiting: AtomicUsize::new(0),
            granted: AtomicUsize::new(0),
            endpoints: ArcSwap::default(),
            sums: Sums::default(),
            judge: Judge::default(),
            under_way: AtomicUsize::new(0),
            batches: Batches::default(),
            usual_ms: AtomicU64::new(0),
            usual_output: AtomicU64::new(FIRST_OUTPUT),
            scale: Scale::default(),
        }
    }

    /// The model's engines are these now.
    pub(crate) fn list(&self, endpoints: Vec<Arc<FleetEndpoint>>) {
        self.endpoints.store(Arc::new(endpoints));
        let endpoints = self.endpoints.load();
        let mut line = self.lock();
        self.advance(&mut line, &endpoints, Instant::now());
    }

    /// Something has changed at the engines: lets go who can.
    pub(crate) fn stir(&self) {
        if self.waiting() == 0 {
            return;
        }
        let endpoints = self.endpoints.load();
        let mut line = self.lock();
        self.advance(&mut line, &endpoints, Instant::now());
    }

    /// Some time has passed: tells those who have waited too long, lets go who can, and says whether
    /// the model is to be called again. If the gateway is about to end, nobody waits any longer.
    pub(crate) fn pulse(&self, again: Option<Duration>, ending: bool) -> bool {
        let now = Instant::now();
        let endpoints = self.endpoints.load();
        let mut line = self.lock();
        line.fade(now);
        let retry_after_s = line.wake.eta(now).map_or(1, |eta| eta.as_secs().max(1));
        for waiter in line.queue.remove_where(|waiter| ending || waiter.until <= now) {
            let problem = match (ending, waiter.held, waiter.batch) {
                (true, ..) => Problem::Draining,
                (_, _, true) => Problem::NoIdleCapacity { retry_after_s: BATCH_RETRY_S },
                (_, true, _) => Problem::WakeTimeout { retry_after_s },
                _ => Problem::QueueTimeout,
            };
            if !waiter.batch {
                self.sums.shed();
            }
            // Whoever does not hear it has hung up.
            let _ = waiter.sender.send(TurnVerdict::Never(problem));
        }
        self.advance(&mut line, &endpoints, now);
        self.make_room(&line, &endpoints, now);
        let is_up = endpoints.iter().any(|endpoint| endpoint.is_open());
        let Some(again) = again.filter(|_| !is_up && line.queue.urgent() > 0) else { return false };
        let call = line.wake.call_due(now, again);
        if call {
            self.sums.called();
        }
        call
    }

    /// How many stand in line.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }

    /// An engine will be up by then, as the operator says; `None` if it says nothing.
    pub(crate) fn promise(&self, by: Option<Instant>) {
        self.lock().wake.promise(by);
    }

    /// How long it is until then.
    pub(crate) fn promised(&self) -> Option<Duration> {
        self.lock().wake.promised(Instant::now())
    }

    /// What is wanted of the model.
    pub(crate) fn demand(&self, model: &str) -> AdmittedDemand {
        let now = Instant::now();
        let endpoints = self.endpoints.load();
        let line = self.lock();
        GatewayInvariant::Line.hold(line.queue.len() == self.waiting());
        let (mut held, mut backlog_tokens, mut oldest) = (0, 0_u64, Duration::ZERO);
        let others = |waiter: &&Waiter| !waiter.batch;
        line.queue.iter().filter(others).for_each(|waiter| {
            held += usize::from(waiter.held);
            backlog_tokens += waiter.prompt_tokens;
            oldest = oldest.max(now.saturating_duration_since(waiter.since));
        });
        // Batch is no demand: for it nothing is started, and nothing is kept.
        let in_flight: u64 = endpoints.iter().map(|one| u64::from(one.in_flight())).sum();
        let mut demand = AdmittedDemand {
            model: model.to_owned(),
            engines: endpoints.iter().filter(|endpoint| endpoint.is_open()).count(),
            waiting: line.queue.urgent(),
            batch_waiting: line.queue.batch(),
            batch_running: self.batches.count(),
            held,
            backlog_tokens,
            backlog_cost: line.queue.urgent_cost().0,
            oldest_ms: millis(oldest),
            wait_ms: match line.queue.urgent() {
                0 => Some(0),
                _ => line.pace.time_of(line.queue.urgent_cost()).map(millis),
            },
            eta_ms: line.wake.eta(now).filter(|_| line.wake.is_waking()).map(millis),
            waking: line.wake.is_waking(),
            in_flight: in_flight.saturating_sub(self.batches.count() as u64),
            unread_tokens: endpoints.iter().map(|endpoint| endpoint.unread_tokens()).sum(),
            window: endpoints.iter().map(|endpoint| u64::from(endpoint.window())).sum(),
            held_tokens: endpoints.iter().map(|endpoint| endpoint.held_tokens()).sum(),
            uncached_tokens: line.uncached.sum(),
            ..AdmittedDemand::default()
        };
        drop(line);
        self.sums.fill(&mut demand);
        self.judge.fill(&mut demand);
        demand
    }

    /// A request has ended at its engine, and this is what it used and how long it took.
    pub(super) fn spend(
        &self,
        request: &QueuedRequest,
        prompt: &Prompt,
        used: Took,
        took: Duration,
    ) {
        let Took { input, read, output } = used;
        let held = input.saturating_add(output / 2);
        let [read_tokens, written, held] = [read, output, held].map(Tokens::new);
        let actual = Cost::of(read_tokens, written, held, millis(took));
        learn(&self.usual_output, output);
        let read_of = read.saturating_mul(1_000) / input.max(1);
        let mut line = self.lock();
        if !request.class.is_batch() {
            self.sums.spend(actual.0);
            learn(&self.usual_ms, millis(took));
            line.uncached.ended(prompt, read);
            line.shares.spent(request.caller, request.cost, actual, read_of);
        }
        if !line.queue.is_empty() {
            line.queue.charge(request.class, request.caller, request.cost, actual);
        }
    }

    /// A granted turn has begun at an engine, or never will.
    pub(super) fn ungrant(&self) {
        give_back!(self.granted, 1, GatewayInvariant::Grants);
        self.stir();
    }

    /// Takes one out of line; whether it was still there.
    pub(super) fn leave(&self, ticket: flyball_routing::fair::Ticket) -> bool {
        let mut line = self.lock();
        let was_there = line.queue.remove(ticket).is_some();
        self.settle(&mut line);
        was_there
    }

    /// Lets go all that can.
    pub(super) fn advance(&self, line: &mut Line, endpoints: &[Arc<FleetEndpoint>], now: Instant) {
        if endpoints.iter().any(|endpoint| endpoint.is_open()) {
            line.wake.came(now);
        }
        while let Some((request, waiter, shard)) =
            line.next(endpoints, self.granted.load(Relaxed), now)
        {
            self.granted.fetch_add(1, Relaxed);
            if waiter.sender.send(TurnVerdict::Go(shard)).is_err() {
                // Hung up, and not yet out of line.
                give_back!(self.granted, 1, GatewayInvariant::Grants);
                continue;
            }
            if line.queue.urgent() > 0 {
                line.pace.turn(request.cost, now);
            }
        }
        self.settle(line);
    }

    fn settle(&self, line: &mut Line) {
        self.waiting.store(line.queue.len(), Relaxed);
        // Batch that waits says nothing about how fast others get their turns.
        if line.queue.urgent() == 0 {
            line.pace.pause();
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A mean to which each adds a 32nd. Two threads may both write; one is then not counted.
fn learn(mean: &AtomicU64, value: u64) {
    let before = mean.load(Relaxed);
    mean.store((before * 31 + value.min(1 << 40)).div_ceil(32), Relaxed);
}
