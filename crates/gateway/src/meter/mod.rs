//! Counts each request once, however it ended: metrics, a line in the access log, a span.
//!
//! `forward` hands over one [`Finished`] per request that was accepted. Nothing here can fail a
//! request or wait: what does not fit into a queue is dropped and counted.
//!
//! Start at [`Finished`].

use crate::sse::Usage;
use crate::surface::Surface;
use std::time::{Duration, SystemTime};

/// A request that is over.
#[derive(Clone, Copy, Debug)]
pub struct Finished<'a> {
    /// Its `x-request-id`.
    pub request_id: &'a str,
    /// The caller's `traceparent`, unparsed.
    pub traceparent: Option<&'a str>,
    /// Who asked; empty if nobody was asked for a key.
    pub caller: &'a str,
    /// The model, if it is one that we serve: never a word from a body.
    pub model: Option<&'a str>,
    /// The engine that answered last.
    pub endpoint: Option<&'a str>,
    /// The interface.
    pub surface: Surface,
    /// The status that the client got.
    pub status: u16,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it got no answer of an engine, from a closed list.
    pub reason: Option<&'static str>,
    /// Whether it was a stream.
    pub stream: bool,
    /// When its head had arrived.
    pub started: SystemTime,
    /// From its head to its last byte.
    pub took: Duration,
    /// From its head to the first event of a stream, or the first byte of another answer.
    pub first: Option<Duration>,
    /// From its head to the moment at which an engine was chosen: what the gateway itself took.
    pub chosen: Option<Duration>,
    /// Times that another engine was tried.
    pub retries: u32,
    /// Leading blocks that the choice hoped to find cached; none if it went by load.
    pub hoped_blocks: Option<u32>,
    /// Tokens used.
    pub usage: Usage,
    /// Whether `usage` was counted by us because the answer did not tell.
    pub estimated: bool,
    /// Bytes of the body.
    pub bytes_in: u64,
    /// Bytes of the answer.
    pub bytes_out: u64,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Whole.
    Answered,
    /// Refused by us before an engine saw it.
    Refused,
    /// No engine gave an answer.
    Failed,
    /// The answer broke off after it had begun.
    Broken,
    /// The client hung up.
    Cancelled,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Answered, Self::Refused, Self::Failed, Self::Broken, Self::Cancelled];

    /// Its name in metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Broken => "broken",
            Self::Cancelled => "cancelled",
        }
    }
}
