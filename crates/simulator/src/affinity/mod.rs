//! How well a choice of engines keeps prompts where their beginnings are cached, in virtual time.
//!
//! One trace, some engines, some gateways. A request comes to one gateway by chance; that gateway
//! chooses an engine from what it can know: what it sent itself, and what engines reported to all
//! gateways a moment ago. Nothing else passes between gateways.
//!
//! It knows no autoscaling and no faults: [`crate::cluster`] has those, with one gateway that knows
//! all. Start at [`play()`]; [`Router`] is what a choice must be able to do, `ours` is the real one,
//! `plain` and `tree` are what others do.

mod engines;
mod ours;
mod plain;
mod play;
mod sight;
#[cfg(test)]
mod tests;
mod tree;

pub use engines::Kind;
pub use ours::{Others, Ours};
pub use plain::{LeastLoad, Random, RoundRobin};
pub use play::{Outcome, Setup, play};
pub use sight::{Report, Sight};
pub use tree::CacheAware;

use crate::seconds::Seconds;
use crate::traffic::Trace;

/// A request as a gateway sees it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Its number, which is its place in the trace.
    pub number: u64,
    /// When it comes.
    pub at: Seconds,
    /// Tokens of its prompt.
    pub prompt: u32,
    /// Tokens that it will generate. No gateway knows them before.
    pub output: u32,
    /// Names of its blocks, each standing for everything up to its end.
    pub blocks: &'a [u64],
    /// Tokens in a block.
    pub block_tokens: u32,
}

/// Where a request goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Picked {
    /// The place of the engine.
    pub engine: usize,
    /// Prompt tokens that it is thought to have to read.
    pub to_read: u32,
}

/// The choice of one gateway.
pub trait Router {
    /// The engine for a request among those in `sight`, which is never empty.
    fn choose(&mut self, asked: &Asked<'_>, sight: &[Sight]) -> Picked;

    /// A request that it sent is over.
    fn finished(&mut self, number: u64, at: Seconds) {
        let _ = (number, at);
    }
}

/// Share of all prompt tokens that a cache without end, shared by all engines, would have had.
/// The last token of a prompt is always computed.
pub fn infinite_hit_share(trace: &Trace) -> f64 {
    let shared = crate::traffic::reuse::shared(trace);
    let tokens = |blocks: u32| u64::from(blocks) * u64::from(trace.block_tokens);
    let both = shared.iter().zip(&trace.requests);
    let found = both.map(|(s, r)| tokens(s.blocks).min(u64::from(r.prompt.saturating_sub(1))));
    let all: u64 = trace.requests.iter().map(|request| u64::from(request.prompt)).sum();
    found.sum::<u64>() as f64 / all.max(1) as f64
}
