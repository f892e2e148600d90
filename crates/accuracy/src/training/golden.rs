//! The port against the numbers of the prototype that the form was found with.

use super::rows::{self, Points};
use crate::training::rows::Point;
use flyball_perf::catalog::Catalog;
use flyball_perf::coefficients::Coefficients;
use flyball_perf::training::{TrainingCoefficients, TrainingHardware};

/// Id and seconds, with the coefficients beside it.
const STEPS: &str = include_str!("golden_steps.csv");
const COEFFICIENTS: &str = include_str!("golden_coefficients.toml");

pub(super) fn points() -> Points {
    let root = crate::checkout::root().unwrap();
    let text = std::fs::read_to_string(root.join("validation/training_points.csv")).unwrap();
    rows::read(&text, &Catalog::builtin()).unwrap()
}

/// The prototype took the mean GEMM fraction over nine parts, two of them twice; the catalogue has
/// ten measured parts. That is the only fact that differs, and it matters for V100 alone.
fn with_the_prototypes_mean(point: &Point, coefficients: &TrainingCoefficients) -> f64 {
    let question = point.question.as_ref().unwrap();
    let mean = (0.956 + 0.956 + 0.89 + 0.89 + 0.864 + 0.799 + 0.778 + 0.872 + 0.883) / 9.0;
    let catalog = Catalog::builtin();
    let v100 = catalog.accelerator("v100-sxm2-16gb").unwrap();
    let mut hardware = TrainingHardware::of(v100, &catalog.accelerators).unwrap();
    hardware.half = 125e12 * mean;
    hardware.network = 1.5625e9;
    question.model.on(&hardware).with(coefficients).step(&question.layout, &question.run).total()
}

#[test]
fn steps_are_those_of_the_prototype() {
    let coefficients =
        TrainingCoefficients::of(&Coefficients::read(COEFFICIENTS).unwrap()).unwrap();
    let points = points().points;
    let mut compared = 0;
    for line in STEPS.lines().skip(1) {
        let (id, seconds) = line.split_once(',').unwrap();
        let seconds: f64 = seconds.parse().unwrap();
        let point = points.iter().find(|point| point.row.id == id).unwrap();
        let predicted = if point.row.suite == "dlperf-v100" {
            with_the_prototypes_mean(point, &coefficients)
        } else {
            point.predicted(&coefficients).unwrap()
        };
        assert!((predicted / seconds - 1.0).abs() < 1e-6, "{id}: {predicted} {seconds}");
        compared += 1;
    }
    assert!(compared > 60, "{compared}");
}

#[test]
fn the_pairs_that_are_called_calibrated_are_those_of_the_rows() {
    use flyball_perf::training::calibrated::PAIRS;
    use std::collections::BTreeSet;
    let catalog = Catalog::builtin();
    let rows: BTreeSet<(_, String)> = points()
        .points
        .iter()
        .filter(|point| !point.sealed && point.question.is_some())
        .map(|point| {
            let part = catalog.accelerator(&point.row.hardware).unwrap();
            (point.framework, part.id.to_string())
        })
        .collect();
    let listed: BTreeSet<(_, String)> =
        PAIRS.into_iter().map(|(framework, part)| (framework, part.to_owned())).collect();
    assert_eq!(rows, listed);
}
