//! Finding coefficients: robust least squares on the logarithm of the error.
//!
//! Each coefficient is positive, so it is sought as a logarithm: a factor of two up is as far as a
//! factor of two down. Errors count as soft-L1, because a published table may hold a wrong row and
//! one wrong row must not bend the model. A weak pull decides where the data do not: towards the
//! starting value, or towards the mean of the coefficients of the same name.

use levenberg_marquardt::{LeastSquaresProblem, LevenbergMarquardt};
use nalgebra::{DMatrix, DVector, Dyn, Owned};

/// One coefficient to find.
#[derive(Clone, Debug)]
pub(super) struct Unknown {
    pub(super) start: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// Errors below this (in logarithm, so about per cent) count squared, above it by their size.
const SOFT: f64 = 0.1;
/// Step of the numeric derivative, in logarithm.
const STEP: f64 = 1e-5;

/// Where a coefficient is pulled to, and how much.
#[derive(Clone, Debug)]
pub(super) enum Prior {
    /// Towards its start; a distance of `width` (in logarithm) costs as much as one row that is
    /// [`SOFT`] off.
    Start { width: f64 },
    /// Towards the mean of all coefficients with the same group.
    Mean { group: &'static str, width: f64 },
}

/// The coefficients that make `errors` smallest. `errors` writes one `ln(predicted / measured)` per
/// row. One prior per coefficient and one weight per row (none: all alike); the weight counts after
/// the error is softened, so that it does not decide which rows are outliers.
pub(super) fn fit(
    unknowns: &[Unknown],
    priors: &[Prior],
    weights: &[f64],
    errors: &dyn Fn(&[f64], &mut Vec<f64>),
) -> Vec<f64> {
    let at = DVector::from_iterator(unknowns.len(), unknowns.iter().map(|one| one.start.ln()));
    let problem = Problem { unknowns, priors, weights, errors, at };
    let (solved, _) = LevenbergMarquardt::new().with_patience(60).minimize(problem);
    solved.values(&solved.at)
}

/// The same with each coefficient's own pull towards its start, and with weights on rows. A row
/// without a weight has 1.
pub(super) fn fit_weighted(
    unknowns: &[Unknown],
    pulls: &[f64],
    weights: &[f64],
    errors: &dyn Fn(&[f64], &mut Vec<f64>),
) -> Vec<f64> {
    let priors: Vec<Prior> = pulls.iter().map(|pull| Prior::Start { width: SOFT / pull }).collect();
    let roots: Vec<f64> = weights.iter().map(|weight| weight.sqrt()).collect();
    fit(unknowns, &priors, &roots, errors)
}

struct Problem<'a> {
    unknowns: &'a [Unknown],
    priors: &'a [Prior],
    weights: &'a [f64],
    errors: &'a dyn Fn(&[f64], &mut Vec<f64>),
    at: DVector<f64>,
}

impl Problem<'_> {
    fn values(&self, at: &DVector<f64>) -> Vec<f64> {
        let inside = |(one, log): (&Unknown, &f64)| log.exp().clamp(one.low, one.high);
        self.unknowns.iter().zip(at.iter()).map(inside).collect()
    }

    fn residuals_at(&self, at: &DVector<f64>) -> DVector<f64> {
        let mut rows = Vec::new();
        (self.errors)(&self.values(at), &mut rows);
        for (row, error) in rows.iter_mut().enumerate() {
            // The square root of soft-L1, with the sign kept, so that its square is the loss.
            let ratio = *error / SOFT;
            let loss = 2.0 * ((1.0 + ratio * ratio).sqrt() - 1.0);
            let weight = self.weights.get(row).copied().unwrap_or(1.0);
            *error = error.signum() * SOFT * loss.sqrt() * weight;
        }
        rows.extend((0..at.len()).map(|place| self.pull(at, place)));
        DVector::from_vec(rows)
    }

