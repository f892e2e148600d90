//! The fleet that a policy would have had.

use super::engine::Engine;
use super::learner::LearningRates;
use super::{BLOCKS, Listed, ShadowArrival, UNDER_WAY};
use crate::endpoint::{RoutingRequest, Weights};
use crate::policy::RoutingPolicy;
use crate::ring::Ring;
use crate::seen::ObservedEndpoints;
use flyball_core::units::Tokens;
use std::time::Duration;

/// The fleet that one policy would have had.
#[derive(Clone, Debug)]
pub struct Shadow {
    policy: RoutingPolicy,
    ring: Ring,
    engines: Vec<Engine>,
    seen: ObservedEndpoints,
    turn: u64,
    /// Time goes on only.
    now: f64,
}

/// What would have become of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictedChoice {
    /// From its arrival to its first token.
    pub first: Duration,
    /// Prompt tokens that would have been cached.
    pub cached: Tokens,
}

/// Prefixes that a gateway remembers per model.
const SEEN_PREFIXES: usize = 65_536;

impl Shadow {
    /// One without engines.
    pub fn new(policy: RoutingPolicy) -> Self {
        let seen = ObservedEndpoints::new(SEEN_PREFIXES);
        let (ring, engines) = (Ring::default(), Vec::new());
        Self { policy, ring, engines, seen, turn: 0, now: 0.0 }
    }

    /// Whose it is.
    pub const fn policy(&self) -> RoutingPolicy {
        self.policy
    }

    /// These engines are there now. Those that stay keep what they have.
    pub fn list(&mut self, engines: &[Listed], rates: &LearningRates) {
        let same = self.engines.iter().map(|engine| engine.key).eq(engines.iter().map(|e| e.key));
        let mut before = std::mem::take(&mut self.engines);
        let blocks = cache_blocks(rates, engines.len());
        for listed in engines {
            let old = before.iter().position(|old| old.key == listed.key);
            let mut engine = match old {
                Some(place) => before.swap_remove(place),
                None => Engine::new(listed.key, blocks),
            };
            engine.open = listed.open;
            self.engines.push(engine);
        }
        if !same {
            self.ring = Ring::new(self.engines.iter().map(|engine| engine.key));
        }
        self.fit(rates);
    }

    /// Gives caches the size that is known by now, if it is far from the one that they have.
    pub fn fit(&mut self, rates: &LearningRates) {
        let blocks = cache_blocks(rates, self.engines.len());
        self.engines.iter_mut().for_each(|engine| engine.cache.fit(blocks));
    }

    /// A request arrives, so long after any fixed moment. What would have become of it; `None` if
    /// no engine is open.
    pub fn arrive(
        &mut self,
        at: Duration,
        arrival: &ShadowArrival<'_>,
        rates: &LearningRates,
    ) -> Option<PredictedChoice> {
        self.now = self.now.max(at.as_secs_f64());
        self.engines.iter_mut().for_each(|engine| engine.pass(self.now));
        let ask = RoutingRequest {
            prefixes: arrival.prefixes,
            block_tokens: arrival.block_tokens,
            past: self.seen.past_of(arrival.prefixes, self.engines.len()),
            prompt: arrival.prompt,
            key: arrival.key,
        };
        let (engines, turn) = (&self.engines, &mut self.turn);
        let of = |place: usize| engines[place].view(rates);
        let next = || {
            *turn += 1;
            *turn
        };
        let choice = self.policy.choose(&self.ring, of, &ask, &Weights::DEFAULT, next)?;
        let most = (UNDER_WAY / self.engines.len().max(1)).max(1);
        let engine = &mut self.engines[choice.endpoint];
        self.seen.sent(arrival.prefixes, engine.key);
        let given = engine.give(self.now, arrival, choice.to_read.get(), rates, most);
        let first = Duration::try_from_secs_f64(given.first_seconds).unwrap_or_default();
        Some(PredictedChoice { first, cached: Tokens::new(given.cached) })
    }
}

/// Blocks of one engine's cache, if so many engines share what there may be on paper.
pub(super) fn cache_blocks(rates: &LearningRates, engines: usize) -> usize {
    let blocks = (rates.cache_tokens / rates.block_tokens.max(1.0)) as usize;
    blocks.clamp(1, BLOCKS / engines.max(1))
}
