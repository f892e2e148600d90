//! Finding coefficients: robust least squares on the logarithm of the error.
//!
//! Each coefficient is positive, so it is sought as a logarithm: a factor of two up is as far as a
//! factor of two down. Errors count as soft-L1, because a published table may hold a wrong row and
//! one wrong row must not bend the model. A weak pull towards the starting value decides where the
//! data do not.

use levenberg_marquardt::{LeastSquaresProblem, LevenbergMarquardt};
use nalgebra::{DMatrix, DVector, Dyn, Owned};

/// One coefficient to find.
#[derive(Clone, Debug)]
pub(super) struct Unknown {
    pub(super) name: String,
    pub(super) start: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// Errors below this (in logarithm, so about per cent) count squared, above it by their size.
const SOFT: f64 = 0.1;
/// A coefficient a factor of e from its start costs as much as one row that is 3 % off.
const PULL: f64 = 0.03;
/// Step of the numeric derivative, in logarithm.
const STEP: f64 = 1e-5;

/// The coefficients that make `errors` smallest. `errors` writes one weighted `ln(predicted /
/// measured)` per row.
pub(super) fn fit(unknowns: &[Unknown], errors: &dyn Fn(&[f64], &mut Vec<f64>)) -> Vec<f64> {
    let at = DVector::from_iterator(unknowns.len(), unknowns.iter().map(|one| one.start.ln()));
    let problem = Problem { unknowns, errors, at };
    let (solved, _) = LevenbergMarquardt::new().with_patience(60).minimize(problem);
    solved.values(&solved.at)
}

struct Problem<'a> {
    unknowns: &'a [Unknown],
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
        for error in &mut rows {
            // The square root of soft-L1, with the sign kept, so that its square is the loss.
            let ratio = *error / SOFT;
            let loss = 2.0 * ((1.0 + ratio * ratio).sqrt() - 1.0);
            *error = error.signum() * SOFT * loss.sqrt();
        }
        rows.extend(
            self.unknowns.iter().zip(at.iter()).map(|(one, log)| PULL * (log - one.start.ln())),
        );
        DVector::from_vec(rows)
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

    fn unknown(name: &str, start: f64) -> Unknown {
        Unknown { name: name.to_owned(), start, low: start / 100.0, high: start * 100.0 }
    }

    #[test]
    fn a_line_is_found_though_one_row_is_wrong() {
        let truth = |x: f64| 3.0 + 0.5 * x;
        let mut rows: Vec<(f64, f64)> =
            (1..60).map(|x| (f64::from(x), truth(f64::from(x)))).collect();
        rows[30].1 *= 20.0;
        let errors = |values: &[f64], out: &mut Vec<f64>| {
            out.extend(rows.iter().map(|(x, y)| ((values[0] + values[1] * x) / y).ln()));
        };
        let found = fit(&[unknown("offset", 1.0), unknown("slope", 1.0)], &errors);
        assert!((found[0] / 3.0 - 1.0).abs() < 0.05, "{found:?}");
        assert!((found[1] / 0.5 - 1.0).abs() < 0.05, "{found:?}");
    }

    #[test]
    fn what_the_rows_say_nothing_about_stays_where_it_was() {
        let errors = |values: &[f64], out: &mut Vec<f64>| out.push((values[0] / 2.0).ln());
        let found = fit(&[unknown("seen", 1.0), unknown("unseen", 7.0)], &errors);
        assert!((found[1] - 7.0).abs() < 1e-9, "{found:?}");
    }
}
