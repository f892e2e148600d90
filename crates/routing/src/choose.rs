//! The choice itself.

use crate::affinity::{for_each_candidate, score};
use crate::cost::{load, with};
use crate::endpoint::{Ask, Endpoint, Weights};
use std::cmp::Reverse;

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its place in the list of endpoints.
    pub endpoint: usize,
    /// Why it won.
    pub why: Why,
}

/// Why an endpoint won.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It was the cheapest of those that may have the prompt's beginning in their cache.
    Affinity {
        /// Leading blocks that it may have.
        blocks: u32,
    },
    /// Those that may have the beginning were overloaded, so the least loaded of all was taken.
    Overload,
    /// The prompt has no beginning to go by, so the least loaded was taken.
    LeastLoad,
}

/// The endpoint for a request; `None` if none serves.
///
/// The same arguments give the same choice, and the order of the list matters only between
/// endpoints of the same name.
pub fn choose(endpoints: &[Endpoint], ask: &Ask<'_>, weights: &Weights) -> Option<Choice> {
    let least = least_loaded(endpoints, ask, weights)?;
    let Some(near) = cheapest_candidate(endpoints, ask, weights) else {
        return Some(Choice { endpoint: least, why: Why::LeastLoad });
    };
    if load(&endpoints[near.endpoint], weights) > bound(endpoints, weights) {
        return Some(Choice { endpoint: least, why: Why::Overload });
    }
    Some(near)
}

/// The load above which an endpoint is not chosen for its cache.
pub(crate) fn bound(endpoints: &[Endpoint], weights: &Weights) -> u64 {
    let serving = endpoints.iter().filter(|endpoint| endpoint.serves());
    let (count, total) = serving.fold((0_u64, 0_u64), |(count, total), endpoint| {
        (count + 1, total.saturating_add(load(endpoint, weights)))
    });
    let mean = total / count.max(1);
    let most = mean.saturating_mul(u64::from(weights.overload_per_thousand)) / 1_000;
    most.saturating_add(weights.slack.get())
}

fn least_loaded(endpoints: &[Endpoint], ask: &Ask<'_>, weights: &Weights) -> Option<usize> {
    let serving = endpoints.iter().enumerate().filter(|(_, endpoint)| endpoint.serves());
    let order = |(_, endpoint): &(usize, &Endpoint)| {
        (with(endpoint, ask, weights, 0), Reverse(score(ask.key, endpoint.key)), endpoint.key)
    };
    serving.min_by_key(order).map(|(place, _)| place)
}

fn cheapest_candidate(endpoints: &[Endpoint], ask: &Ask<'_>, weights: &Weights) -> Option<Choice> {
    // Of two that cost the same, the first that is visited: of the deepest prefix, by score.
    let mut best: Option<(u64, Choice)> = None;
    for_each_candidate(endpoints, ask, weights.candidates_per_depth, |candidate| {
        let cost = with(&endpoints[candidate.endpoint], ask, weights, candidate.blocks);
        if best.is_none_or(|(least, _)| cost < least) {
            let why = Why::Affinity { blocks: candidate.blocks };
            best = Some((cost, Choice { endpoint: candidate.endpoint, why }));
        }
    });
    best.map(|(_, choice)| choice)
}
