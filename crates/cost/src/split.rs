//! A whole cut into parts that add up to it again.

/// Sums of weights up to here can be multiplied with a remainder without an overflow.
const WEIGHT_BITS: u32 = 63;

/// Cuts `whole` by weights: each part is what is due to it rounded down, and the units that are left go one each to the
/// largest remainders, of equal ones to the first. Nothing if no weight is above zero.
///
/// Parts add up to the whole exactly. Who passes weights in the order of their owners gets the same parts whatever
/// order they came in. Where all weights together exceed 63 bits, all of them lose the same number of bits.
pub fn split(whole: i128, weights: &[u64]) -> Option<Vec<i128>> {
    let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let shift = (u128::BITS - sum.leading_zeros()).saturating_sub(WEIGHT_BITS);
    let weight = |index: usize| i128::from(weights[index] >> shift);
    let sum: i128 = (0..weights.len()).map(weight).sum();
    if sum == 0 {
        return None;
    }
    // Of a negative whole as of a positive one, so that a correction takes back what was given.
    let (sign, size) = (whole.signum(), whole.checked_abs()?);
    let (each, rest) = (size / sum, size % sum);
    let mut parts: Vec<i128> =
        (0..weights.len()).map(|index| each * weight(index) + rest * weight(index) / sum).collect();
    let left = size - parts.iter().sum::<i128>();
    if left > 0 {
        let mut order: Vec<usize> = (0..weights.len()).collect();
        let remainder = |index: &usize| std::cmp::Reverse(rest * weight(*index) % sum);
        // Stable: of equal remainders the first comes first. Fewer units are left than there are parts.
        order.sort_by_key(remainder);
        for index in order.into_iter().take(left as usize) {
            parts[index] += 1;
        }
    }
    parts.iter_mut().for_each(|part| *part *= sign);
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_units_go_to_the_largest_remainders() {
        assert_eq!(split(100, &[1, 1, 1]), Some(vec![34, 33, 33]));
        assert_eq!(split(10, &[1, 5, 2]), Some(vec![1, 6, 3]));
        assert_eq!(split(-10, &[1, 5, 2]), Some(vec![-1, -6, -3]));
        assert_eq!(split(5, &[0, 7]), Some(vec![0, 5]));
        assert_eq!(split(5, &[0, 0]), None);
        assert_eq!(split(5, &[]), None);
    }

    #[test]
    fn nobody_without_a_weight_gets_a_unit_that_is_left() {
        for whole in 0..50 {
            assert_eq!(split(whole, &[0, 3, 0, 4, 5]).unwrap()[0], 0, "{whole}");
        }
    }

    proptest! {
        #[test]
        fn parts_add_up_and_are_within_one_unit_of_what_is_due(
            whole in -(1i128 << 100)..1i128 << 100,
            weights in proptest::collection::vec(any::<u64>(), 1..40),
        ) {
            prop_assume!(weights.iter().any(|weight| *weight > 1 << 10));
            let parts = split(whole, &weights).unwrap();
            prop_assert_eq!(parts.iter().sum::<i128>(), whole);
        }

        #[test]
        fn a_part_is_within_one_unit_of_what_is_due(
            whole in 0i128..1 << 60,
            weights in proptest::collection::vec(0u64..1 << 32, 1..40),
        ) {
            let sum: i128 = weights.iter().map(|weight| i128::from(*weight)).sum();
            prop_assume!(sum > 0);
            for (part, weight) in split(whole, &weights).unwrap().into_iter().zip(&weights) {
                let apart = part * sum - whole * i128::from(*weight);
                prop_assert!(apart.abs() < sum);
            }
        }
    }
}
