//! Asks routing for an engine, with what this gateway knows.

use crate::admit::{BYTES_PER_TOKEN, Scale, Turn};
use crate::scan::{BLOCK_BYTES, Scanned};
use flyball_core::units::Tokens;
use flyball_fleet::{FleetEndpoint, FleetModel, Millis, Time};
use flyball_routing::shadow::ShadowArrival;
use flyball_routing::{
    Availability, EndpointPast, RoutingChoice, RoutingPolicy, RoutingRequest, Weights, Why,
};
use std::sync::Arc;
use std::time::Instant;

/// Tokens in a block of affinity of text that nobody has counted.
pub(crate) const BLOCK_TOKENS: u32 = (BLOCK_BYTES as u64 / BYTES_PER_TOKEN) as u32;

/// Tokens of an answer, if nobody said the most: about the mean of chat traffic in the Azure traces
/// (211 to 300).
const USUAL_OUTPUT: u64 = 256;

/// An engine for a request.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) endpoint: Arc<FleetEndpoint>,
    /// Leading blocks that it hopefully has cached; `None` if it was chosen by load.
    pub(crate) hoped_blocks: Option<u32>,
    /// Prompt tokens that it will have to read.
    pub(crate) to_read: u64,
    /// Tokens that it will hold in the end.
    pub(crate) to_hold: u64,
}

/// What is asked for each time that an engine is chosen for a request.
pub(crate) struct RoutingQuery<'a> {
    model: &'a FleetModel,
    policy: RoutingPolicy,
    prefixes: &'a [u64],
    past: EndpointPast,
    prompt: u64,
    block_tokens: u32,
    usual_prompt: u64,
    output: u64,
    key: u64,
}

impl<'a> RoutingQuery<'a> {
    /// Of this request; it is remembered as seen.
    pub(crate) fn new(
        model: &'a FleetModel,
        scale: &Scale,
        policy: RoutingPolicy,
        scanned: &'a Scanned,
        key: u64,
    ) -> Self {
        let prefixes = &scanned.prefixes;
        let forgot = |place: usize| model.endpoints[place].forgot();
        let past = model.seen().past_at(prefixes, &model.ring, forgot);
        let prompt = scale.prompt(scanned, 0).tokens;
        let block_tokens = scale.block_tokens(scanned);
        let usual_prompt = model.prompt(prompt);
        let most = scanned.max_tokens.unwrap_or(USUAL_OUTPUT);
        let output = most.saturating_mul(scanned.answers.unwrap_or(1)).min(1 << 20);
        Self { model, policy, prefixes, past, prompt, block_tokens, usual_prompt, output, key }
    }