    fn pull(&self, at: &DVector<f64>, place: usize) -> f64 {
        let (towards, width) = match &self.priors[place] {
            Prior::Start { width } => (self.unknowns[place].start.ln(), width),
            Prior::Mean { group, width } => {
                let alike =
                    |other: &Prior| matches!(other, Prior::Mean { group: g, .. } if g == group);
                let logs = self.priors.iter().zip(at.iter()).filter(|(prior, _)| alike(prior));
                let count = logs.clone().count() as f64;
                (logs.map(|(_, log)| log).sum::<f64>() / count, width)
            }
        };
        SOFT * (at[place] - towards) / width
    }
}

impl LeastSquaresProblem<f64, Dyn, Dyn> for Problem<'_> {
    type ParameterStorage = Owned<f64, Dyn>;
    type ResidualStorage = Owned<f64, Dyn>;
    type JacobianStorage = Owned<f64, Dyn, Dyn>;

    fn set_params(&mut self, at: &DVector<f64>) {
        self.at.copy_from(at);
    }

    fn params(&self) -> DVector<f64> {
        self.at.clone()
    }

    fn residuals(&self) -> Option<DVector<f64>> {
        let residuals = self.residuals_at(&self.at);
        residuals.iter().all(|value| value.is_finite()).then_some(residuals)
    }

    fn jacobian(&self) -> Option<DMatrix<f64>> {
        let here = self.residuals_at(&self.at);
        let mut jacobian = DMatrix::zeros(here.len(), self.at.len());
        for column in 0..self.at.len() {
            let mut moved = self.at.clone();
            moved[column] += STEP;
            let slope = (self.residuals_at(&moved) - &here) / STEP;
            jacobian.set_column(column, &slope);
        }
        Some(jacobian)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(start: f64) -> Unknown {
        Unknown { start, low: start / 100.0, high: start * 100.0 }
    }

    const WEAK: [f64; 2] = [0.03; 2];

    #[test]
    fn a_line_is_found_though_one_row_is_wrong() {
        let truth = |x: f64| 3.0 + 0.5 * x;
        let mut rows: Vec<(f64, f64)> =
            (1..60).map(|x| (f64::from(x), truth(f64::from(x)))).collect();
        rows[30].1 *= 20.0;
        let errors = |values: &[f64], out: &mut Vec<f64>| {
            out.extend(rows.iter().map(|(x, y)| ((values[0] + values[1] * x) / y).ln()));
        };
        let found = fit_weighted(&[unknown(1.0), unknown(1.0)], &WEAK, &[], &errors);
        assert!((found[0] / 3.0 - 1.0).abs() < 0.05, "{found:?}");
        assert!((found[1] / 0.5 - 1.0).abs() < 0.05, "{found:?}");
    }

    #[test]
    fn what_the_rows_say_nothing_about_stays_where_it_was() {
        let errors = |values: &[f64], out: &mut Vec<f64>| out.push((values[0] / 2.0).ln());
        let found = fit_weighted(&[unknown(1.0), unknown(7.0)], &WEAK, &[], &errors);
        assert!((found[1] - 7.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_group_is_pulled_together_and_not_towards_its_start() {
        let unknowns = [unknown(1.0), unknown(1.0)];
        let priors = vec![Prior::Mean { group: "same", width: 0.3 }; 2];
        // Only the first is seen, at 5: the second follows it.
        let errors = |values: &[f64], out: &mut Vec<f64>| out.push((values[0] / 5.0).ln());
        let found = fit(&unknowns, &priors, &[1.0], &errors);
        assert!((found[0] / 5.0 - 1.0).abs() < 1e-3, "{found:?}");
        assert!((found[1] / 5.0 - 1.0).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn a_heavier_row_wins() {
        let errors = |values: &[f64], out: &mut Vec<f64>| {
            out.extend([(values[0] / 2.0).ln(), (values[0] / 2.2).ln()]);
        };
        let priors = [Prior::Start { width: 100.0 }];
        let found = fit(&[unknown(1.0)], &priors, &[10.0, 1.0], &errors);
        assert!((found[0] / 2.0 - 1.0).abs() < 0.01, "{found:?}");
    }
}
