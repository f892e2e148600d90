//! What one request adds to an engine's counts while it is under way.

use super::FleetEndpoint;
use crate::invariants::{GatewayInvariant, give_back};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// A request under way at an engine. Its counts go when it is dropped, however it ended.
#[derive(Debug)]
pub struct Flight {
    endpoint: Arc<FleetEndpoint>,
    /// Its prompt, until that is read.
    unread_tokens: Option<u64>,
    held_tokens: u64,
    /// All that the engine had to read when this came, its own included.
    to_read: u64,
    began: Instant,
}

impl Flight {
    /// Counts a request with so many prompt tokens to read, which will hold so many. Of a stream the
    /// first token will tell when they are read.
    pub fn begin(
        endpoint: Arc<FleetEndpoint>,
        unread_tokens: u64,
        held_tokens: u64,
        stream: bool,
        began: Instant,
    ) -> Self {
        endpoint.in_flight.fetch_add(1, Ordering::Relaxed);
        endpoint.held_tokens.fetch_add(held_tokens, Ordering::Relaxed);
        let to_read = if stream {
            endpoint.reading.begin(unread_tokens)
        } else {
            endpoint.reading.begin_whole(unread_tokens, began);
            0
        };
        let unread_tokens = stream.then_some(unread_tokens);
        Self { endpoint, unread_tokens, held_tokens, to_read, began }
    }

    /// The prompt is read: the first token is there.
    pub fn has_read(&mut self) {
        if self.unread_tokens.is_some() {
            self.endpoint.reading.learn(self.to_read, self.began.elapsed());
        }
        self.forget_unread();
    }

    /// Where it is under way.
    pub const fn endpoint(&self) -> &Arc<FleetEndpoint> {
        &self.endpoint
    }

    /// When it was sent.
    pub const fn began(&self) -> Instant {
        self.began
    }

    fn forget_unread(&mut self) {
        if let Some(unread) = self.unread_tokens.take() {
            self.endpoint.reading.end(unread);
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.forget_unread();
        give_back!(self.endpoint.held_tokens, self.held_tokens, GatewayInvariant::Flights);
        give_back!(self.endpoint.in_flight, 1, GatewayInvariant::Flights);
    }
}
