//! Which endpoint a request goes to: a pure choice among endpoints by prefix, load and health.
//!
//! The gateway asks it for real requests and the simulator for virtual ones. It does no I/O and
//! knows no clock and no randomness.
//!
//! 1. `Seen` says what this gateway remembers of a prompt: how deep it was seen, where it went,
//!    and which beginning everybody has.
//!    [`Horizon`] says how far back the memory of an endpoint reaches, where that tells.
//! 2. [`Ring`] names the home of the first beginning that not everybody has. Every gateway names the
//!    same one, because it follows from names alone.
//! 3. `cost` weighs what an endpoint already has to do against what its cache may save.
//! 4. [`choose()`] takes the cheapest of the home, the one that got the beginning last, and the least
//!    loaded of some others. So a request leaves its home when that would cost more than a miss.
//! 5. [`second()`] names another one for a request whose first is slow, if it has as much cached.
//!
//! Before it, [`split`] says which of several models a name stands for this time, and [`fair`] whose
//! request is next when there is not enough for all. `Policy` names this way and two plain ones, and
//! [`shadow`] says which of them would have been better, without choosing by them.
//!
//! Start at [`choose()`].

mod choose;
mod cost;
mod endpoint;
pub mod fair;
mod horizon;
mod policy;
mod ring;
mod second;
mod seen;
pub mod shadow;
pub mod split;
#[cfg(test)]
mod tests;

pub use choose::{RoutingChoice, Why, choose};
pub use endpoint::{Availability, Endpoint, RoutingRequest, Weights};
pub use horizon::Horizon;
pub use policy::{RoutingPolicy, least_load, round_robin};
pub use ring::Ring;
pub use second::second;
pub use seen::{EndpointPast, ObservedEndpoints, ObservedMoment};
