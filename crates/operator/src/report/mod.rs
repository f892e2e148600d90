//! Tells what was decided and why: statuses, events, metrics, a history. One closed list of reasons goes
//! unchanged through all of them.
//!
//! `status`, `conditions`, `pools` and `tenants` are pure, `changed` decides what is worth a write, `history` remembers,
//! `metrics` shows, `publisher` writes.

mod attained;
mod changed;
mod conditions;
mod history;
mod metrics;
pub mod pools;
mod publisher;
mod status;
pub mod tenants;
#[cfg(test)]
mod tests;

pub use attained::Attained;
pub use changed::{is_worth_writing, turned_bad};
pub use history::History;
pub use metrics::{Board, Shown, ShownRun};
pub use publisher::{PublishError, StatusPublisher};
pub use status::status;

use crate::observe::SeenModel;
use flyball_core::decision::{Decision, ModelDecision};
use flyball_core::invariants::Violation;
use flyball_core::snapshot::{Model, Snapshot};

/// What a status is made of.
#[derive(Clone, Debug)]
pub struct StatusContext<'a> {
    /// The picture that was decided on.
    pub snapshot: &'a Snapshot,
    /// What was decided about everything.
    pub decision: &'a Decision,
    /// Which rules it, or its writes, would have broken.
    pub broken: &'a [Violation],
    /// The model as it is stored, and what is wrong with it.
    pub seen: &'a SeenModel,
    /// The model in the picture, if it is there.
    pub model: Option<&'a Model>,
    /// What was decided about it.
    pub decided: Option<&'a ModelDecision>,
    /// Requests of the last hour that met the objectives, of a million.
    pub attained_per_million: Option<u32>,
    /// What was learnt and is to stand there from now on; otherwise what stands there stays.
    pub learnt: Option<String>,
}
