//! The small forecasts that rivals publish: a straight line, a difference model and a filter.

/// The least-squares line `value = level + slope * x` through points; `None` where `x` never moves.
pub(super) fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let (mut covariance, mut variance) = (0.0, 0.0);
    for (x, y) in points {
        covariance += (x - mean_x) * (y - mean_y);
        variance += (x - mean_x) * (x - mean_x);
    }
    (variance > 0.0).then(|| {
        let slope = covariance / variance;
        (mean_y - slope * mean_x, slope)
    })
}

/// The next value of a series whose differences follow their predecessor: ARIMA(1, 1, 0), fitted
/// by least squares.
pub(super) fn next_by_differences(series: &[f64]) -> Option<f64> {
    let last = *series.last()?;
    let changes: Vec<f64> = series.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let (mut together, mut square) = (0.0, 0.0);
    for pair in changes.windows(2) {
        together += pair[0] * pair[1];
        square += pair[0] * pair[0];
    }
    let Some(change) = changes.last().filter(|_| square > 0.0) else { return Some(last) };
    // Beyond one the forecast would explode; a fit over few points can say so by chance.
    Some(last + (together / square).clamp(-1.0, 1.0) * change)
}

/// A Kalman filter of a level and its trend, with the noise that the Dynamo planner assumes.
#[derive(Clone, Debug, Default)]
pub(super) struct LocalTrend {
    level: f64,
    trend: f64,
    // Covariance of level and trend: [level, both, trend].
    spread: [f64; 3],
    seen: u32,
}

impl LocalTrend {
    // Dynamo planner, `config/defaults.py`: kalman_q_level, kalman_q_trend, kalman_r.
    const LEVEL_NOISE: f64 = 1.0;
    const TREND_NOISE: f64 = 0.1;
    const READING_NOISE: f64 = 10.0;

    pub(super) fn observe(&mut self, value: f64) {
        self.seen += 1;
        if self.seen == 1 {
            self.level = value;
            // Nothing is known yet of the trend, little of the level.
            self.spread = [Self::READING_NOISE, 0.0, Self::READING_NOISE];
            return;
        }
        let [level, both, trend] = self.spread;
        let ahead = [
            level + 2.0 * both + trend + Self::LEVEL_NOISE,
            both + trend,
            trend + Self::TREND_NOISE,
        ];
        let expected = self.level + self.trend;
        let total = ahead[0] + Self::READING_NOISE;
        let (gain, trend_gain) = (ahead[0] / total, ahead[1] / total);
        self.level = expected + gain * (value - expected);
        self.trend += trend_gain * (value - expected);
        self.spread =
            [(1.0 - gain) * ahead[0], (1.0 - gain) * ahead[1], ahead[2] - trend_gain * ahead[1]];
    }

    /// The next value; `None` until five were seen, as published (kalman_min_points).
    pub(super) fn next(&self) -> Option<f64> {
        (self.seen >= 5).then(|| (self.level + self.trend).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::{LocalTrend, line, next_by_differences};

    #[test]
    fn a_line_is_found_again() {
        let points = [(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)];
        assert_eq!(line(&points), Some((1.0, 2.0)));
        assert_eq!(line(&[(1.0, 2.0), (1.0, 5.0)]), None);
    }

    #[test]
    fn a_steady_climb_goes_on_and_a_flat_series_stays() {
        assert_eq!(next_by_differences(&[1.0, 2.0, 3.0, 4.0]), Some(5.0));
        assert_eq!(next_by_differences(&[4.0, 4.0, 4.0]), Some(4.0));
        assert_eq!(next_by_differences(&[7.0]), Some(7.0));
        assert_eq!(next_by_differences(&[]), None);
    }

    #[test]
    fn differences_that_explode_are_held_at_one() {
        // Changes 1, 2, 4: the fit says (2 + 8) / (1 + 4) = 2, which would add 8.
        assert_eq!(next_by_differences(&[0.0, 1.0, 3.0, 7.0]), Some(11.0));
    }

    #[test]
    fn the_filter_learns_a_ramp() {
        let mut filter = LocalTrend::default();
        assert_eq!(filter.next(), None);
        for step in 0..200 {
            filter.observe(f64::from(step) * 3.0);
        }
        let next = filter.next().expect("enough points");
        assert!((next - 600.0).abs() < 0.5, "{next}");
    }
}
