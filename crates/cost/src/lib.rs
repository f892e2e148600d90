//! What GPUs cost, who used them for what, and what follows from it.
//!
//! [`attribute`] turns the time of nodes and the work of a bucket of time into [`row::CostRow`]s whose sums are exact;
//! [`sums`] checks that they are. Everything else reads such rows or the prices behind them: [`report`] groups them,
//! [`focus`] writes them as FOCUS 1.4, [`bill`] holds them against what a cloud has billed, [`commitments`] says what to
//! reserve, [`energy`] what was drawn from the wall. [`drift`] watches what comes through the gateway.
//!
//! This crate opens no file and knows no clock: rows, texts and `now` are arguments. It does not know how rows are
//! stored. A price that is missing is unknown and never zero, and each sum says for how many GPU-hours. Start at
//! [`attribute`].

pub mod attribute;
pub mod bill;
pub mod civil;
pub mod commitments;
pub mod drift;
pub mod energy;
pub mod focus;
pub mod money;
pub mod price;
pub mod report;
pub mod row;
pub mod split;
pub mod sums;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod uses;
