//! sglang-router's `cache_aware`, from its description: one approximate tree per gateway.
//!
//! The tree remembers which engine got which beginning. Where engines are far apart in requests
//! under way, the one with the fewest gets the request. Else the engine with the longest match does,
//! if that is more than a share of the prompt, and else the one with the fewest. Of several engines
//! with the same match the last used is taken, which is the best for it. Its limit of 2^26
//! characters per tree is beyond what is played here.

use super::plain::least_in_flight;
use super::{AffinityView, Picked, PrefixRequest, Router};
use std::collections::BTreeMap;

/// One gateway with such a tree. Bounded by the trace.
#[derive(Clone, Debug, Default)]
pub struct CacheAware {
    /// The engine that got a prefix last.
    last: BTreeMap<u64, usize>,
}

/// Its defaults on the command line.
const MATCH: f64 = 0.3;
const APART: u32 = 64;
const APART_TIMES: f64 = 1.5;

impl Router for CacheAware {
    fn choose(&mut self, request: &PrefixRequest<'_>, sight: &[AffinityView]) -> Picked {
        let counts = || sight.iter().map(|engine| engine.in_flight);
        let (most, least) = (counts().max().unwrap_or(0), counts().min().unwrap_or(0));
        let apart = most - least > APART && f64::from(most) > APART_TIMES * f64::from(least);
        let matched = request.blocks.iter().map_while(|block| self.last.get(block));
        let (blocks, engine) =
            matched.enumerate().last().map_or((0, 0), |(place, engine)| (place + 1, *engine));
        let tokens = blocks as f64 * f64::from(request.block_tokens);
        let chosen = if !apart && tokens / f64::from(request.prompt.max(1)) > MATCH {
            engine
        } else {
            least_in_flight(sight)
        };
        self.last.extend(request.blocks.iter().map(|block| (*block, chosen)));
        Picked { engine: chosen, to_read: request.prompt }
    }
}
