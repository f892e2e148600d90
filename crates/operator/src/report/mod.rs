//! Tells what was decided and why: statuses, events, metrics, a history. One closed list of reasons goes
//! unchanged through all of them.
//!
//! `status`, `said` and `pools` are pure, `changed` decides what is worth a write, `history` remembers,
//! `metrics` shows, `tell` writes.

mod attained;
mod changed;
mod history;
mod metrics;
pub mod pools;
mod said;
mod status;
mod tell;
#[cfg(test)]
mod tests;

pub use attained::Attained;
pub use changed::{is_worth_writing, turned_bad};
pub use history::History;
pub use metrics::{Board, Shown};
pub use status::{StatusContext, status};
pub use tell::{TellError, Teller};
