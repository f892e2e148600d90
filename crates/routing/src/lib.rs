//! Which endpoint a request goes to: a pure choice among endpoints by prefix, load and health.
//!
//! The gateway asks it for real requests and the simulator for virtual ones. It does no I/O and
//! knows no clock and no randomness, and it remembers nothing between two requests.
//!
//! 1. `affinity` names a few candidates for the prompt's prefixes. Every gateway names the same
//!    ones, because they follow from names alone.
//! 2. `cost` weighs what each candidate already has to do against what its cache may save.
//! 3. [`choose()`] takes the cheapest, unless that one is overloaded: then the endpoint with the least
//!    load of all.
//!
//! Start at [`choose()`].

mod affinity;
mod choose;
mod cost;
mod endpoint;
#[cfg(test)]
mod tests;

pub use choose::{Choice, Why, choose};
pub use endpoint::{Ask, Availability, Endpoint, Weights};
