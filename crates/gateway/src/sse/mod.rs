//! Watches an answer as it passes: events, tokens used, whether it ended as it should.
//!
//! It is fed the very bytes that go to the client, in whatever pieces they come, and changes none
//! of them. It knows no network and no clock. Comments are not progress: a llama-server that hangs
//! after SIGTERM still sends them (engines.md section 4).
//!
//! `watcher` walks lines and events, `partial_line` holds a line that comes in pieces, `event_fields` reads the JSON
//! of the few events that matter, `finish` finds out why an answer ended, `data` finds the data of events
//! that are whole, `write` makes events of our own.
//!
//! Start at [`Watcher`].

mod data;
mod event_fields;
mod finish;
mod partial_line;
mod watcher;
mod write;

#[cfg(test)]
mod client;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

pub use data::data_of;
pub use event_fields::usage_of;
pub use finish::{Finish, finish_of};
pub use watcher::Watcher;
pub use write::write_event;

/// What an answer said about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SseProgress {
    /// Events that carry something: neither comments nor the end mark.
    pub events: u64,
    /// Tokens used, if the answer told.
    pub usage: Option<Usage>,
    /// Whether it ended as its interface says (`data: [DONE]`, `message_stop`,
    /// `response.completed`).
    pub ended: bool,
    /// Whether an event carried an error.
    pub error: bool,
    /// Why it ended, if it told.
    pub finish: Option<Finish>,
}

/// Tokens that an answer cost, in its own words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of the prompt, cached ones included.
    pub input: u64,
    /// Of the prompt, found in the cache; `None` if the engine does not say.
    pub cached: Option<u64>,
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
pub enum SseError {
    /// A line without an end.
    #[error("the engine sent a line of more than {limit} bytes")]
    LineTooLong {
        /// The bytes allowed.
        limit: usize,
    },
    /// What came is no stream of events.
    #[error("the engine sent bytes that are not an event stream")]
    Garbage,
}
