//! What one request adds to an engine's counts while it is under way.

use super::Endpoint;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A request under way at an engine. Its counts go when it is dropped, however it ended.
#[derive(Debug)]
pub(crate) struct Flight {
    endpoint: Arc<Endpoint>,
    unread_tokens: u64,
    held_tokens: u64,
}

impl Flight {
    /// Counts a request with so many prompt tokens to read, which will hold so many.
    pub(crate) fn begin(endpoint: Arc<Endpoint>, unread_tokens: u64, held_tokens: u64) -> Self {
        endpoint.in_flight.fetch_add(1, Ordering::Relaxed);
        endpoint.unread_tokens.fetch_add(unread_tokens, Ordering::Relaxed);
        endpoint.held_tokens.fetch_add(held_tokens, Ordering::Relaxed);
        Self { endpoint, unread_tokens, held_tokens }
    }

    /// The prompt is read: the first token is there.
    pub(crate) fn has_read(&mut self) {
        let unread = std::mem::take(&mut self.unread_tokens);
        self.endpoint.unread_tokens.fetch_sub(unread, Ordering::Relaxed);
    }

    /// Where it is under way.
    pub(crate) const fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.has_read();
        self.endpoint.held_tokens.fetch_sub(self.held_tokens, Ordering::Relaxed);
        self.endpoint.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
