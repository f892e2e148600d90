//! Numbers with their interval, in answers and in tables.

use flyball_perf::search::serve::Ranged;
use schemars::JsonSchema;
use serde::Serialize;

/// A number with its lower and upper end.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(crate) struct RangeView {
    pub(crate) low: f64,
    pub(crate) point: f64,
    pub(crate) high: f64,
}

impl RangeView {
    /// In other units, to a hundredth: what lies beyond is noise.
    pub(crate) fn of(ranged: Ranged, scale: f64) -> RangeView {
        let [low, point, high] =
            [ranged.low, ranged.point, ranged.high].map(|one| tidy(one * scale));
        RangeView { low, point, high }
    }

    /// `29 (25-36)`: both ends, because they are seldom equally far.
    pub(crate) fn cell(&self) -> String {
        self.cell_in(1.0)
    }

    /// The same of dollars: `537k (474-660)`, `5.8M (5.1-7.1)`.
    pub(crate) fn money_cell(&self) -> String {
        let (unit, letter) = if self.point < 1e6 { (1e3, "k") } else { (1e6, "M") };
        let [low, point, high] = [self.low, self.point, self.high].map(|one| short(one / unit));
        format!("{point}{letter} ({low}-{high})")
    }

    /// The same in a larger unit.
    pub(crate) fn cell_in(&self, unit: f64) -> String {
        let [low, point, high] = [self.low, self.point, self.high].map(|one| short(one / unit));
        format!("{point} ({low}-{high})")
    }
}

/// To a hundredth, or to three digits where that is finer.
pub(crate) fn tidy(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = (2 - value.abs().log10().floor() as i32).max(2);
    let scale = 10f64.powi(digits.min(12));
    (value * scale).round() / scale
}

/// `430`, `29`, `4.1`: two digits at least, no more than a reader can use.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 9.95 => format!("{value:.0}"),
        size if size >= 0.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_short_and_show_both_ends() {
        let range = RangeView { low: 25.0, point: 29.3, high: 36.2 };
        assert_eq!(range.cell(), "29 (25-36)");
        let dollars = RangeView { low: 5.12e6, point: 5.77e6, high: 7.09e6 };
        assert_eq!(dollars.money_cell(), "5.8M (5.1-7.1)");
        assert_eq!(short(0.256), "0.26");
        assert_eq!(tidy(0.001_234_5), 0.00123);
        assert_eq!(tidy(1234.567), 1234.57);
    }
}
