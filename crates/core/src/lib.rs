//! The words every part of Flyball shares, and the values that cross its borders.
//!
//! A [`snapshot::Snapshot`] goes into a decision, a [`decision::Decision`] comes out, and
//! [`invariants`] say what must hold between the two. Everything else here serves those three:
//! numbers with units, validated names, intervals, quantiles, and the closed list of reasons.
//!
//! This crate does no I/O and knows no clock, no randomness, no Kubernetes client and no
//! serialised form. `now` is always an argument, and maps are ordered, so the same input gives
//! the same output in production, in recommendations and in the simulator. Decision types cannot
//! be serialised on purpose: stored and sent forms live elsewhere and convert.
//!
//! Start reading at [`snapshot`], then [`decision`], then [`invariants`].

#![deny(missing_docs)]

mod closed;
pub mod decision;
pub mod ids;
pub mod interval;
pub mod invariants;
pub mod pooling;
pub mod quantile;
pub mod reason;
pub mod snapshot;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod units;