    /// The same, for policies that only watch.
    pub(crate) fn arrival(&self) -> ShadowArrival<'a> {
        ShadowArrival {
            prefixes: self.prefixes,
            block_tokens: self.block_tokens,
            prompt: Tokens::new(self.prompt),
            output: Tokens::new(self.output),
            key: self.key,
        }
    }

    /// The engine, other than those tried before; `None` if there is none. Those that the turn allows
    /// come first: it was given because there was one, but that may have changed.
    ///
    /// If breakers keep everything closed, they are not asked: trying is better than refusing.
    pub(crate) fn choose(&self, tried: &[u32], now: Time, turn: Option<&Turn>) -> Option<Chosen> {
        let careful = |allows: &dyn Fn(&FleetEndpoint) -> bool| {
            let usable = |e: &FleetEndpoint| {
                e.breaker.allows(now.millis) && !tried.contains(&e.slot) && allows(e)
            };
            let chosen = self.ask(usable, now.at)?;
            chosen.endpoint.breaker.claim(now.millis).then_some(chosen)
        };
        let allowed = |e: &FleetEndpoint| turn.is_none_or(|turn| turn.allows(e, now.at));
        // Several turns may have been given for one place. Who floods stays with its engines even so.
        let keeps_to = |e: &FleetEndpoint| turn.is_none_or(|turn| turn.keeps_to(e));
        let any = |_: &FleetEndpoint| true;
        // One of them more for a race lost in `claim`.
        let chosen = careful(&allowed)
            .or_else(|| careful(&keeps_to))
            .or_else(|| careful(&any))
            .or_else(|| careful(&any))
            .or_else(|| self.ask(|e| !tried.contains(&e.slot), now.at))?;
        self.went_to(&chosen, now.millis);
        Some(chosen)
    }

    /// Remembers where its prompt went.
    pub(crate) fn went_to(&self, chosen: &Chosen, now: Millis) {
        self.model.used(self.prefixes, &chosen.endpoint, now);
    }

    /// Another engine for a request whose first one is slow, if one is thought to have as much of
    /// the prompt.
    pub(crate) fn second(&self, first: &Chosen, now: Time) -> Option<Chosen> {
        let endpoints = &self.model.endpoints;
        let place = endpoints.iter().position(|e| e.slot == first.endpoint.slot)?;
        let of = |place: usize| {
            let endpoint = &endpoints[place];
            let usable = endpoint.is_open() && endpoint.breaker.allows(now.millis);
            view(endpoint, usable, self.usual_prompt, now.at)
        };
        let (ring, weights) = (&self.model.ring, &Weights::DEFAULT);
        let choice = flyball_routing::second(ring, of, &self.request(), weights, place)?;
        let chosen = self.chosen(&choice);
        chosen.endpoint.breaker.claim(now.millis).then_some(chosen)
    }

    /// Tokens of the prompt, as far as bytes tell.
    pub(crate) const fn prompt(&self) -> u64 {
        self.prompt
    }

    /// Tokens that are written before the first byte comes.
    pub(crate) const fn to_write(&self, stream: bool) -> u64 {
        if stream { 0 } else { self.output }
    }

    /// Tokens that an engine has to read.
    pub(crate) fn unread(&self, endpoint: &FleetEndpoint, now: Instant) -> u64 {
        endpoint.load(self.usual_prompt, now).unread_tokens
    }

    fn ask(&self, usable: impl Fn(&FleetEndpoint) -> bool, now: Instant) -> Option<Chosen> {
        let endpoints = &self.model.endpoints;
        let of = |place: usize| {
            let endpoint = &endpoints[place];
            view(endpoint, endpoint.is_open() && usable(endpoint), self.usual_prompt, now)
        };
        let (ring, turn) = (&self.model.ring, || self.model.turn());
        let choice = self.policy.choose(ring, of, &self.request(), &Weights::DEFAULT, turn)?;
        Some(self.chosen(&choice))
    }

    /// What routing is told of it.
    fn request(&self) -> RoutingRequest<'_> {
        RoutingRequest {
            prefixes: self.prefixes,
            block_tokens: self.block_tokens,
            past: self.past,
            prompt: Tokens::new(self.prompt),
            key: self.key,
        }
    }

    fn chosen(&self, choice: &RoutingChoice) -> Chosen {
        let hoped_blocks = match choice.why {
            Why::Affinity { blocks } => Some(blocks),
            Why::Overload | Why::LeastLoad | Why::Turn => None,
        };
        Chosen {
            endpoint: Arc::clone(&self.model.endpoints[choice.endpoint]),
            hoped_blocks,
            to_read: choice.to_read.get(),
            to_hold: self.prompt + self.output,
        }
    }
}

fn view(
    endpoint: &FleetEndpoint,
    usable: bool,
    usual_prompt: u64,
    now: Instant,
) -> flyball_routing::Endpoint {
    let load = endpoint.load(usual_prompt, now);
    flyball_routing::Endpoint {
        key: endpoint.key,
        availability: if usable { Availability::Serving } else { Availability::Unhealthy },
        unread: Tokens::new(load.unread_tokens),
        held: Tokens::new(load.held_tokens),
        kv_used_per_thousand: load.kv_used_per_thousand,
        cached_blocks: 0,
        speed_per_thousand: 1_000,
    }
}
