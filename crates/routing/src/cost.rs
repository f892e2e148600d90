//! What it costs to give a request to an endpoint, in prompt tokens at common speed.

use crate::endpoint::{Ask, Endpoint, Weights};

/// What an endpoint already has to do.
pub(crate) fn load(endpoint: &Endpoint, weights: &Weights) -> u64 {
    let unread = endpoint.unread.get().saturating_add(endpoint.sent_since.get());
    let held = share(endpoint.held.get(), weights.held_per_thousand);
    at_speed(unread.saturating_add(held), endpoint)
}

/// What it would have to do with this request too, if it has so many leading blocks cached.
pub(crate) fn with(endpoint: &Endpoint, ask: &Ask<'_>, weights: &Weights, blocks: u32) -> u64 {
    let likely = blocks.min(ask.seen_blocks.unwrap_or(u32::MAX));
    let tokens = |blocks: u32| u64::from(blocks) * u64::from(ask.block_tokens);
    let hoped = share(tokens(likely), weights.belief_per_thousand);
    let saved = tokens(endpoint.cached_blocks).max(hoped).min(ask.prompt.get());
    let to_read = ask.prompt.get() - saved;
    let to_hold = ask.prompt.get().saturating_add(ask.expected_output.get());
    let held = share(to_hold, weights.held_per_thousand);
    load(endpoint, weights).saturating_add(at_speed(to_read.saturating_add(held), endpoint))
}

fn share(tokens: u64, per_thousand: u32) -> u64 {
    tokens.saturating_mul(u64::from(per_thousand)) / 1_000
}

fn at_speed(tokens: u64, endpoint: &Endpoint) -> u64 {
    match endpoint.speed_per_thousand {
        // The common case, without a division.
        1_000 => tokens,
        speed => tokens.saturating_mul(1_000) / u64::from(speed.max(1)),
    }
}
