//! A request that is over, as it is told: each phase fills in what it knows, and the meter and the
//! judge of a model's objectives read it.

use crate::sse::{Finish, Usage};
use crate::surface::Surface;
use std::sync::Arc;
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
    /// What may be shown of its key, if a Tenant has it.
    pub key: Option<&'a str>,
    /// The model, if it is one that we serve: never a word from a body.
    pub model: Option<&'a str>,
    /// The engine that answered last.
    pub endpoint: Option<&'a str>,
    /// The interface.
    pub surface: Surface,
    /// The status that the client got.
    pub status: u16,
    /// How it ended.
    pub outcome: RequestOutcome,
    /// Why it got no answer of an engine, from a closed list.
    pub reason: Option<&'static str>,
    /// Whether it was a stream.
    pub stream: bool,
    /// When its head had arrived.
    pub started: SystemTime,
    /// From its head to its last byte.
    pub took: Duration,
    /// From its head to the last byte of its body, if that came.
    pub read: Option<Duration>,
    /// From its head to the first event of a stream, or the first byte of another answer.
    pub first: Option<Duration>,
    /// From its head to the moment at which an engine was chosen: what the gateway itself took.
    pub chosen: Option<Duration>,
    /// How long it waited for a turn; zero if it did not have to.
    pub queued: Duration,
    /// Whether it waited for a model that had no engine.
    pub held: bool,
    /// The name that was asked for, if it is one that stands for several models.
    pub split: Option<&'a str>,
    /// Whether it is a copy whose answer nobody gets.
    pub mirrored: bool,
    /// Whether the answer was a kept one.
    pub cached: bool,
    /// Whether a second engine was asked before the first had begun to answer.
    pub hedged: bool,
    /// Times that another engine continued what one had begun.
    pub continued: u32,
    /// Whether it was of the class batch.
    pub batch: bool,
    /// Times that it made room for others, and began again or was continued later.
    pub preempted: u32,
    /// Why the answer ended, if it told.
    pub finish: Option<Finish>,
    /// Retries on another engine.
    pub retries: u32,
    /// The tries that failed, in order.
    pub tries: &'a [Try],
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

/// A try at an engine that gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Try {
    /// The engine.
    pub endpoint: Arc<str>,
    /// From the request's head to its beginning.
    pub began: Duration,
    /// From the request's head to its end.
    pub ended: Duration,
    /// Why it failed, from a closed list.
    pub why: &'static str,
}

impl Finished<'_> {
    /// When it was over.
    pub fn ended(&self) -> SystemTime {
        self.started.checked_add(self.took).unwrap_or(self.started)
    }

    /// The mean time of a token after the first, of a stream that came whole.
    pub fn per_token(&self) -> Option<Duration> {
        let first =
            self.first.filter(|_| self.stream && self.outcome == RequestOutcome::Answered)?;
        let tokens = self.usage.output.checked_sub(1).filter(|tokens| *tokens > 0)?;
        // In nanoseconds, because a division of microseconds by thousands of tokens loses too much.
        let nanos = self.took.saturating_sub(first).as_nanos() / u128::from(tokens);
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestOutcome {
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

impl RequestOutcome {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Answered, Self::Refused, Self::Failed, Self::Broken, Self::Cancelled];

    /// Its place in [`Self::ALL`].
    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Answered => 0,
            Self::Refused => 1,
            Self::Failed => 2,
            Self::Broken => 3,
            Self::Cancelled => 4,
        }
    }

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
