//! Multi-depth rendezvous hashing: who is likely to have a prefix in its cache.
//!
//! A pair of a prefix and an endpoint has a score that follows from their names. The endpoints with
//! the highest scores are the prefix's candidates. When an endpoint goes, only its own prefixes
//! move. Prompts share beginnings of different lengths, so candidates are named for several depths:
//! one system prompt may be shared by all users and one conversation only by itself.

use crate::endpoint::{Ask, Endpoint};

/// The most candidates per depth that can be asked for.
const MOST_PER_DEPTH: usize = 4;

/// The most depths that are looked at: the whole prefix, and a half of it, a quarter...
const MOST_DEPTHS: usize = 6;

/// An endpoint that may have a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Its place in the list of endpoints.
    pub(crate) endpoint: usize,
    /// Blocks of the prefix that it is a candidate for.
    pub(crate) blocks: u32,
    /// Its score for that prefix.
    pub(crate) score: u64,
}

/// Calls `visit` with the candidates of each depth, the deepest depth first and in each the highest
/// score first.
pub(crate) fn for_each_candidate(
    endpoints: &[Endpoint],
    ask: &Ask<'_>,
    per_depth: usize,
    mut visit: impl FnMut(Candidate),
) {
    let per_depth = per_depth.clamp(1, MOST_PER_DEPTH);
    for blocks in depths(ask.prefixes.len()) {
        let Some(prefix) = ask.prefixes.get(blocks - 1) else { continue };
        // Scores and places side by side; a score that is not above the last of them is the common
        // case and costs one comparison.
        let mut best = [(0_u64, usize::MAX); MOST_PER_DEPTH];
        for (endpoint, e) in endpoints.iter().enumerate() {
            let mut newcomer = (score(*prefix, e.key), endpoint);
            if newcomer.0 <= best[per_depth - 1].0 || !e.serves() {
                continue;
            }
            for place in best.iter_mut().take(per_depth) {
                if newcomer.0 > place.0 {
                    std::mem::swap(place, &mut newcomer);
                }
            }
        }
        let named = best.into_iter().take_while(|(_, endpoint)| *endpoint != usize::MAX);
        named.for_each(|(score, endpoint)| {
            visit(Candidate { endpoint, blocks: blocks as u32, score });
        });
    }
}

/// The score of an endpoint for a prefix.
///
/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): every bit of the input changes every
/// bit of the output, so that neighbouring names get unrelated scores.
pub(crate) const fn score(prefix: u64, endpoint: u64) -> u64 {
    let mut mixed = prefix ^ endpoint.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Powers of two up to the whole prefix, and the whole, deepest first. The same powers for every
/// prompt: two prompts that share some blocks must meet at a depth within them.
fn depths(blocks: usize) -> impl Iterator<Item = usize> {
    let powers = (0..usize::BITS).rev().map(|power| 1_usize << power);
    let whole = (blocks > 0).then_some(blocks);
    whole.into_iter().chain(powers.filter(move |power| *power < blocks)).take(MOST_DEPTHS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_are_the_whole_and_powers_of_two() {
        assert_eq!(depths(0).count(), 0);
        assert_eq!(depths(1).collect::<Vec<_>>(), [1]);
        assert_eq!(depths(6).collect::<Vec<_>>(), [6, 4, 2, 1]);
        assert_eq!(depths(1000).collect::<Vec<_>>(), [1000, 512, 256, 128, 64, 32]);
    }
}
