//! Predicting rows from the others.

use super::calibrate::{RowQuestion, calibrate};
use super::rows::Row;
use flyball_figures::quantile::quantile;
use flyball_perf::coefficients::Coefficients;
use std::collections::{BTreeMap, BTreeSet};

/// What is left out together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// A fifth of the series.
    Series,
    Accelerator,
    Model,
    Engine,
}

impl Left {
    pub(super) const ALL: [Self; 4] = [Self::Series, Self::Accelerator, Self::Model, Self::Engine];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Series => "series",
            Self::Accelerator => "gpu-out",
            Self::Model => "model-out",
            Self::Engine => "engine-out",
        }
    }

    fn key(self, row: &Row) -> String {
        match self {
            Self::Series => row.fold.to_string(),
            Self::Accelerator => row.part().to_owned(),
            Self::Model => row.shape.clone(),
            Self::Engine => row.engine.name().to_owned(),
        }
    }

    /// Whether the saturated rows of what is left out are left out too. A series is one of
    /// latencies, so it takes none of them with it; nor does an engine, of which all are.
    const fn takes_saturated(self) -> bool {
        matches!(self, Self::Accelerator | Self::Model)
    }
}

/// Rows by what they are for.
pub(super) struct Sorted {
    /// Latencies that are fitted and held out in turn.
    pub(super) latency: Vec<RowQuestion>,
    /// Throughputs that are fitted.
    pub(super) saturated: Vec<RowQuestion>,
    /// Throughputs of an older version of the engine, never fitted.
    pub(super) older: Vec<RowQuestion>,
    /// Open loops, never fitted.
    pub(super) open: Vec<RowQuestion>,
    pub(super) sealed: Vec<RowQuestion>,
}

impl Sorted {
    pub(super) fn of(rows: Vec<Row>) -> Self {
        let mut sorted = Self {
            latency: Vec::new(),
            saturated: Vec::new(),
            older: Vec::new(),
            open: Vec::new(),
            sealed: Vec::new(),
        };
        for row in rows {
            let to = match row.suite.as_str() {
                _ if row.sealed => &mut sorted.sealed,
                "trtllm-1.0" => &mut sorted.saturated,
                "trtllm-0.20" => &mut sorted.older,
                suite if suite.starts_with("aiconfigurator") => &mut sorted.latency,
                _ => &mut sorted.open,
            };
            to.push(RowQuestion::new(row));
        }
        sorted
    }

    /// Calibrates on the rows that count: all in the open but for quarantined families.
    pub(super) fn calibrated(&self, quarantined: &BTreeSet<String>) -> Coefficients {
        let counts = |one: &&RowQuestion| !quarantined.contains(&one.row.family);
        calibrate(&self.latency.iter().filter(counts).chain(&self.saturated).collect::<Vec<_>>())
    }

    /// A prediction for every latency, each from a fit that has not seen what it is left out with.
    pub(super) fn left_out(&self, left: Left, quarantined: &BTreeSet<String>) -> Vec<f64> {
        let keys: Vec<String> = self.latency.iter().map(|one| left.key(&one.row)).collect();
        let mut predicted = vec![f64::NAN; keys.len()];
        for group in keys.iter().collect::<BTreeSet<_>>() {
            let coefficients = self.without(left, group, quarantined);
            for (place, one) in self.latency.iter().enumerate() {
                if keys[place] == *group {
                    predicted[place] = one.answer(&coefficients).unwrap_or(f64::NAN);
                }
            }
        }
        predicted
    }

    /// The fit that has not seen a group.
    pub(super) fn without(
        &self,
        left: Left,
        group: &str,
        quarantined: &BTreeSet<String>,
    ) -> Coefficients {
        let counts = |one: &&RowQuestion| {
            left.key(&one.row) != group && !quarantined.contains(&one.row.family)
        };
        let saturated = self
            .saturated
            .iter()
            .filter(|one| !(left.takes_saturated() && left.key(&one.row) == group));
        calibrate(&self.latency.iter().filter(counts).chain(saturated).collect::<Vec<_>>())
    }

    /// Predictions for the fitted throughputs, each model left out of its own.
    pub(super) fn saturated_without_model(&self, quarantined: &BTreeSet<String>) -> Vec<f64> {
        let shapes: BTreeSet<&str> =
            self.saturated.iter().map(|one| one.row.shape.as_str()).collect();
        let mut predicted = vec![f64::NAN; self.saturated.len()];
        for shape in shapes {
            let coefficients = self.without(Left::Model, shape, quarantined);
            for (place, one) in self.saturated.iter().enumerate() {
                if one.row.shape == shape {
                    predicted[place] = one.answer(&coefficients).unwrap_or(f64::NAN);
                }
            }
        }
        predicted
    }
}

/// A family whose rows are so far off, and so much to one side, that something other than the model
/// differs: speculative decoding, several replicas, another machine.
#[derive(Clone, Debug)]
pub(super) struct Quarantined {
    pub(super) family: String,
    pub(super) rows: usize,
    /// Median of `ln(predicted / measured)`.
    pub(super) median: f64,
    pub(super) one_sided: f64,
}

/// Three times the usual distance of a family (0.137 when the rule was made), to one side in nine
/// rows of ten, in three or more. Not three times the distance of today: a better model would then
/// quarantine more, and so look better than it is.
pub(super) const FAR: f64 = 0.41;
const ONE_SIDED: f64 = 0.9;
const FEWEST: usize = 3;

/// The families to quarantine, by errors of a series hold-out fitted on all rows.
pub(super) fn quarantine(rows: &[RowQuestion], predicted: &[f64]) -> Vec<Quarantined> {
    let mut families: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (one, predicted) in rows.iter().zip(predicted) {
        let error = (predicted / one.row.measured).ln();
        families.entry(&one.row.family).or_default().push(error);
    }
    let judged: Vec<Quarantined> = families
        .into_iter()
        .map(|(family, mut errors)| {
            let above = errors.iter().filter(|error| **error > 0.0).count();
            let most = above.max(errors.len() - above);
            Quarantined {
                family: family.to_owned(),
                rows: errors.len(),
                one_sided: most as f64 / errors.len() as f64,
                median: quantile(&mut errors, 0.5),
            }
        })
        .collect();
    let far = |one: &Quarantined| {
        one.median.abs() > FAR && one.one_sided >= ONE_SIDED && one.rows >= FEWEST
    };
    judged.into_iter().filter(far).collect()
}
