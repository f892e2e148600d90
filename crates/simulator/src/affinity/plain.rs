//! Choices that know no prefixes.

use super::{AffinityView, Picked, PrefixRequest, Router};
use crate::chance::{self, Chance, Purpose};
use flyball_routing::round_robin;
use rand::RngExt;

/// One after the other: the real `flyball_routing::round_robin`.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRobin {
    turn: u64,
}

/// Any.
#[derive(Clone, Debug)]
pub struct Random {
    chance: Chance,
}

/// The one with the fewest requests of this gateway; of equals the first.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeastLoad;

impl Random {
    /// The chances of one gateway.
    pub fn new(gateway: u64) -> Self {
        Self { chance: chance::stream(gateway, Purpose::Victims, 0) }
    }
}

impl Router for RoundRobin {
    fn choose(&mut self, request: &PrefixRequest<'_>, sight: &[AffinityView]) -> Picked {
        self.turn += 1;
        let engine = round_robin(sight.len(), |_| true, self.turn).unwrap_or(0);
        Picked { engine, to_read: request.prompt }
    }
}

impl Router for Random {
    fn choose(&mut self, request: &PrefixRequest<'_>, sight: &[AffinityView]) -> Picked {
        Picked { engine: self.chance.random_range(0..sight.len()), to_read: request.prompt }
    }
}

impl Router for LeastLoad {
    fn choose(&mut self, request: &PrefixRequest<'_>, sight: &[AffinityView]) -> Picked {
        Picked { engine: least_in_flight(sight), to_read: request.prompt }
    }
}

pub(super) fn least_in_flight(sight: &[AffinityView]) -> usize {
    let by_count = sight.iter().enumerate().min_by_key(|(_, engine)| engine.in_flight);
    by_count.map_or(0, |(place, _)| place)
}
