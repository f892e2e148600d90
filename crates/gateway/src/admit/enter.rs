//! A request comes to the gate: it may go on, it stands in line, or it is told that it would be in vain.

use super::gate::{BATCH_RETRY_S, Gate};
use super::line::{Line, Shard, Waiter};
use super::prompt::Prompt;
use super::turn::{InLine, Turn};
use crate::answer::Problem;
use flyball_core::units::Tokens;
use flyball_routing::fair::{Class, Cost, QueuedRequest};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Part of the longest wait that a guess may reach, in tenths. A guess is off by a tenth or two, and
/// to be turned away late is worse than at once.
const GUESS_TENTHS: u32 = 8;

/// A request at the gate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) caller: u64,
    pub(crate) weight: u32,
    pub(crate) class: Class,
    pub(crate) prompt: Prompt,
    /// The most that it may write, if it says so.
    pub(crate) most_output: Option<u64>,
    /// The longest wait for a turn.
    pub(crate) wait: Duration,
    /// The longest wait for a model that is woken; `None` if nobody can wake it.
    pub(crate) hold: Option<Duration>,
    /// Before it is called again.
    pub(crate) again: Duration,
    /// How many may wait.
    pub(crate) most_waiting: usize,
}

/// What became of a request at the gate.
#[derive(Debug)]
pub(crate) enum Entered {
    /// It may go on.
    Now(Box<Turn>),
    /// It stands in line.
    Waits(InLine),
}

impl Gate {
    /// Asks for a turn. The second is whether the model is to be called.
    pub(crate) fn enter(self: &Arc<Self>, ask: &Ask) -> Result<(Entered, bool), Problem> {
        let now = Instant::now();
        // The operator gets capacity for what it is told of, and batch runs on what is there.
        if !ask.class.is_batch() {
            self.sums.arrive(ask.prompt.tokens);
        }
        let endpoints = self.endpoints.load();
        let mut line = self.lock();
        line.fade(now);
        let request = self.request(ask, line.shares.read(ask.caller));
        let is_batch = ask.class.is_batch();
        if !is_batch {
            line.uncached.arrive(&ask.prompt);
            line.shares.wants(request.caller, request.weight, request.cost);
            self.note_burst(&mut line, 1, now);
        }
        let is_up = endpoints.iter().any(|endpoint| endpoint.is_open());
        let ahead = if is_batch { line.queue.len() } else { line.queue.urgent() };
        if is_up && ahead == 0 {
            let shard = match is_batch {
                true => line.idle(&endpoints, now),
                false => line.shard(request.caller, &endpoints),
            };
            let granted = self.granted.load(Relaxed);
            // In a caller's own engines the grants of others are not counted: one too many at most.
            let spoken_for = if matches!(shard, Shard::Own { .. }) { 0 } else { granted };
            if line.rooms(&endpoints, shard, spoken_for + 1, now) > spoken_for {
                drop(line);
                let turn = self.grant(request, ask.prompt, shard).with_patience(ask.wait);
                return Ok((Entered::Now(Box::new(turn)), false));
            }
        }
        let refused = self.refusal(&line, ask, &request, is_up, now);
        if let Some(problem) = refused {
            drop(line);
            if !is_batch {
                self.sums.shed();
            }
            return Err(problem);
        }
        let (sender, receiver) = oneshot::channel();
        // Batch wakes no model: it waits until one is up for others.
        let held = !is_up && !is_batch;
        let wait = if held { ask.hold.unwrap_or(ask.wait) } else { ask.wait };
        let waiter = Waiter {
            sender,
            since: now,
            until: now + wait,
            held,
            batch: is_batch,
            prompt_tokens: ask.prompt.tokens,
        };
        let ticket = line.queue.push(&request, waiter);
        self.waiting.store(line.queue.len(), Relaxed);
        let call = held && line.wake.call_due(now, ask.again);
        if call {
            self.sums.called();
        }
        let eta = if held { line.wake.eta(now) } else { None };
        self.advance(&mut line, &endpoints, now);
        self.make_room(&line, &endpoints, now);
        drop(line);
        let waits = InLine {
            gate: Arc::clone(self),
            request,
            prompt: ask.prompt,
            ticket,
            receiver: Some(receiver),
            held,
            eta,
            patience: wait,
            made_room: 0,
        };
        Ok((Entered::Waits(waits), call))
    }

    fn grant(self: &Arc<Self>, request: QueuedRequest, prompt: Prompt, shard: Shard) -> Turn {
        self.granted.fetch_add(1, Relaxed);
        Turn::new(Arc::clone(self), request, prompt, shard)
    }

    fn request(&self, ask: &Ask, read_per_thousand: u64) -> QueuedRequest {
        let usual = self.usual_output.load(Relaxed);
        let output = ask.most_output.map_or(usual, |most| most.min(usual.saturating_mul(2)));
        let read = ask.prompt.tokens.saturating_mul(read_per_thousand) / 1_000;
        let cost = Cost::of(Tokens::new(read), Tokens::new(output), Tokens::new(0), 0);
        QueuedRequest { class: ask.class, caller: ask.caller, weight: ask.weight, cost }
    }

    fn refusal(
        &self,
        line: &Line,
        ask: &Ask,
        request: &QueuedRequest,
        is_up: bool,
        now: Instant,
    ) -> Option<Problem> {
        let seconds = |time: Duration| time.as_secs().max(1);
        if !is_up && ask.hold.is_none() {
            return Some(Problem::NoEndpoint);
        }
        // Nobody knows when nothing else will be wanted.
        if ask.class.is_batch() {
            let is_full = line.queue.batch() >= ask.most_waiting;
            return is_full.then_some(Problem::QueueFull { retry_after_s: BATCH_RETRY_S });
        }
        let wait = line.pace.time_of(line.queue.ahead(request)).unwrap_or_default();
        if line.queue.urgent() >= ask.most_waiting {
            let eta = if is_up { wait } else { line.wake.eta(now).unwrap_or_default() };
            return Some(Problem::QueueFull { retry_after_s: seconds(eta) });
        }
        (is_up && wait > ask.wait * GUESS_TENTHS / 10)
            .then(|| Problem::Overloaded { retry_after_s: seconds(wait.saturating_sub(ask.wait)) })
    }
}
