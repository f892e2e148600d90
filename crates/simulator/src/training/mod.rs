//! One training run in virtual time, on recorded spot machines at recorded prices, under our decisions and under others'.
//!
//! [`recording`] and [`prices`] read public files, [`market`] makes of them what a run can buy, [`replay`] plays a run
//! under a [`policy`] (ours in [`ours`], others in [`rivals`]), and [`optimum`] is what somebody would have paid who knew
//! the future. [`intervals`] asks only how often to save, [`preempted`] only whom to preempt, [`elastic`] how many
//! machines to have.
//!
//! Machines come and go at the steps of the recording; a reclaim comes without notice and takes what is not saved. Every
//! policy sees the past alone: prices and availability up to now. On-demand machines can always be had, which no recording
//! says. Start at [`replay::play`].

pub mod elastic;
pub mod intervals;
pub mod market;
pub mod optimum;
pub mod ours;
pub mod policy;
pub mod preempted;
pub mod prices;
pub mod recording;
pub mod replay;
pub mod rivals;
#[cfg(test)]
mod tests;

pub use market::SpotMarket;
pub use replay::{ReplayedRun, RunToReplay, play};
