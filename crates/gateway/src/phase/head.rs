//! What is known of every request from its head on.

use crate::finished::{Finished, RequestOutcome};
use crate::shared::Shared;
use crate::sse::Usage;
use crate::surface::Surface;
use http::HeaderValue;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// What is known of every request from its head on.
pub(crate) struct Head {
    pub(super) shared: Arc<Shared>,
    pub(crate) request_id: HeaderValue,
    pub(crate) surface: Surface,
    /// Whether it is a copy, which nobody asked for.
    pub(crate) mirrored: bool,
    /// The caller's.
    traceparent: Option<HeaderValue>,
    began: Instant,
    pub(super) started: SystemTime,
}

impl Head {
    /// Just now.
    pub(crate) fn new(
        shared: Arc<Shared>,
        request_id: HeaderValue,
        surface: Surface,
        traceparent: Option<HeaderValue>,
    ) -> Self {
        let (began, started) = (Instant::now(), SystemTime::now());
        Self { shared, request_id, surface, mirrored: false, traceparent, began, started }
    }

    /// That of a copy.
    pub(super) fn copy(&self) -> Self {
        let (shared, request_id) = (Arc::clone(&self.shared), self.request_id.clone());
        Self { mirrored: true, ..Self::new(shared, request_id, self.surface, None) }
    }

    /// The `traceparent` that the engine gets.
    pub(crate) fn traceparent_onward(&self) -> Option<HeaderValue> {
        let callers = self.traceparent.as_ref();
        let id = self.request_id.to_str().unwrap_or_default();
        let value = callers.and_then(|value| value.to_str().ok());
        let listener = &self.shared.listener;
        listener.traceparent(value, id, self.started).or_else(|| callers.cloned())
    }

    /// Since its head had arrived.
    pub(crate) fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// From its head to this moment.
    pub(crate) fn age_at(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.began)
    }

    /// A request of which nothing else is known, and which ended so at this moment.
    pub(super) fn finished(&self, outcome: RequestOutcome, now: Instant) -> Finished<'_> {
        Finished {
            request_id: self.request_id.to_str().unwrap_or_default(),
            traceparent: self.traceparent.as_ref().and_then(|value| value.to_str().ok()),
            caller: "",
            key: None,
            model: None,
            endpoint: None,
            surface: self.surface,
            status: 0,
            outcome,
            reason: None,
            stream: false,
            started: self.started,
            took: self.age_at(now),
            read: None,
            first: None,
            chosen: None,
            queued: Duration::ZERO,
            held: false,
            split: None,
            mirrored: self.mirrored,
            cached: false,
            hedged: false,
            continued: 0,
            batch: false,
            preempted: 0,
            finish: None,
            retries: 0,
            tries: &[],
            hoped_blocks: None,
            usage: Usage::default(),
            estimated: true,
            bytes_in: 0,
            bytes_out: 0,
        }
    }
}
