//! Chance from a seed: the same seed gives the same draws on every machine.

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

/// One stream of draws.
pub type Chance = Pcg64Mcg;

/// The stream for one purpose. Each purpose has its own, so that drawing more often for one
/// (say, another policy starts more replicas) does not change what another draws (the arrivals).
pub fn stream(seed: u64, purpose: Purpose, index: u64) -> Chance {
    // Odd multipliers spread neighbouring seeds and indices over the state; PCG mixes the rest.
    let spread = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (purpose as u64 + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9)
        ^ (index + 1).wrapping_mul(0x94d0_49bb_1331_11eb);
    Chance::seed_from_u64(spread)
}

/// What chance is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// When requests arrive.
    Arrivals,
    /// How long they are.
    Lengths,
    /// How long replicas take to start.
    ColdStarts,
    /// What breaks, and when.
    Faults,
    /// Which pod Kubernetes removes.
    Victims,
    /// Settings tried in a search.
    Search,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn streams_repeat_and_differ() {
        let draw = |seed, purpose, index| stream(seed, purpose, index).next_u64();
        assert_eq!(draw(1, Purpose::Arrivals, 0), draw(1, Purpose::Arrivals, 0));
        assert_ne!(draw(1, Purpose::Arrivals, 0), draw(2, Purpose::Arrivals, 0));
        assert_ne!(draw(1, Purpose::Arrivals, 0), draw(1, Purpose::Lengths, 0));
        assert_ne!(draw(1, Purpose::Arrivals, 0), draw(1, Purpose::Arrivals, 1));
    }
}
