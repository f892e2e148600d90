//! What a request costs, in prompt tokens.

use flyball_core::units::Tokens;

/// GPU time of a request, in the time that it takes to read a prompt token.
///
/// The factors are those of a 70B model on eight H100: 27,000 prompt tokens per second; a step of
/// 25 ms for a batch of 64, of which about 18 ms read weights and 7 ms caches; a cache of 400,000
/// tokens. Other models differ in both ways at once, so that the ratios stay within a factor of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(pub u64);

/// A token written: 18 ms / 64 x 27,000 per second.
const WRITTEN: u64 = 7;

/// A token held for a second costs its part of the steps' other 7 ms: 0.28 x 27,000 / 400,000 is a
/// 50th of a prompt token. In milliseconds, to stay in whole numbers.
const HELD_TOKEN_MS: u64 = 50_000;

impl Cost {
    /// Of so many prompt tokens that were not cached, so many written, and so many held for so long.
    pub const fn of(read: Tokens, written: Tokens, held: Tokens, held_ms: u64) -> Self {
        let written = written.get().saturating_mul(WRITTEN);
        let held = held.get().saturating_mul(held_ms) / HELD_TOKEN_MS;
        // Nothing is free: a caller that floods with empty prompts still takes turns.
        let sum = read.get().saturating_add(written).saturating_add(held);
        Self(if sum == 0 { 1 } else { sum })
    }
}
