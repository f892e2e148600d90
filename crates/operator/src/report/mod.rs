//! Tells what was decided and why: statuses, events, metrics, a history. One closed list of reasons goes
//! unchanged through all of them.
//!
//! `status` and `said` are pure, `changed` decides what is worth a write, `history` remembers, `metrics`
//! shows, `tell` writes.

mod attained;
mod changed;
mod history;
mod metrics;
mod said;
mod status;
mod tell;
#[cfg(test)]
mod tests;

pub use attained::Attained;
pub use changed::is_worth_writing;
pub use history::History;
pub use metrics::{Board, Shown};
pub use status::{Context, status};
pub use tell::{TellError, Teller};
