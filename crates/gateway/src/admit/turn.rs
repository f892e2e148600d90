//! One that stands in line, and one whose turn it is.

use super::batch::Stay;
use super::gate::Gate;
use super::line::{Shard, TurnVerdict};
use super::prompt::Prompt;
use crate::answer::Problem;
use crate::sse::Usage;
use flyball_fleet::FleetEndpoint;
use flyball_fleet::invariants::{GatewayInvariant, give_back};
use flyball_routing::fair::{QueuedRequest, Ticket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// One that stands in line. Dropped, it has left.
#[derive(Debug)]
pub(crate) struct InLine {
    pub(super) gate: Arc<Gate>,
    pub(super) request: QueuedRequest,
    pub(super) prompt: Prompt,
    pub(super) ticket: Ticket,
    pub(super) receiver: Option<oneshot::Receiver<TurnVerdict>>,
    /// Whether there was no engine when it came.
    pub(crate) held: bool,
    /// When there will probably be one.
    pub(crate) eta: Option<Duration>,
    /// How long it would wait, in all.
    pub(super) patience: Duration,
    /// Times that it made room.
    pub(super) made_room: u32,
}

/// A turn of one request: from the gate to its end. Dropped, it is over.
#[derive(Debug)]
pub(crate) struct Turn {
    gate: Arc<Gate>,
    request: QueuedRequest,
    prompt: Prompt,
    shard: Shard,
    begun: AtomicBool,
    /// Prompt tokens that its engine probably had to read.
    to_read: AtomicU64,
    /// How long it would wait for another turn if it made room.
    patience: Duration,
    /// Times that it made room.
    made_room: u32,
    /// Its stay at an engine, if it is a batch request.
    stay: OnceLock<Arc<Stay>>,
}

impl InLine {
    /// Where it stands.
    pub(crate) fn gate(&self) -> Arc<Gate> {
        Arc::clone(&self.gate)
    }

    /// Waits for the turn. However long that takes, the gate tells in the end.
    pub(crate) async fn turn(mut self) -> Result<Box<Turn>, Problem> {
        let Some(receiver) = self.receiver.as_mut() else { return Err(Problem::NoEndpoint) };
        let since = Instant::now();
        let verdict = receiver.await;
        self.receiver = None;
        match verdict {
            Ok(TurnVerdict::Go(shard)) => {
                let patience = self.patience.saturating_sub(since.elapsed());
                let turn = Turn::new(Arc::clone(&self.gate), self.request, self.prompt, shard);
                let mut turn = turn.with_patience(patience);
                turn.made_room = self.made_room;
                Ok(Box::new(turn))
            }
            Ok(TurnVerdict::Never(problem)) => Err(problem),
            // The gate is gone, and with it the model.
            Err(_) => Err(Problem::NoEndpoint),
        }
    }
}

impl Drop for InLine {
    fn drop(&mut self) {
        let Some(mut receiver) = self.receiver.take() else { return };
        // Either it is still in line, or it was told something that nobody will hear.
        if !self.gate.leave(self.ticket)
            && let Ok(TurnVerdict::Go(_)) = receiver.try_recv()
        {
            self.gate.ungrant();
        }
    }
}

impl Turn {
    pub(super) const fn new(
        gate: Arc<Gate>,
        request: QueuedRequest,
        prompt: Prompt,
        shard: Shard,
    ) -> Self {
        Self {
            gate,
            request,
            prompt,
            shard,
            begun: AtomicBool::new(false),
            to_read: AtomicU64::new(prompt.tokens),
            patience: Duration::ZERO,
            made_room: 0,
            stay: OnceLock::new(),
        }
    }

    /// The same, which would wait so long for another turn.
    pub(super) const fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Whether an engine may be taken. The turn was given because some engine has room; which one is
    /// best is for routing to say, which knows what each has to read. If only those with room were
    /// allowed, every prompt would leave its home as soon as there is a queue, all caches would miss,
    /// and the queue would never end: with 30 % of load it did not. Who floods has no home to leave.
    pub(crate) fn allows(&self, endpoint: &FleetEndpoint, now: Instant) -> bool {
        match self.shard {
            Shard::All => endpoint.has_some_room(),
            Shard::Idle(rule) => rule.allows(&endpoint.batch_room(now)),
            Shard::Own { .. } => self.shard.has(endpoint) && endpoint.has_room(now),
        }
    }

    /// Whether an engine is one of those that the caller keeps to.
    pub(crate) fn keeps_to(&self, endpoint: &FleetEndpoint) -> bool {
        self.shard.has(endpoint)
    }

    /// It is counted at an engine now, which probably has to read so many tokens.
    pub(crate) fn begun(&self, endpoint: &FleetEndpoint, to_read: u64) {
        self.to_read.store(to_read, Ordering::Relaxed);
        let is_first = !self.begun.swap(true, Ordering::Relaxed);
        if self.request.class.is_batch() {
            let come = || self.gate.batches.come(endpoint.slot, self.prompt.tokens, self.made_room);
            self.stay.get_or_init(come).move_to(endpoint.slot);
            endpoint.filled_by_batch();
        } else {
            if is_first {
                self.gate.under_way.fetch_add(1, Ordering::Relaxed);
            }
            endpoint.keeps_from_batch(to_read);
            self.gate.make_room_at(endpoint);
        }
        if is_first {
            self.gate.ungrant();
        }
    }

    /// Its first token is there, so that its engine can read another prompt.
    pub(crate) fn has_read(&self) {
        self.gate.stir();
    }

    /// It has ended at its engine, and used so much.
    pub(crate) fn spend(&self, usage: Usage, took: Duration) {
        let to_read = self.to_read.load(Ordering::Relaxed);
        let used = self.gate.scale.took(&self.prompt, to_read, usage);
        self.gate.spend(&self.request, &self.prompt, used, took);
    }
}

/// What only a batch request does, which runs on what nobody else wants.
impl Turn {
    /// Whether it is one.
    pub(crate) const fn is_batch(&self) -> bool {
        self.request.class.is_batch()
    }

    /// Times that it made room before.
    pub(crate) const fn made_room(&self) -> u32 {
        self.made_room
    }

    /// Waits until it is told to make room for others.
    pub(crate) fn poll_make_room(&self, context: &Context<'_>) -> Poll<()> {
        self.stay.get().map_or(Poll::Pending, |stay| stay.poll_make_room(context))
    }

    /// What is passed on of its answer could be continued elsewhere.
    pub(crate) fn writes(&self) {
        self.stay.get().into_iter().for_each(|stay| stay.writes());
    }

    /// So many tokens of its answer were passed on.
    pub(crate) fn wrote(&self, tokens: u64) {
        self.stay.get().into_iter().for_each(|stay| stay.wrote(tokens));
    }

    /// What was passed on of its answer can not be continued: it stays to its end.
    pub(crate) fn stands(&self) {
        self.stay.get().into_iter().for_each(|stay| stay.stands());
    }

    /// It has made room, and stands in line for another turn.
    pub(crate) fn again(self) -> InLine {
        let (gate, request, prompt) = (Arc::clone(&self.gate), self.request, self.prompt);
        let (patience, made_room) = (self.patience, self.made_room + 1);
        drop(self);
        let (ticket, receiver) = gate.put_back(&request, &prompt, patience);
        let (receiver, held, eta) = (Some(receiver), false, None);
        InLine { gate, request, prompt, ticket, receiver, held, eta, patience, made_room }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(stay) = self.stay.take() {
            self.gate.batches.gone(&stay);
        }
        if *self.begun.get_mut() {
            if !self.request.class.is_batch() {
                give_back!(self.gate.under_way, 1, GatewayInvariant::Turns);
            }
            self.gate.stir();
        } else {
            self.gate.ungrant();
        }
    }
}
