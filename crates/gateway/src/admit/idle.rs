//! Turns for the class batch, which runs on what nobody else wants, and room for others that is taken back from it.

use super::batch::Whose;
use super::gate::Gate;
use super::line::{Line, Shard, TurnVerdict, Waiter};
use super::prompt::Prompt;
use flyball_fleet::FleetEndpoint;
use flyball_routing::fair::{BatchRule, QueuedRequest, Ticket};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

impl Line {
    /// Where a batch request may go now.
    pub(super) fn idle(&self, endpoints: &[Arc<FleetEndpoint>], now: Instant) -> Shard {
        let engines = endpoints.iter().filter(|endpoint| endpoint.is_open()).count();
        Shard::Idle(BatchRule {
            urgent: self.queue.urgent(),
            burst: self.bursts.largest(self.millis(now)),
            engines: u32::try_from(engines).unwrap_or(u32::MAX),
        })
    }

    /// The next batch request that can go, given that so many of the engines with room are spoken for.
    pub(super) fn next_batch(
        &mut self,
        endpoints: &[Arc<FleetEndpoint>],
        granted: usize,
        now: Instant,
    ) -> Option<(QueuedRequest, Waiter, Shard)> {
        if self.queue.batch() == 0 {
            return None;
        }
        let idle = self.idle(endpoints, now);
        if self.rooms(endpoints, idle, granted + 1, now) <= granted {
            return None;
        }
        let (request, waiter) = self.queue.next_batch()?;
        Some((request, waiter, idle))
    }

    pub(super) fn millis(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.began).as_millis() as u64
    }
}

impl Gate {
    /// So many more of the other classes have come.
    pub(super) fn note_burst(&self, line: &mut Line, come: usize, now: Instant) {
        let concurrent = self.under_way.load(Relaxed) + line.queue.urgent() + come;
        let now = line.millis(now);
        let concurrent = u32::try_from(concurrent).unwrap_or(u32::MAX);
        line.bursts.note(concurrent, now, self.usual_ms.load(Relaxed));
    }

    /// Others wait: batch requests make room for them, as far as it is those that are in their way.
    pub(super) fn make_room(&self, line: &Line, endpoints: &[Arc<FleetEndpoint>], now: Instant) {
        let urgent = line.queue.urgent();
        if urgent == 0 || self.batches.count() == 0 {
            return;
        }
        let mut open = endpoints.iter().filter(|endpoint| endpoint.is_open()).peekable();
        // Where no engine takes anything, a place is of no use.
        if open.peek().is_none() {
            return;
        }
        if open.all(|endpoint| endpoint.in_flight() >= endpoint.window()) {
            self.batches.make_room(urgent, Whose::Any, now);
        } else {
            // There is a place, but engines have enough to read.
            endpoints.iter().for_each(|endpoint| self.batches.stop_reading(endpoint, now));
        }
    }

    /// A request of another class has come to an engine: if it is one more than that bears, or would wait there for a long
    /// prompt to be read, batch makes room.
    pub(super) fn make_room_at(&self, endpoint: &FleetEndpoint) {
        if self.batches.count() == 0 {
            return;
        }
        let now = Instant::now();
        self.batches.stop_reading(endpoint, now);
        let beyond = usize::try_from(endpoint.beyond()).unwrap_or(usize::MAX);
        self.batches.make_room(beyond, Whose::At(endpoint.slot), now);
    }

    /// A batch request that made room stands in line again, before what its caller has in line.
    pub(super) fn put_back(
        &self,
        request: &QueuedRequest,
        prompt: &Prompt,
        patience: Duration,
    ) -> (Ticket, oneshot::Receiver<TurnVerdict>) {
        let now = Instant::now();
        let (sender, receiver) = oneshot::channel();
        let until = now + patience;
        let prompt_tokens = prompt.tokens;
        let waiter = Waiter { sender, since: now, until, held: false, batch: true, prompt_tokens };
        let endpoints = self.endpoints.load();
        let mut line = self.lock();
        let ticket = line.queue.put_back(request, waiter);
        self.advance(&mut line, &endpoints, now);
        (ticket, receiver)
    }
}
