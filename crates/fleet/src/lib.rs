//! The engines behind a gateway: where they are, what they have to do, how they behave.
//!
//! - `fleet` is the table of engines with their live counts, which everything else reads or writes.
//! - [`discover`] finds out where engines are and fills the table.
//! - [`collect`] asks engines for their load and proves that cancelled requests let go of their slots; also
//!   for many gateways at once, as `flyball collect`.
//! - [`kv_events`] hears what engines forget.
//! - [`wire`] is a connection for one question at a time.
//! - [`invariants`] is the list of what must hold in a gateway, and counts what does not.
//!
//! It knows nothing of requests, callers, queues or a gateway's settings: who uses it says which models are
//! sought, and which requests are under way. Start at [`Fleet`].

#![deny(missing_docs)]

pub mod collect;
pub mod discover;
mod fleet;
pub mod invariants;
pub mod kv_events;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod wire;

pub use fleet::{
    AnswerPace, Breaker, EngineNow, EngineState, Engines, Fleet, FleetEndpoint, FleetModel,
    FleetReport, Flight, FoundEngines, Listing, Load, Millis, Time,
};
