//! Watches an answer as it passes: events, tokens used, whether it ended as it should.
//!
//! It is fed the very bytes that go to the client, in whatever pieces they come, and changes none
//! of them. It knows no network and no clock. Comments are not progress: a llama-server that hangs
//! after SIGTERM still sends them (engines.md section 4).
//!
//! Start at [`Watcher`].

use crate::surface::Surface;

/// What an answer said about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Events that carry something: neither comments nor the end mark.
    pub events: u64,
    /// Tokens used, if the answer told.
    pub usage: Option<Usage>,
    /// Whether it ended as its interface says (`data: [DONE]`, `message_stop`,
    /// `response.completed`).
    pub ended: bool,
    /// Whether an event carried an error.
    pub error: bool,
}

/// Tokens that an answer cost, in its own words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of the prompt.
    pub input: u64,
    /// Of the prompt, found in the cache.
    pub cached: u64,
    /// Of the answer.
    pub output: u64,
}

/// What one piece brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Events that were completed by it and carry something.
    pub events: u32,
    /// Whether the piece ends between two events, so that something may be put in here.
    pub between_events: bool,
}

/// Why an answer cannot be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// A line without an end.
    #[error("the engine sent a line of more than {limit} bytes")]
    LineTooLong {
        /// The bytes allowed.
        limit: usize,
    },
    /// What came is no stream of events.
    #[error("the engine sent bytes that are no event stream")]
    Garbage,
}

/// Watches a stream of events (SSE).
#[derive(Debug)]
pub struct Watcher {
    surface: Surface,
    seen: Seen,
}

impl Watcher {
    /// The longest line: the tool call of a large file fits, an endless one does not.
    pub const LINE_BYTES: usize = 1 << 20;

    /// For an answer of this interface.
    pub const fn new(surface: Surface) -> Self {
        Self { surface, seen: Seen { events: 0, usage: None, ended: false, error: false } }
    }

    /// The next piece of the answer.
    pub fn feed(&mut self, _piece: &[u8]) -> Result<Progress, Broken> {
        let _ = self.surface;
        Ok(Progress::default())
    }

    /// What was seen so far.
    pub const fn seen(&self) -> &Seen {
        &self.seen
    }
}

/// The tokens used that a whole JSON answer tells; `piece` is its end, where `usage` stands in
/// every engine that is known. `None` if it does not tell.
pub fn usage_of(_piece: &[u8]) -> Option<Usage> {
    None
}
