//! Draws from a seed, in the forms that are needed here.

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

/// The same seed gives the same draws on every machine.
#[derive(Clone, Debug)]
pub(super) struct Dice(Pcg64Mcg);

impl Dice {
    /// One stream of draws for each purpose, so that drawing more for one changes no other.
    pub(super) fn new(seed: u64, purpose: u64) -> Self {
        let spread = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ (purpose + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Self(Pcg64Mcg::seed_from_u64(spread))
    }

    /// A whole number, both ends included.
    pub(super) fn whole(&mut self, from: u64, to: u64) -> u64 {
        self.0.random_range(from..=to)
    }

    pub(super) fn small(&mut self, from: u32, to: u32) -> u32 {
        self.0.random_range(from..=to)
    }

    pub(super) fn index(&mut self, length: usize) -> usize {
        self.0.random_range(0..length)
    }

    pub(super) fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.0.random::<f64>()
    }

    pub(super) fn happens(&mut self, share: f64) -> bool {
        self.0.random::<f64>() < share
    }

    pub(super) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.index(all.len())]
    }

    /// How many come in a second at this rate: Poisson, by multiplying draws.
    pub(super) fn arrivals(&mut self, rate: f64) -> u32 {
        let (least, mut product, mut count) = ((-rate).exp(), 1.0, 0);
        loop {
            product *= self.0.random::<f64>();
            if product <= least || count > 1_000 {
                return count;
            }
            count += 1;
        }
    }
}
