//! Which arm of a split a request goes to.
//!
//! A request by itself is dealt: the `n`-th goes to the arm at point [`dealt`]`(n)` of a line on which
//! each arm has a stretch as long as its weight. Such points fill a line more evenly than chance, so the
//! shares of a million requests are right to a thousandth of a point, where chance would be off by 30.
//!
//! A session stays: [`stays`] goes by names and weights alone, so every gateway says the same arm.

use crate::ring::score;

/// The golden ratio's fraction of 2^64. Its multiples fill a line more evenly than those of any other
/// number (Weyl 1916; its continued fraction is the slowest to converge).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The fraction of the square root of 2. It has nothing to do with the golden ratio, so who is copied
/// has nothing to do with who gets which arm.
const ROOT: u64 = 0x6a09_e667_f3bc_c908;

/// The arm of the `n`-th request, by its place among the weights; `None` if all weights are zero.
pub fn dealt(weights: impl IntoIterator<Item = u32> + Clone, n: u64) -> Option<usize> {
    let sum: u64 = weights.clone().into_iter().map(u64::from).sum();
    // In 0..sum: the upper half of the product of a fraction and the sum.
    let point = (u128::from(n.wrapping_mul(GOLDEN)) * u128::from(sum)) >> 64;
    let mut ends = 0;
    weights.into_iter().position(|weight| {
        ends += u128::from(weight);
        point < ends
    })
}

/// Whether the `n`-th request is among so many in a thousand.
pub fn is_among(per_thousand: u32, n: u64) -> bool {
    let point = (u128::from(n.wrapping_mul(ROOT)) * 1_000) >> 64;
    point < u128::from(per_thousand)
}

/// The arm of a session, by its place among the arms, each with a key and a weight; `None` if all
/// weights are zero.
///
/// Rendezvous hashing with weights (Schindelhauer and Schomaker 2005): each arm draws a time after which
/// it would come, sooner the heavier it is, and the first has the session. If one arm's weight changes,
/// only that arm gains or loses sessions.
pub fn stays(arms: impl IntoIterator<Item = (u64, u32)>, session: u64) -> Option<usize> {
    let time = |(key, weight): (u64, u32)| -> f64 {
        // 53 bits and a half, so that it is never 0 and never 1.
        let chance = ((score(session, key) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        -chance.ln() / f64::from(weight)
    };
    let arms = arms.into_iter().enumerate().filter(|(_, (_, weight))| *weight > 0);
    let times = arms.map(|(place, arm)| (place, time(arm)));
    times.min_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Requests of each arm.
    fn counts(weights: &[u32], arm: impl Fn(u64) -> Option<usize>, many: u64) -> Vec<u64> {
        let mut counts = vec![0; weights.len()];
        (0..many).for_each(|n| counts[arm(n).unwrap()] += 1);
        counts
    }

    #[test]
    fn ten_percent_of_a_million_are_right_to_a_thousandth_of_a_point() {
        for weights in [[900, 100].as_slice(), &[100, 900], &[1, 98, 1], &[999_999, 1]] {
            let sum: u32 = weights.iter().sum();
            let counts = counts(weights, |n| dealt(weights.iter().copied(), n), 1_000_000);
            for (count, weight) in counts.iter().zip(weights) {
                let points = *count as f64 / 1e4 - f64::from(*weight) * 100.0 / f64::from(sum);
                assert!(points.abs() < 0.001, "{weights:?}: {counts:?}");
            }
        }
        let copied = (0..1_000_000).filter(|n| is_among(10, *n)).count();
        assert!(copied.abs_diff(10_000) < 10, "{copied}");
    }

    #[test]
    fn who_is_copied_has_nothing_to_do_with_the_arm() {
        let both = (0..1_000_000).filter(|n| is_among(100, *n) && dealt([9, 1], *n) == Some(1));
        let both = both.count();
        assert!(both.abs_diff(10_000) < 200, "{both}");
    }

    #[test]
    fn sessions_have_the_shares_of_the_weights() {
        let arms = [(11, 90), (22, 10)];
        let many = 100_000;
        let counts = counts(&[90, 10], |n| stays(arms, score(n, 5)), many);
        // Four standard deviations of a count of chance.
        assert!(counts[1].abs_diff(10_000) < 380, "{counts:?}");
    }

    #[test]
    fn without_weight_there_is_no_arm() {
        assert_eq!((dealt([0, 0], 7), dealt([], 7)), (None, None));
        assert_eq!((stays([(1, 0)], 7), stays([], 7)), (None, None));
        assert!(!is_among(0, 0) && is_among(1_000, u64::MAX));
        for n in 0..1_000 {
            assert_eq!((dealt([0, 3, 0], n), stays([(1, 0), (2, 3)], n)), (Some(1), Some(1)));
        }
    }

    proptest! {
        #[test]
        fn a_changed_weight_moves_sessions_only_to_or_from_its_arm(
            weights in prop::collection::vec(0_u32..1_000, 2..6),
            which: usize, weight in 0_u32..1_000, session: u64,
        ) {
            let arms = |weights: &[u32]| -> Vec<(u64, u32)> {
                weights.iter().enumerate().map(|(key, weight)| (key as u64, *weight)).collect()
            };
            let which = which % weights.len();
            let mut after = weights.clone();
            after[which] = weight;
            let (was, is) = (stays(arms(&weights), session), stays(arms(&after), session));
            let its = if weight > weights[which] { is } else { was };
            prop_assert!(was == is || its == Some(which));
        }

        #[test]
        fn the_order_of_arms_does_not_matter_to_sessions(session: u64, turn in 0_usize..3) {
            let mut arms = vec![(1, 5), (2, 7), (3, 9)];
            let key = |arms: &[(u64, u32)]| arms[stays(arms.iter().copied(), session).unwrap()].0;
            let before = key(&arms);
            arms.rotate_left(turn);
            prop_assert_eq!(key(&arms), before);
        }
    }
}
