//! One that stands in line, and one whose turn it is.

use super::gate::Gate;
use super::line::{Shard, Told};
use super::prompt::Prompt;
use crate::answer::Problem;
use crate::sse::Usage;
use flyball_fleet::FleetEndpoint;
use flyball_routing::fair::{QueuedRequest, Ticket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// One that stands in line. Dropped, it has left.
#[derive(Debug)]
pub(crate) struct InLine {
    pub(super) gate: Arc<Gate>,
    pub(super) asked: QueuedRequest,
    pub(super) prompt: Prompt,
    pub(super) ticket: Ticket,
    pub(super) hears: Option<oneshot::Receiver<Told>>,
    /// Whether there was no engine when it came.
    pub(crate) held: bool,
    /// When there will probably be one.
    pub(crate) eta: Option<Duration>,
}

/// A turn of one request: from the gate to its end. Dropped, it is over.
#[derive(Debug)]
pub(crate) struct Turn {
    gate: Arc<Gate>,
    asked: QueuedRequest,
    prompt: Prompt,
    shard: Shard,
    begun: AtomicBool,
    /// Prompt tokens that its engine probably had to read.
    to_read: AtomicU64,
}

impl InLine {
    /// Where it stands.
    pub(crate) fn gate(&self) -> Arc<Gate> {
        Arc::clone(&self.gate)
    }

    /// Waits for the turn. However long that takes, the gate tells in the end.
    pub(crate) async fn turn(mut self) -> Result<Turn, Problem> {
        let Some(hears) = self.hears.as_mut() else { return Err(Problem::NoEndpoint) };
        let told = hears.await;
        self.hears = None;
        match told {
            Ok(Told::Go(shard)) => {
                Ok(Turn::new(Arc::clone(&self.gate), self.asked, self.prompt, shard))
            }
            Ok(Told::Never(problem)) => Err(problem),
            // The gate is gone, and with it the model.
            Err(_) => Err(Problem::NoEndpoint),
        }
    }
}

impl Drop for InLine {
    fn drop(&mut self) {
        let Some(mut hears) = self.hears.take() else { return };
        // Either it is still in line, or it was told something that nobody will hear.
        if !self.gate.leave(self.ticket)
            && let Ok(Told::Go(_)) = hears.try_recv()
        {
            self.gate.ungrant();
        }
    }
}

impl Turn {
    pub(super) const fn new(
        gate: Arc<Gate>,
        asked: QueuedRequest,
        prompt: Prompt,
        shard: Shard,
    ) -> Self {
        Self {
            gate,
            asked,
            prompt,
            shard,
            begun: AtomicBool::new(false),
            to_read: AtomicU64::new(prompt.tokens),
        }
    }

    /// Whether an engine may be taken. The turn was given because some engine has room; which one is
    /// best is for routing to say, which knows what each has to read. If only those with room were
    /// allowed, every prompt would leave its home as soon as there is a queue, all caches would miss,
    /// and the queue would never end: with 30 % of load it did not. Who floods has no home to leave.
    pub(crate) fn allows(&self, endpoint: &FleetEndpoint, now: Instant) -> bool {
        match self.shard {
            Shard::All => endpoint.has_some_room(),
            Shard::Own { .. } => self.shard.has(endpoint) && endpoint.has_room(now),
        }
    }

    /// Whether an engine is one of those that the caller keeps to.
    pub(crate) fn keeps_to(&self, endpoint: &FleetEndpoint) -> bool {
        self.shard.has(endpoint)
    }

    /// It is counted at an engine now, which probably has to read so many tokens.
    pub(crate) fn begun(&self, to_read: u64) {
        self.to_read.store(to_read, Ordering::Relaxed);
        if !self.begun.swap(true, Ordering::Relaxed) {
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
        self.gate.spend(&self.asked, &self.prompt, used, took);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if *self.begun.get_mut() {
            self.gate.stir();
        } else {
            self.gate.ungrant();
        }
    }
}
