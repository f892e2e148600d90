//! The one place that knows the solver of linear programs (docs/decisions/0018).

use microlp::{ComparisonOp, OptimizationDirection, Problem, Variable};

/// A program to minimise, with rows that are at most their right side.
pub(super) struct Program(Problem);

/// One of its variables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column(Variable);

/// The least cost, and where it is.
pub(super) struct Answer {
    pub(super) cost: f64,
    solution: microlp::Solution,
}

/// The solver gave up. With finite prices every program of the clairvoyant has an answer, so this
/// is a matter of numbers that are too far apart.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "cannot solve the clairvoyant's linear program: {0}\n\nhint: give prices and work in units of similar size"
)]
pub struct Unsolved(String);

impl Program {
    pub(super) fn new() -> Self {
        Self(Problem::new(OptimizationDirection::Minimize))
    }

    /// A variable from nothing to `most`, at a cost each.
    pub(super) fn column(&mut self, cost: f64, most: f64) -> Column {
        Column(self.0.add_var(cost, (0.0, most)))
    }

    pub(super) fn at_most(&mut self, terms: &[(Column, f64)], limit: f64) {
        self.row(terms, ComparisonOp::Le, limit);
    }

    pub(super) fn at_least(&mut self, terms: &[(Column, f64)], limit: f64) {
        self.row(terms, ComparisonOp::Ge, limit);
    }

    fn row(&mut self, terms: &[(Column, f64)], comparison: ComparisonOp, limit: f64) {
        let terms: Vec<_> = terms.iter().map(|&(column, factor)| (column.0, factor)).collect();
        self.0.add_constraint(terms.as_slice(), comparison, limit);
    }

    pub(super) fn solve(&self) -> Result<Answer, Unsolved> {
        let outcome = self.0.solve().map_err(|error| Unsolved(error.to_string()))?;
        let solution =
            outcome.into_solution().map_err(|_| Unsolved("it was interrupted".to_owned()))?;
        Ok(Answer { cost: solution.objective(), solution })
    }
}

impl Answer {
    pub(super) fn value(&self, column: Column) -> f64 {
        self.solution.var_value(column.0)
    }
}
