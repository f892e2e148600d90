//! How sure a prediction is, by what stands behind it.
//!
//! A prediction is as good as the rows it was calibrated on are like what is asked. Four rungs say
//! how like: the same model, accelerator and engine; the same accelerator and engine; neither; and no
//! kernel measured at all. Each rung has its own width, taken from errors on rows that were held out
//! in just that way, so that nine in ten measurements lie inside. The widths and the calibrated
//! combinations stand in `catalog/coefficients/intervals.toml`, written with the coefficients.

use crate::architecture::Architecture;
use crate::catalog;
use crate::engine::Engine;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use thiserror::Error;

/// What stands behind a prediction, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// Calibrated on rows of this model, accelerator and engine.
    OwnData,
    /// Calibrated on rows of this accelerator and engine with other models.
    SameParts,
    /// Kernels were measured on this accelerator; serving with this engine was not.
    OtherParts,
    /// Nothing was measured on this accelerator. Nobody has checked the width of this rung.
    DatasheetOnly,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OwnData => "own data",
            Self::SameParts => "same GPU",
            Self::OtherParts => "other GPU",
            Self::DatasheetOnly => "datasheet",
        })
    }
}

/// How far the truth may lie from a point, as factors on it: nine in ten lie between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub low: f64,
    pub high: f64,
}

/// Held-out errors fall off like a Laplace distribution: half of them lie within 0.3 of the width
/// that holds nine tenths (7 and 23 %), where a normal distribution would have them within 0.4. Its
/// scale is that width over ln 10.
const NINE_TENTHS: f64 = std::f64::consts::LN_10;

impl Spread {
    /// The lowest and highest value around a point.
    pub fn around(&self, point: f64) -> (f64, f64) {
        (point * self.low, point * self.high)
    }

    /// How likely the truth is at most `bound`, given the point.
    pub fn chance_within(&self, point: f64, bound: f64) -> f64 {
        let distance = (bound / point).ln();
        let side = if distance < 0.0 { -self.low.ln() } else { self.high.ln() };
        let scale = (side / NINE_TENTHS).max(f64::MIN_POSITIVE);
        let beyond = 0.5 * (-distance.abs() / scale).exp();
        if distance < 0.0 { beyond } else { 1.0 - beyond }
    }

    /// What the truth is at most in this share of all cases, given the point.
    pub fn bound(&self, point: f64, chance: f64) -> f64 {
        let (side, beyond) =
            if chance < 0.5 { (self.low, chance) } else { (self.high, 1.0 - chance) };
        let scale = side.ln().abs() / NINE_TENTHS;
        let distance = -scale * (2.0 * beyond.max(f64::MIN_POSITIVE)).ln();
        point * if chance < 0.5 { -distance } else { distance }.exp()
    }

    fn of(logs: [f64; 2], wider: f64) -> Self {
        Self { low: (logs[0] * wider).exp(), high: (logs[1] * wider).exp() }
    }
}

/// The widths of all rungs, and which combinations were calibrated.
#[derive(Clone, Debug, PartialEq)]
pub struct Intervals {
    file: IntervalFile,
    /// Accelerator and engine of the calibrated combinations.
    parts: BTreeSet<(String, String)>,
}

/// The file is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("intervals: {0}")]
pub struct IntervalFileError(String);

