//! The engine of one replica in virtual time: which requests run in which step, and when that ends.
//!
//! It follows vLLM's scheduler (version 1): running requests come first, then waiting ones in order
//! of arrival while tokens and blocks last; long prompts are computed in chunks beside the tokens of
//! others; who arrived last gives its blocks back when they run out, and computes again. Blocks of
//! prompts stay cached until somebody needs the room, the longest unused first.
//!
//! What it does not know: what a step costs (that is `flyball_perf::serving::batch::Step`), where
//! requests come from, and that there are other replicas. Token values do not exist; a prompt's
//! beginning is known by the names of its blocks.
//!
//! Start at `Engine`: it keeps the time. [`Scheduler`] decides what is in a step and keeps the sums
//! over it, so that a step costs what changes and not what runs. `flight` sums many equal steps in
//! one go. `blocks` is the cache, `holding` what one request has of it.

mod blocks;
mod clock;
pub mod compare;
mod flight;
mod holding;
mod roster;
mod scheduler;
#[cfg(test)]
mod tests;

pub use blocks::BlockChange;
pub use clock::SimulatedEngine;
pub use scheduler::Scheduler;

use crate::seconds::Seconds;

/// Limits of one engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EngineSettings {
    /// Requests that run at once (`max_num_seqs`).
    pub max_running: u32,
    /// Maximum tokens per step (`max_num_batched_tokens`).
    pub token_budget: u32,
    /// Blocks of the cache.
    pub blocks: u32,
    /// Tokens in one block.
    pub block_tokens: u32,
    /// Whether blocks of ended requests are found again.
    pub prefix_caching: bool,
    /// Whether a step is put together while the one before it still runs. The host's work is then
    /// hidden, and a new request waits for one step more.
    pub ahead: bool,
}

impl EngineSettings {
    /// vLLM's defaults since 0.14 (scheduling ahead), with so many blocks of 16 tokens.
    pub const fn vllm(max_running: u32, token_budget: u32, blocks: u32) -> Self {
        let (block_tokens, prefix_caching, ahead) = (16, true, true);
        Self { max_running, token_budget, blocks, block_tokens, prefix_caching, ahead }
    }
}

/// How time goes on. Both give the same events at the same times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Every step is evaluated.
    StepByStep,
    /// Steps between two changes of the batch are summed.
    Skipping,
}

/// A request as it reaches the engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival<'a> {
    /// When.
    pub at: Seconds,
    /// Tokens of its prompt.
    pub prompt: u32,
    /// Tokens that it will generate.
    pub output: u32,
    /// Names of its prompt's blocks from the beginning; empty if it shares nothing.
    pub names: &'a [u64],
    /// Tokens that one name stands for.
    pub name_tokens: u32,
}

impl Arrival<'_> {
    /// One that shares nothing.
    pub const fn plain(at: Seconds, prompt: u32, output: u32) -> Self {
        Self { at, prompt, output, names: &[], name_tokens: 0 }
    }
}

/// Something that happened to a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// The caller's number of the request.
    pub id: u64,
    /// When.
    pub at: Seconds,
    /// What.
    pub what: What,
}

/// What can happen to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It is in a step, with so many tokens found in the cache. Again after each preemption.
    Scheduled {
        /// Tokens that need not be computed.
        cached: u32,
    },
    /// Its first token is there.
    FirstToken,
    /// Its last token is there.
    Finished,
    /// Its blocks were needed; it waits again, before all others.
    Preempted,
    /// Its client hung up.
    Aborted,
}

/// What a router and a metrics page see of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SimulatedLoad {
    /// Requests in the batch.
    pub running: u32,
    /// Requests before it.
    pub waiting: u32,
    /// Prompt tokens that are not computed yet.
    pub waiting_tokens: u64,
    /// Blocks that can be had, cached or not.
    pub free_blocks: u32,
    /// Share of the blocks that running requests hold.
    pub used_share: f64,
    /// Tokens generated since the start.
    pub generated: u64,
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineTally {
    /// Steps taken.
    pub steps: u64,
    /// Times that the step's time was computed.
    pub evaluations: u64,
    /// Requests that lost their blocks.
    pub preemptions: u64,
    /// Prompt tokens computed.
    pub computed_tokens: u64,
    /// Prompt tokens found in the cache.
    pub cached_tokens: u64,
    /// Tokens generated.
    pub generated: u64,
}

/// Why a request was not taken: prompt and answer are longer than the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a request of {tokens} tokens does not fit into a cache of {room} tokens; hint: enlarge the cache or shorten the request"
)]
pub struct TooLong {
    /// Prompt and answer.
    pub tokens: u64,
    /// Tokens that fit.
    pub room: u64,
}
