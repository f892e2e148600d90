//! Files, batches and lines as clients see them.

mod batch;
mod file;
mod id;
mod lines;

pub(crate) use batch::{BatchErrors, BatchObject, BatchStatus, LineProblem, RequestCounts, Usage};
pub(crate) use file::{Deleted, FileObject, Page, Purpose};
pub(crate) use id::{NewId, is_id};
pub(crate) use lines::{LineError, LineResult, RequestLine};

use flyball_core::units::Timestamp;

/// Endpoints that a batch may ask.
pub(crate) const ENDPOINTS: [&str; 4] =
    ["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/embeddings"];

/// Seconds since the epoch, as all of OpenAI's objects have them.
pub(crate) const fn seconds(at: Timestamp) -> u64 {
    at.as_micros() / 1_000_000
}
