//! The fitted numbers of the performance model, each named and explained where it is used.
//!
//! They stand in `catalog/coefficients/`, one file per quantity, written by `cargo xtask accuracy --fit` and by nobody
//! else. A coefficient belongs to the whole model, to an engine or training framework, or to an
//! accelerator; one that an engine or accelerator lacks is the geometric mean of the others, which
//! is also what scoring with that one left out uses.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// Coefficients by name, in three groups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coefficients {
    pub global: BTreeMap<String, f64>,
    /// By engine or framework, then by name.
    pub engine: BTreeMap<String, BTreeMap<String, f64>>,
    /// By accelerator id, then by name.
    #[serde(default)]
    pub accelerator: BTreeMap<String, BTreeMap<String, f64>>,
}

/// The file is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("coefficients: {0}")]
pub struct CoefficientError(String);

const SERVING: &str = include_str!("../../../catalog/coefficients/serving.toml");
const TRAINING: &str = include_str!("../../../catalog/coefficients/training.toml");

impl Coefficients {
    /// Those of the serving model that come with the program.
    pub fn serving() -> Self {
        Self::read(SERVING).expect("tests read the built-in file")
    }

    /// The numbers of training that come with the program.
    pub fn training() -> Self {
        Self::read(TRAINING).expect("tests read the built-in file")
    }

    pub fn read(text: &str) -> Result<Self, CoefficientError> {
        let read: Self =
            toml::from_str(text).map_err(|error| CoefficientError(error.to_string()))?;
        let wrong = read
            .named()
            .find(|(_, value)| !(value.is_finite() && *value > 0.0))
            .map(|(name, value)| format!("{name} is {value}, and must be above zero"));
        wrong.map_or(Ok(read), |problem| Err(CoefficientError(problem)))
    }

    /// A coefficient of the whole model.
    pub fn global(&self, name: &str) -> Result<f64, CoefficientError> {
        self.global.get(name).copied().ok_or_else(|| CoefficientError(format!("no `{name}`")))
    }

    /// A coefficient of an engine, or the mean of the others if it has none.
    pub fn engine(&self, engine: &str, name: &str) -> Result<f64, CoefficientError> {
        of(&self.engine, engine, name)
    }

    /// A coefficient of an accelerator, or the mean of the others if it has none.
    pub fn accelerator(&self, id: &str, name: &str) -> Result<f64, CoefficientError> {
        of(&self.accelerator, id, name)
    }

    /// Every coefficient with its full name.
    pub fn named(&self) -> impl Iterator<Item = (String, f64)> {
        let global = self.global.iter().map(|(name, value)| (name.clone(), *value));
        let within = |group: &BTreeMap<String, BTreeMap<String, f64>>| {
            group
                .iter()
                .flat_map(|(owner, values)| {
                    values.iter().map(move |(name, value)| (format!("{owner}.{name}"), *value))
                })
                .collect::<Vec<_>>()
        };
        global.chain(within(&self.engine)).chain(within(&self.accelerator))
    }
}

fn of(
    group: &BTreeMap<String, BTreeMap<String, f64>>,
    owner: &str,
    name: &str,
) -> Result<f64, CoefficientError> {
    if let Some(value) = group.get(owner).and_then(|values| values.get(name)) {
        return Ok(*value);
    }
    let others: Vec<f64> = group.values().filter_map(|values| values.get(name)).copied().collect();
    if others.is_empty() {
        return Err(CoefficientError(format!("no `{name}` for `{owner}`, nor for any other")));
    }
    Ok((others.iter().map(|value| value.ln()).sum::<f64>() / others.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "[global]\nkv = 0.9\n[engine.vllm]\nstep = 4.0\n[engine.sglang]\nstep = 1.0\n";

    #[test]
    fn an_engine_without_its_own_gets_the_mean_of_the_others() {
        let read = Coefficients::read(TEXT).unwrap();
        assert_eq!(read.engine("vllm", "step"), Ok(4.0));
        assert!((read.engine("other", "step").unwrap() - 2.0).abs() < 1e-12);
        assert!(read.engine("vllm", "unheard").is_err());
        assert!(read.accelerator("h100", "scale").is_err());
    }

    #[test]
    fn the_built_in_files_are_read() {
        assert!(Coefficients::serving().global.len() <= 9);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Coefficients::read("[global]\nkv = -1.0\n[engine]\n").is_err());
        assert!(Coefficients::read("[global]\nkv = 1.0\n").is_err());
        assert!(Coefficients::read("[global]\n[engine]\n[extra]\n").is_err());
    }
}
