//! What a choice of an engine costs where there are many, against where there are few.
//!
//! As ratios: how fast a machine is promises nothing, how cost grows does. Each time is the best of many
//! short runs, in processor time.

use crate::pace::processor_seconds;
use flyball_core::units::Tokens;
use flyball_routing::shadow::{Listed, ShadowArrival, ShadowTrial};
use flyball_routing::{
    Availability, Endpoint, ObservedEndpoints, Ring, RoutingPolicy, RoutingRequest, Weights, choose,
};
use std::hint::black_box;
use std::time::Duration;

/// Microseconds among few and among many.
pub(super) struct Cost {
    pub(super) few_us: f64,
    pub(super) many_us: f64,
}

impl Cost {
    pub(super) fn ratio(&self) -> f64 {
        self.many_us / self.few_us
    }
}

/// Engines of a usual model.
pub(super) const FEW: u64 = 16;
/// Among which is chosen at most.
pub(super) const MANY: u64 = 10_000;
/// Of which other policies keep count at most.
pub(super) const MANY_ON_PAPER: u64 = 1_024;

/// A choice for a prompt of 64 blocks, with its look into the memory.
pub(super) fn choices() -> Cost {
    Cost { few_us: choice_us(FEW), many_us: choice_us(MANY) }
}

/// A request on paper, from its arrival to its end, for three policies and a prompt of 48 blocks.
pub(super) fn on_paper() -> Cost {
    Cost { few_us: paper_us(FEW), many_us: paper_us(MANY_ON_PAPER) }
}

fn choice_us(count: u64) -> f64 {
    let endpoint = |key: u64| Endpoint {
        key,
        availability: Availability::Serving,
        unread: Tokens::new(key * 991 % 5_000),
        held: Tokens::ZERO,
        kv_used_per_thousand: 0,
        cached_blocks: 0,
        speed_per_thousand: 1_000,
    };
    let endpoints: Vec<Endpoint> = (0..count).map(endpoint).collect();
    let (ring, mut seen) = (Ring::new(0..count), ObservedEndpoints::new(65_536));
    best_us(200, 200, |key| {
        let prefixes: [u64; 64] = std::array::from_fn(|block| key << 8 | block as u64);
        let past = seen.past_of(&prefixes, endpoints.len());
        let prompt = Tokens::new(1_000);
        let ask = RoutingRequest { prefixes: &prefixes, block_tokens: 64, past, prompt, key };
        if let Some(picked) = choose(&ring, |place| endpoints[place], &ask, &Weights::DEFAULT) {
            seen.sent(&prefixes, endpoints[picked.endpoint].key);
        }
    })
}

fn paper_us(count: u64) -> f64 {
    const BLOCK: u32 = 256;
    let listed: Vec<Listed> =
        (0..count).map(|key| Listed { key: key * 1_000_003, open: true }).collect();
    let mut trial = ShadowTrial::new(RoutingPolicy::Prefix, &RoutingPolicy::ALL, BLOCK);
    trial.list(&listed);
    best_us(5, 2_000, |number| {
        let at = Duration::from_millis(number * 50);
        let who = number % 500;
        let prefixes: [u64; 48] = std::array::from_fn(|block| who << 8 | block as u64);
        let (prompt, output) = (Tokens::new(48 * u64::from(BLOCK)), Tokens::new(100));
        let arrival =
            ShadowArrival { prefixes: &prefixes, block_tokens: BLOCK, prompt, output, key: number };
        trial.arrive(at, number, &arrival, listed[(number % count) as usize].key);
        trial.first(at + Duration::from_millis(40), number);
        trial.end(at + Duration::from_millis(45), number, Some(50));
    })
}

/// Of `work`, done `times` in each of so many runs.
fn best_us(runs: u64, times: u64, mut work: impl FnMut(u64)) -> f64 {
    let mut best = f64::INFINITY;
    for run in 0..runs {
        let before = processor_seconds();
        (run * times..(run + 1) * times).for_each(|number| work(black_box(number)));
        best = best.min(processor_seconds() - before);
    }
    best * 1e6 / times as f64
}
