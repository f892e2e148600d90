//! Numbers with units: no bare number crosses a border.
//!
//! Counts are unsigned integers, so they cannot be negative. Durations and points in time are
//! integer microseconds, because a gateway adds less than a millisecond and a decode step takes a
//! few. Money is integer millionths with its currency, and mixing currencies is an error. There are
//! no arithmetic operators: `checked_` and `saturating_` methods make the behaviour at the edge
//! visible where it is used, and nothing here panics on overflow.
//!
//! This module does not know what time it is, nor any exchange rate.
//! Start at `counts.rs` for the methods that all counts share, then `money.rs`.

mod counts;
mod money;
#[cfg(test)]
mod tests;
mod time;

pub use counts::{Bytes, Gpus, MilliReplicas, Replicas, Requests, Tokens, TokensPerSecond};
pub use money::{Currency, GpuMicros, Money, MoneyError, Price};
pub use time::{Micros, Timestamp};
