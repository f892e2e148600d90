//! The real choices, `flyball_routing::Policy`, with what a gateway has for them.

use super::play::moment;
use super::{AffinityView, Happened, Picked, PrefixRequest, Router};
use flyball_core::units::Tokens;
use flyball_routing::{
    Availability, Endpoint, ObservedEndpoints, Ring, RoutingPolicy, RoutingRequest, Weights,
};
use std::collections::BTreeMap;

/// What a gateway knows of what others sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// What engines report: how many requests wait.
    Reported,
    /// What gateways tell each other as often as engines report: tokens that are still to be read.
    Shared,
}

/// One gateway with a real choice.
#[derive(Clone, Debug)]
pub struct Ours {
    ring: Ring,
    seen: ObservedEndpoints,
    weights: Weights,
    policy: RoutingPolicy,
    turn: u64,
    others: Others,
    pub(super) prefixes: Vec<u64>,
    /// Prompt tokens of a usual request.
    usual: f64,
    /// Requests under way with their prefixes and engines, if events about caches are heard.
    under_way: Option<BTreeMap<u64, (Vec<u64>, u64)>>,
}

/// Tokens in a block of the real gateway, which hashes 1,024 bytes of text.
pub(super) const BLOCK: u32 = 256;

/// Prefixes that a gateway remembers: half a megabyte, and 3,000 prompts of 12,000 tokens.
const REMEMBERED: usize = 65_536;

/// A new prompt moves the mean by one part in so many.
const PATIENCE: f64 = 64.0;

impl Ours {
    /// A gateway before so many engines, with the default policy and weights.
    pub fn new(engines: usize, others: Others) -> Self {
        Self {
            ring: Ring::new((0..engines as u64).map(name)),
            seen: ObservedEndpoints::new(REMEMBERED),
            weights: Weights::DEFAULT,
            policy: RoutingPolicy::Prefix,
            turn: 0,
            others,
            prefixes: Vec::new(),
            usual: 0.0,
            under_way: None,
        }
    }

    /// The same with another policy.
    #[must_use]
    pub fn choosing(self, policy: RoutingPolicy) -> Self {
        Self { policy, ..self }
    }

    /// The same, and it hears what engines tell about their caches.
    #[must_use]
    pub fn hearing(self) -> Self {
        Self { under_way: Some(BTreeMap::new()), ..self }
    }

    /// The same with other weights.
    #[must_use]
    pub fn weighing(self, weights: Weights) -> Self {
        Self { weights, ..self }
    }

    /// The blocks of the real gateway are shorter than those of the trace.
    fn read_prefixes(&mut self, request: &PrefixRequest<'_>) {
        let parts = u64::from((request.block_tokens / BLOCK).max(1));
        let full = (request.prompt / BLOCK) as usize;
        let names = request.blocks.iter().flat_map(|name| (0..parts).map(move |part| (name, part)));
        let mut chain = 0_u64;
        let prefixes = names.map(|(name, part)| {
            // An odd multiplier and a turn: enough to tell chains of small numbers apart.
            chain = (chain.rotate_left(5) ^ (name * parts + part + 1))
                .wrapping_mul(0x9e37_79b9_7f4a_7c15);
            chain
        });
        self.prefixes.clear();
        self.prefixes.extend(prefixes.take(full));
    }
}

impl Router for Ours {
    fn choose(&mut self, request: &PrefixRequest<'_>, sight: &[AffinityView]) -> Picked {
        self.read_prefixes(request);
        self.usual += (f64::from(request.prompt) - self.usual) / PATIENCE;
        let follows = self.under_way.is_some();
        let forgot = |place: usize| sight[place].forgot.filter(|_| follows);
        let ask = RoutingRequest {
            prefixes: &self.prefixes,
            block_tokens: BLOCK,
            past: self.seen.past_at(&self.prefixes, &self.ring, forgot),
            prompt: Tokens::new(request.prompt.into()),
            key: request.number,
        };
        let (others, usual) = (self.others, self.usual);
        let endpoint = |place: usize| view(place, &sight[place], others, usual);
        self.turn += 1;
        let (policy, turn) = (self.policy, self.turn);
        let choice = policy.choose(&self.ring, endpoint, &ask, &self.weights, || turn);
        let Some(choice) = choice else {
            return Picked { engine: 0, to_read: request.prompt };
        };
        let key = name(choice.endpoint as u64);
        self.seen.sent_at(&self.prefixes, key, moment(request.at));
        if let Some(under_way) = &mut self.under_way {
            under_way.insert(request.number, (self.prefixes.clone(), key));
        }
        Picked { engine: choice.endpoint, to_read: choice.to_read.get() as u32 }
    }

    fn happened(&mut self, happened: &Happened) {
        if happened.output.is_none() {
            return;
        }
        let over = self.under_way.as_mut().and_then(|all| all.remove(&happened.number));
        if let Some((prefixes, key)) = over {
            self.seen.sent_at(&prefixes, key, moment(happened.at));
        }
    }
}

fn view(place: usize, engine: &AffinityView, others: Others, usual: f64) -> Endpoint {
    let strangers = match others {
        Others::Reported => {
            let waiting = engine.report.waiting.saturating_sub(engine.unread_then);
            (f64::from(waiting) * usual) as u64
        }
        Others::Shared => engine.report.unread_tokens - engine.unread_tokens_then,
    };
    Endpoint {
        key: name(place as u64),
        availability: Availability::Serving,
        unread: Tokens::new(engine.unread_tokens + strangers),
        held: Tokens::new(engine.held_tokens),
        kv_used_per_thousand: (engine.report.used_share * 1e3) as u32,
        cached_blocks: 0,
        speed_per_thousand: 1_000,
    }
}

/// The key of an engine, as a hash of its name would be.
pub(super) const fn name(engine: u64) -> u64 {
    (engine + 1).wrapping_mul(0xd6e8_feb8_6659_fd93)
}
