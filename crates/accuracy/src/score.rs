//! From pairs of predicted and measured to the numbers that are reported.

use flyball_figures::quantile::quantile;

/// How far predictions were from measurements, and how many there were none for.
#[derive(Clone, Debug, Default)]
pub(super) struct Score {
    /// `predicted / measured - 1`, signed.
    errors: Vec<f64>,
    refused: usize,
}

impl Score {
    pub(super) fn add(&mut self, predicted: Option<f64>, measured: f64) {
        match predicted {
            Some(predicted) => self.errors.push(predicted / measured - 1.0),
            None => self.refused += 1,
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.errors.extend(&other.errors);
        self.refused += other.refused;
    }

    pub(super) fn rows(&self) -> usize {
        self.errors.len() + self.refused
    }

    pub(super) fn refused(&self) -> usize {
        self.refused
    }

    pub(super) fn answered_pct(&self) -> f64 {
        100.0 * self.errors.len() as f64 / self.rows().max(1) as f64
    }

    /// Median of the absolute error in per cent, a refusal counting as 100 %.
    pub(super) fn median_pct(&self) -> f64 {
        self.quantile_pct(0.5)
    }

    pub(super) fn p90_pct(&self) -> f64 {
        self.quantile_pct(0.9)
    }

    pub(super) fn mean_pct(&self) -> f64 {
        let all = self.absolute();
        all.iter().sum::<f64>() / all.len().max(1) as f64
    }

    /// Median of the signed error in per cent: which way the model leans.
    pub(super) fn bias_pct(&self) -> f64 {
        let mut errors: Vec<f64> = self.errors.iter().map(|error| 100.0 * error).collect();
        quantile(&mut errors, 0.5)
    }

    fn quantile_pct(&self, share: f64) -> f64 {
        quantile(&mut self.absolute(), share)
    }

    fn absolute(&self) -> Vec<f64> {
        let refused = std::iter::repeat_n(100.0, self.refused);
        self.errors.iter().map(|error| 100.0 * error.abs()).chain(refused).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_counts_as_a_hundred_per_cent() {
        let mut score = Score::default();
        for predicted in [Some(11.0), Some(9.0), None] {
            score.add(predicted, 10.0);
        }
        assert_eq!((score.rows(), score.refused()), (3, 1));
        assert!((score.median_pct() - 10.0).abs() < 1e-9);
        assert!((score.p90_pct() - 82.0).abs() < 1e-9, "{}", score.p90_pct());
    }
}
