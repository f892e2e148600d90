//! Sends a line to the gateway in class `batch`, and assembles the answer.
//!
//! A line whose answer can be put together from a stream runs as one: then the gateway can cut it off when somebody else
//! needs the engine, and go on with its text later. `body` makes a stream of it, `assemble` an answer again, `send` has the
//! connection.

mod assemble;
mod body;
mod events;
mod send;

pub(crate) use send::GatewayLines;

use crate::forms::LineResult;
use crate::state::BatchKey;
use flyball_core::units::Micros;

/// A line to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineToSend {
    pub(crate) key: BatchKey,
    pub(crate) index: u32,
    /// Whose it is, with its `/`.
    pub(crate) tenant: String,
    pub(crate) endpoint: String,
    pub(crate) body: String,
    /// The end of its window, in seconds.
    pub(crate) deadline: u64,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LineOutcome {
    /// It is done.
    Done(LineResult),
    /// There is no room for it, or nobody to ask: it is sent again, not before so long.
    Later(Micros),
}
