//! Which policy would have been better: policies are scored on live traffic without choosing by it.
//!
//! Every policy, the live one among them, gets a small fleet of its own that exists only on paper
//! ([`Shadow`]): each engine has prompts yet to read, a cache of block prefixes and tokens held. A
//! request is given to each of these fleets, and each says how long the first token would have
//! taken. The *regret* of not having used a policy is what the live policy's paper fleet says less
//! what that policy's says, request by request. Both are predictions of the same model, so that most
//! of its errors cancel; and `Report::error` says how far the live one's are from what was
//! measured, so that the reader knows what the report is worth.
//!
//! What the paper engines are like is learned from the real ones (`learner`): from the times at which
//! first tokens came behind each other, from the ends of answers, and from the share of the cache
//! that engines report as used. `live` keeps the real requests until then.
//!
//! It does not know: batching beyond a line (seconds per prompt and per token), the wait for room in
//! a full cache, preemption, hang-ups, retries, and what other gateways send, which shows only as
//! slower engines. So it is right about who is better where policies differ in hits or in balance,
//! and its seconds are worth what `error` says.
//!
//! Memory per model, with three policies: four sets of caches of 2^19 blocks at 20 bytes (40 MiB),
//! three memories of prompts (1.5 MiB), requests on paper (three times 2^16 at 40 bytes in lists that
//! may be half empty, 15 MiB), real ones (2^14 at 80 bytes in a tree, 2 MiB), and a few KiB of sums:
//! 59 MiB at most. Caches take only what the engines have: 16 engines with 2.8 million tokens each are
//! 14 MiB.
//!
//! It knows no clock: time comes with each call. Start at `Trial`.

mod batches;
mod cache;
mod engine;
mod fleet;
mod learner;
mod live;
mod report;
#[cfg(test)]
mod tests;
mod trial;

pub use fleet::{PredictedChoice, Shadow};
pub use learner::LearningRates;
pub use report::{ShadowReport, ShadowStatus};
pub use trial::ShadowTrial;

use flyball_core::units::Tokens;

/// A request as it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShadowArrival<'a> {
    /// Hashes of the prompt's leading blocks, each over everything up to its block's end.
    pub prefixes: &'a [u64],
    /// Tokens in a block.
    pub block_tokens: u32,
    /// Tokens of the whole prompt.
    pub prompt: Tokens,
    /// The most tokens that it may generate.
    pub output: Tokens,
    /// A number of the request's own.
    pub key: u64,
}

/// An engine that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name as a number.
    pub key: u64,
    /// Whether it may get requests.
    pub open: bool,
}

/// The most engines of a model that is scored. With more, their paper caches would be too small to
/// say anything.
pub const ENGINES: usize = 1_024;

/// Blocks in the caches of all engines of one policy: 134 million tokens in blocks of 256, or 48
/// engines with a 70B model on eight H200. Where engines have more, paper caches are smaller than real
/// ones.
const BLOCKS: usize = 1 << 19;

/// Requests under way in one paper fleet. Those beyond are taken to have ended.
const UNDER_WAY: usize = 1 << 16;

/// Real requests whose first token or end is awaited. The oldest beyond are forgotten.
const AWAITED: usize = 1 << 14;
