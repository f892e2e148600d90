//! Predictions for rows that the coefficients have not seen.

use super::rows::Point;
use super::unknowns::fitted;
use crate::score::Score;
use anyhow::Result;
use flyball_perf::training::TrainingCoefficients;
use std::collections::BTreeSet;

/// A point with what the model said about it, and which fold it was left out in.
pub(super) struct Predicted<'a> {
    pub(super) point: &'a Point,
    pub(super) seconds: Option<f64>,
    pub(super) fold: &'static str,
}

/// Constant utilisation, the usual rule of thumb.
const UTILISATION: f64 = 0.38;

/// For each fold, fits on the other development points and predicts the fold's own.
pub(super) fn left_out<'a>(
    development: &[&'a Point],
    fold_of: fn(&Point) -> &'static str,
) -> Result<Vec<Predicted<'a>>> {
    let folds: BTreeSet<&'static str> = development.iter().map(|point| fold_of(point)).collect();
    let mut all = Vec::new();
    for fold in folds {
        let (own, others): (Vec<&Point>, Vec<&Point>) =
            development.iter().partition(|point| fold_of(point) == fold);
        let coefficients = TrainingCoefficients::of(&fitted(&others)?)?;
        all.extend(predictions(&own, &coefficients, fold));
    }
    Ok(all)
}

pub(super) fn predictions<'a>(
    points: &[&'a Point],
    coefficients: &TrainingCoefficients,
    fold: &'static str,
) -> Vec<Predicted<'a>> {
    points
        .iter()
        .map(|point| Predicted { point, seconds: point.predicted(coefficients), fold })
        .collect()
}

/// The family of parts that is left out together.
pub(super) fn family(point: &Point) -> &'static str {
    let name = point.row.hardware.as_str();
    ["A100", "H100", "H200", "GB200", "B200", "GB300", "B300", "V100"]
        .into_iter()
        .find(|family| name.starts_with(family))
        .unwrap_or("other")
}

/// The suite, as a name that outlives the rows.
pub(super) fn suite(point: &Point) -> &'static str {
    [
        "dlperf-v100",
        "megatron-bridge-25.09",
        "megatron-bridge-25.11",
        "megatron-bridge-26.02",
        "megatron-core-h100",
        "megatron-sc21-a100",
        "megatron-seqpar-a100",
        "meta-llama3",
        "mosaicml-llm-foundry",
        "nemo-24.07-h100-fp8",
        "nemo-24.07-h100-fp8-finetune",
        "palm",
        "torchtitan",
        "torchtitan-a100",
    ]
    .into_iter()
    .find(|suite| *suite == point.row.suite)
    .unwrap_or("unknown suite")
}

/// The score of some predictions.
pub(super) fn score<'p, 'a: 'p>(predicted: impl Iterator<Item = &'p Predicted<'a>>) -> Score {
    let mut score = Score::default();
    predicted.for_each(|one| score.add(one.seconds, one.point.seconds));
    score
}

/// What simpler ways give for the same points: constant utilisation, and the peak.
pub(super) fn baselines<'p, 'a: 'p>(
    predicted: impl Iterator<Item = &'p Predicted<'a>>,
) -> Vec<(&'static str, Score)> {
    let (mut constant, mut roofline) = (Score::default(), Score::default());
    for one in predicted {
        let question = one.point.question.as_ref();
        constant.add(
            question.map(|question| question.flops / (question.peak * UTILISATION)),
            one.point.seconds,
        );
        roofline.add(
            question.map(|question| question.with_recompute() / question.peak),
            one.point.seconds,
        );
    }
    vec![("constant MFU 38 %", constant), ("peak", roofline)]
}

impl super::rows::StepQuestion {
    /// Operations of a step with full recomputation, if there is any.
    fn with_recompute(&self) -> f64 {
        let full = self.layout.recompute == flyball_perf::training::Recompute::Full;
        self.flops * if full { 4.0 / 3.0 } else { 1.0 }
    }
}
