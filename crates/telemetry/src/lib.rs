//! Sets up what the running parts say about themselves: logs, metric names, traces.
//!
//! Every part of Flyball takes its log format and its metric names from here, so that a person
//! finds the same words everywhere and a renamed metric is one change in one file. Health is
//! not here yet.
//!
//! This crate does no product logic: it does not know what is decided, served or paid for, only
//! the closed lists of words from `flyball-core` that become label values.
//!
//! Start reading at [`metrics`]; [`logs`] is called once, first thing in `main`.

#![deny(missing_docs)]

pub mod logs;
pub mod metrics;
pub mod traces;
