//! Means over seeds, with their intervals.

use std::fmt;

/// A mean and half the width of its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Spread {
    pub(super) mean: f64,
    pub(super) half: f64,
}

impl Spread {
    pub(super) fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        if values.is_empty() {
            return Self::default();
        }
        let mean = values.iter().sum::<f64>() / count;
        if values.len() == 1 {
            return Self { mean, half: 0.0 };
        }
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (count - 1.0)).sqrt();
        Self { mean, half: student(values.len() - 1) * deviation / count.sqrt() }
    }

    /// The same in another unit.
    pub(super) fn times(self, factor: f64) -> Self {
        Self { mean: self.mean * factor, half: self.half * factor }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        write!(f, "{:.digits$} ± {:.digits$}", self.mean, self.half)
    }
}

/// The 97.5 % point of Student's distribution, by degrees of freedom (published tables); beyond
/// ten, the normal one is near enough.
fn student(freedom: usize) -> f64 {
    const POINTS: [f64; 10] =
        [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    POINTS.get(freedom.saturating_sub(1)).copied().unwrap_or(1.96)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_over_seeds_is_students() {
        let spread = Spread::of(&[9.0, 10.0, 11.0]);
        assert_eq!(spread.mean, 10.0);
        // Deviation 1, over the root of 3, times 4.303.
        assert!((spread.half - 2.4843).abs() < 1e-3, "{}", spread.half);
        assert_eq!(format!("{spread:.1}"), "10.0 ± 2.5");
        assert_eq!(Spread::of(&[7.0]).half, 0.0);
    }
}
