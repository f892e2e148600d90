//! From a question to ranked answers: all layouts, what each carries and costs, and why not.
//!
//! `serve` sizes a service, `train` a run, and `fleet` puts several services on accelerators that are there. The
//! first two try all layouts of a stated family on every part, keep
//! what was rejected with its reason, and rank the rest by an objective, so that "why not?" has an
//! answer.

pub mod fleet;
pub mod layouts;
pub mod money;
pub mod part;
pub mod rejection;
pub mod sensitivity;
pub mod serve;
#[cfg(test)]
mod tests;
pub mod train;

pub use rejection::Rejection;