/// Bounds of `ln(truth / point)`, by rung.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rungs {
    own_data: [f64; 2],
    same_parts: [f64; 2],
    other_parts: [f64; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kinds<T> {
    dense: T,
    moe: T,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct IntervalFile {
    tpot: Kinds<Rungs>,
    saturation: Kinds<Rungs>,
    ttft: Kinds<Rungs>,
    training_step: Kinds<[f64; 2]>,
    /// The same where the plan chooses the layout.
    training_plan: [f64; 2],
    /// Shapes by accelerator, then by engine.
    calibrated: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
}

/// How much wider than beside measured kernels: a guess, and reported as one.
const UNVALIDATED: f64 = 1.5;

impl Intervals {
    /// Those that come with the program.
    pub fn builtin() -> Self {
        Self::read(include_str!("../../../catalog/coefficients/intervals.toml"))
            .expect("tests read the built-in file")
    }

    pub fn read(text: &str) -> Result<Self, IntervalFileError> {
        let file: IntervalFile =
            toml::from_str(text).map_err(|error| IntervalFileError(error.to_string()))?;
        let rungs = |kinds: &Kinds<Rungs>| {
            [kinds.dense, kinds.moe]
                .map(|rungs| [rungs.own_data, rungs.same_parts, rungs.other_parts])
                .concat()
        };
        let mut bounds: Vec<[f64; 2]> =
            [&file.tpot, &file.saturation, &file.ttft].into_iter().flat_map(rungs).collect();
        bounds.extend([file.training_step.dense, file.training_step.moe, file.training_plan]);
        if let Some(wrong) = bounds.iter().find(|[low, high]| !(*low <= 0.0 && *high >= 0.0)) {
            return Err(IntervalFileError(format!("{wrong:?} does not go from below 0 to above")));
        }
        let parts = file
            .calibrated
            .iter()
            .flat_map(|(part, engines)| engines.keys().map(|name| (part.clone(), name.clone())))
            .collect();
        Ok(Self { file, parts })
    }

    /// What stands behind predictions for this model, accelerator id and engine.
    pub fn evidence(&self, model: &Architecture, accelerator: &str, engine: Engine) -> Evidence {
        if !catalog::kernels_measured(accelerator) {
            return Evidence::DatasheetOnly;
        }
        let shapes = self.file.calibrated.get(accelerator).and_then(|part| part.get(engine.name()));
        if shapes.is_some_and(|shapes| shapes.contains(&shape_key(model))) {
            Evidence::OwnData
        } else if self.parts.contains(&(accelerator.to_owned(), engine.name().to_owned())) {
            Evidence::SameParts
        } else {
            Evidence::OtherParts
        }
    }

    /// Time per output token.
    pub fn tpot(&self, evidence: Evidence, moe: bool) -> Spread {
        self.file.tpot.of(moe).at(evidence)
    }

    /// Tokens per second when there is always another request waiting.
    pub fn saturation(&self, evidence: Evidence, moe: bool) -> Spread {
        self.file.saturation.of(moe).at(evidence)
    }

    /// Time to the first token. Wide: it depends on how clients begin, which nobody states.
    pub fn ttft(&self, evidence: Evidence, moe: bool) -> Spread {
        self.file.ttft.of(moe).at(evidence)
    }

    /// Time of a training step. With experts it is not validated.
    pub fn training_step(&self, moe: bool, evidence: Evidence) -> Spread {
        let wider = if evidence == Evidence::DatasheetOnly { UNVALIDATED } else { 1.0 };
        Spread::of(*self.file.training_step.of(moe), wider)
    }

    /// Time of a training step in the layout that a plan chooses. What is then run is another layout, version or
    /// network as often as not, so it is never narrower than that of a layout that is known.
    pub fn training_plan(&self, moe: bool, evidence: Evidence) -> Spread {
        let wider = if evidence == Evidence::DatasheetOnly { UNVALIDATED } else { 1.0 };
        let ([low, high], step) = (self.file.training_plan, self.file.training_step.of(moe));
        Spread::of([low.min(step[0]), high.max(step[1])], wider)
    }
}

impl<T> Kinds<T> {
    const fn of(&self, moe: bool) -> &T {
        if moe { &self.moe } else { &self.dense }
    }
}

impl Rungs {
    fn at(&self, evidence: Evidence) -> Spread {
        match evidence {
            Evidence::OwnData => Spread::of(self.own_data, 1.0),
            Evidence::SameParts => Spread::of(self.same_parts, 1.0),
            Evidence::OtherParts => Spread::of(self.other_parts, 1.0),
            Evidence::DatasheetOnly => Spread::of(self.other_parts, UNVALIDATED),
        }
    }
}

/// By what calibrated models are told apart: weights and names change, the shape does not.
pub fn shape_key(model: &Architecture) -> String {
    format!("{} {}x{}", model.family, model.hidden, model.layers.total())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models;

    fn model(name: &str) -> Architecture {
        Architecture::from_config(&models::config(name).unwrap()).unwrap()
    }

    #[test]
    fn the_rungs_follow_from_what_was_calibrated() {
        let intervals = Intervals::builtin();
        let llama = model("llama-3.1-70b");
        let on = |part: &str, model: &Architecture| {
            intervals.evidence(model, part, Engine::Vllm).to_string()
        };
        assert_eq!(on("h200-sxm-141gb", &llama), "own data");
        assert_eq!(on("h200-sxm-141gb", &model("phi-4")), "same GPU");
        assert_eq!(on("l40s", &llama), "other GPU");
        assert_eq!(on("mi300x", &llama), "datasheet");
    }

    #[test]
    fn less_evidence_is_never_narrower() {
        let intervals = Intervals::builtin();
        let rungs =
            [Evidence::OwnData, Evidence::SameParts, Evidence::OtherParts, Evidence::DatasheetOnly];
        for moe in [false, true] {
            for pair in rungs.windows(2) {
                let of = |rung: Evidence| {
                    [
                        intervals.tpot(rung, moe),
                        intervals.saturation(rung, moe),
                        intervals.ttft(rung, moe),
                        intervals.training_step(moe, rung),
                        intervals.training_plan(moe, rung),
                    ]
                };
                for (better, worse) in of(pair[0]).into_iter().zip(of(pair[1])) {
                    assert!(worse.low <= better.low && worse.high >= better.high, "{pair:?}");
                }
            }
        }
    }

    #[test]
    fn a_bound_is_kept_as_often_as_was_asked_for() {
        let spread = Spread { low: 0.8, high: 2.5 };
        for chance in [0.05, 0.2, 0.5, 0.8, 0.95] {
            let bound = spread.bound(3.0, chance);
            assert!((spread.chance_within(3.0, bound) - chance).abs() < 1e-9, "{chance}: {bound}");
        }
        assert!((spread.bound(3.0, 0.95) - 7.5).abs() < 1e-9, "the far end of the interval");
    }

    #[test]
    fn a_bound_at_the_point_is_met_half_the_time() {
        let spread = Spread { low: 0.8, high: 1.25 };
        assert_eq!(spread.around(10.0), (8.0, 12.5));
        assert!((spread.chance_within(10.0, 10.0) - 0.5).abs() < 1e-9);
        assert!((spread.chance_within(10.0, 12.5) - 0.95).abs() < 0.01);
        assert!((spread.chance_within(10.0, 8.0) - 0.05).abs() < 0.01);
    }

    #[test]
    fn bounds_that_leave_out_the_point_are_refused() {
        assert!(Intervals::read("tpot = 1").is_err());
    }
}
