//! Quantiles of sorted values, as code that serves or decides takes them.
//!
//! Both are one of the values and never a number between two of them, so that they hold for whatever can be sorted.
//! Reports take another, linear between neighbours, which lives where reports are made. A learner whose decisions depend on
//! which of two neighbours it takes has its own and says so.

/// The smallest value that at least this share of all values does not exceed; `None` of nothing.
pub fn nearest_rank<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let rank = (sorted.len() as f64 * share.clamp(0.0, 1.0)).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// The middle value, of an even number the upper of both; `None` of nothing.
pub fn median<T: Copy>(sorted: &[T]) -> Option<T> {
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_the_first_that_enough_values_do_not_exceed() {
        let ten: Vec<u32> = (1..=10).collect();
        let ranks = [0.0, 0.05, 0.1, 0.5, 0.51, 0.9, 0.95, 1.0];
        assert_eq!(
            ranks.map(|share| nearest_rank(&ten, share)),
            [1, 1, 1, 5, 6, 9, 10, 10].map(Some),
        );
        assert_eq!(nearest_rank(&ten, 2.0), Some(10), "no share is more than all");
        assert_eq!(nearest_rank::<u32>(&[], 0.5), None);
    }

    #[test]
    fn the_median_is_one_of_the_values() {
        assert_eq!(median(&[1.0, 2.0, 3.0]), Some(2.0));
        assert_eq!(median(&[1.0, 2.0, 3.0, 4.0]), Some(3.0));
        assert_eq!(median::<f64>(&[]), None);
    }
}
