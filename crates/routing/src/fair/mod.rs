//! Whose turn it is: one queue for all callers of a model, fair in the cost of GPU time.
//!
//! - [`FairQueue`] is a deficit round robin (Shreedhar and Varghese 1995) over callers, in classes of
//!   strict priority. What a request costs is a guess until it ends; the difference is charged then.
//! - [`Cost`] is what a request costs: prompt tokens that had to be read, tokens written, and the
//!   cache held meanwhile.
//! - [`Shares`] says who has lately had more than its share while others wanted something too, and
//!   [`shard_edge`] which engines such a caller keeps to.
//! - [`AdmissionWindow`] is how much an engine may be given at once, learned from what it reports.
//! - [`BatchRule`] says when the class batch has a turn, and [`least_lost`] what of it makes room for others.
//! - [`EngineCapacity`] is what an engine bears, so that batch leaves some of it free.

mod batch;
mod capacity;
mod cost;
mod queue;
mod shares;
#[cfg(test)]
mod tests;
mod window;

pub use batch::{BatchRoom, BatchRule, BatchRun, Bursts, least_lost};
pub use capacity::EngineCapacity;
pub use cost::Cost;
pub use queue::{Class, FairQueue, QueuedRequest, Ticket};
pub use shares::{Shares, in_shard, shard_edge};
pub use window::{AdmissionWindow, Reported};
