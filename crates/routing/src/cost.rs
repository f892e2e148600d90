//! What it costs to give a request to an endpoint, in prompt tokens at common speed.

use crate::endpoint::{Endpoint, RoutingRequest, Weights};

/// What an endpoint already has to do.
pub(crate) fn load(endpoint: &Endpoint, weights: &Weights) -> u64 {
    let held = share(endpoint.held.get(), weights.held_per_thousand);
    let used = u64::from(endpoint.kv_used_per_thousand.min(999));
    let pressure = weights.half_full.get().saturating_mul(used) / (1_000 - used);
    let all = endpoint.unread.get().saturating_add(held).saturating_add(pressure);
    at_speed(all, endpoint)
}

/// What it costs there, if so many tokens of the prompt are hoped to be cached.
pub(crate) fn with(
    endpoint: &Endpoint,
    ask: &RoutingRequest<'_>,
    weights: &Weights,
    hoped: u64,
) -> u64 {
    let known = u64::from(endpoint.cached_blocks) * u64::from(ask.block_tokens);
    let to_read = ask.prompt.get().saturating_sub(known.max(hoped));
    let missed = at_speed(to_read.saturating_mul(u64::from(weights.miss)), endpoint);
    load(endpoint, weights).saturating_add(missed)
}

pub(crate) fn share(tokens: u64, per_thousand: u32) -> u64 {
    tokens.saturating_mul(u64::from(per_thousand)) / 1_000
}

fn at_speed(tokens: u64, endpoint: &Endpoint) -> u64 {
    match endpoint.speed_per_thousand {
        // The common case, without a division.
        1_000 => tokens,
        speed => tokens.saturating_mul(1_000) / u64::from(speed.max(1)),
    }
}
