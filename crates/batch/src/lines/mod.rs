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
