//! Quantiles of what was measured.
//!
//! One meaning for every report: between neighbours, linearly. Product code takes a value that was measured, by rank (`core`).

/// The quantile by linear interpolation between neighbours; NaN of nothing.
pub fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else { return f64::NAN };
    let place = share * last as f64;
    let below = place.floor() as usize;
    let part = place - below as f64;
    // A neighbour that has no part in it is not looked at: it may be endless.
    if part == 0.0 {
        return values[below];
    }
    values[below] + (values[(below + 1).min(last)] - values[below]) * part
}

/// The middle of some values: the mean of two where they are even; NaN of nothing.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    quantile(&mut values.into_iter().collect::<Vec<f64>>(), 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_neighbours() {
        assert_eq!(quantile(&mut [4.0, 1.0, 3.0, 2.0], 0.5), 2.5);
        assert_eq!(quantile(&mut [4.0, 1.0, 3.0, 2.0], 1.0), 4.0);
        assert!(quantile(&mut [], 0.5).is_nan());
        assert_eq!(quantile(&mut [1.0, 2.0, f64::INFINITY], 0.5), 2.0);
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median([]).is_nan());
    }
}
