//! How well a choice of engines keeps prompts where their beginnings are cached, in virtual time.
//!
//! One trace, some engines, some gateways. A request comes to one gateway by chance; that gateway
//! chooses an engine from what it can know: what it sent itself, and what engines reported to all
//! gateways a moment ago. Nothing else passes between gateways.
//!
//! It knows no autoscaling and no faults: [`crate::cluster`] has those, with one gateway that knows
//! all. Start at [`play()`]; [`Router`] is what a choice must be able to do, `ours` is the real one,
//! `shadowed` the same with other policies scored beside it, `plain` and `tree` are what others do.

mod engines;
mod ours;
mod plain;
mod play;
mod shadowed;
mod sight;
#[cfg(test)]
mod tests;
mod tree;

pub use engines::AffinityEngine;
pub use ours::{Others, Ours};
pub use plain::{LeastLoad, Random, RoundRobin};
pub use play::{AffinityOutcome, AffinitySetup, play};
pub use shadowed::Shadowed;
pub use sight::{AffinityReport, AffinityView};
pub use tree::CacheAware;

use crate::seconds::Seconds;
use crate::traffic::Trace;

/// A request as a gateway sees it.
#[derive(Clone, Copy, Debug)]
pub struct PrefixRequest<'a> {
    /// Its number, which is its place in the trace.
    pub number: u64,
    /// When it came.
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
    fn choose(&mut self, request: &PrefixRequest<'_>, sight: &[AffinityView]) -> Picked;

    /// What became of a request that it sent. These come in the order of time.
    fn happened(&mut self, happened: &Happened) {
        let _ = happened;
    }
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Happened {
    /// Its number.
    pub number: u64,
    /// When.
    pub at: Seconds,
    /// Tokens of its answer if it is over; none if its first token came.
    pub output: Option<u32>,
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
