//! The coefficients to find: where to start, how far to go, and what each one means.

use super::rows::Point;
use crate::fit::{Prior, Unknown, fit};
use anyhow::Result;
use flyball_perf::coefficients::Coefficients;
use flyball_perf::training::{Framework, TrainingCoefficients};
use std::collections::{BTreeMap, BTreeSet};

/// One coefficient by its name in the file.
pub(super) struct Meant {
    pub(super) name: &'static str,
    start: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) meaning: &'static str,
}

pub(super) const GLOBAL: [Meant; 6] = [
    Meant {
        name: "elementwise_traffic",
        start: 1.5,
        low: 0.3,
        high: 6.0,
        meaning: "memory traffic of norms, residuals, activations and casts, relative to an ideally \
                  fused layer at peak bandwidth",
    },
    Meant {
        name: "exposed_share",
        start: 0.2,
        low: 0.01,
        high: 1.0,
        meaning: "share of the communication between copies and stages that could be hidden and is \
                  not",
    },
    Meant {
        name: "layer_launch_seconds",
        start: 30e-6,
        low: 1e-6,
        high: 1e-3,
        meaning: "launch cost of a layer and micro-batch, forward and backward (weakly determined)",
    },
    Meant {
        name: "expert_launch_seconds",
        start: 3e-4,
        low: 1e-5,
        high: 3e-3,
        meaning: "launch cost of one expert on its accelerator; starts at 20 kernels x 3 passes x \
                  5 us",
    },
    Meant {
        name: "all_to_all_share",
        start: 1.0,
        low: 0.05,
        high: 1.5,
        meaning: "share of the all-to-all that is exposed, when every copy of a token is counted",
    },
    Meant {
        name: "network_share",
        start: 0.8,
        low: 0.4,
        high: 1.0,
        meaning: "share of the network's line rate that rings reach",
    },
];

/// Per framework; the frameworks are those whose rows say something about it.
pub(super) const OWN: [(Meant, &[Framework]); 3] = [
    (
        Meant {
            name: "linear_efficiency",
            start: 0.85,
            low: 0.4,
            high: 1.2,
            meaning: "matrix products of the layers relative to benchmarked large ones: shapes, \
                      power, contention",
        },
        &[Framework::Foundry, Framework::Megatron, Framework::Fsdp, Framework::OneFlow],
    ),
    (
        Meant {
            name: "attention_efficiency",
            start: 0.5,
            low: 0.1,
            high: 1.2,
            meaning: "fused attention relative to the same",
        },
        &[Framework::Foundry, Framework::Megatron, Framework::Fsdp],
    ),
    (
        Meant {
            name: "tensor_exposed_share",
            start: 0.7,
            low: 0.02,
            high: 1.5,
            meaning: "share of the collectives inside layers that is exposed",
        },
        &[Framework::Megatron, Framework::Fsdp, Framework::OneFlow],
    ),
];

/// How far (in logarithm) a number of all may be from its start, and one framework's from the
/// others' mean, before it costs as much as a row that is 10 % off.
const GLOBAL_WIDTH: f64 = 0.7;
const OWN_WIDTH: f64 = 0.3;

/// Finds the coefficients from these points. Refused and sealed points must not be among them.
pub(super) fn fitted(points: &[&Point]) -> Result<Coefficients> {
    assert!(points.iter().all(|point| !point.sealed), "a sealed row must never enter a fit");
    let there: BTreeSet<Framework> = points.iter().map(|point| point.framework).collect();
    let mut places: Vec<(Option<Framework>, &'static str)> = Vec::new();
    let (mut unknowns, mut priors) = (Vec::new(), Vec::new());
    for meant in &GLOBAL {
        places.push((None, meant.name));
        unknowns.push(unknown(meant));
        priors.push(Prior::Start { width: GLOBAL_WIDTH });
    }
    for (meant, frameworks) in &OWN {
        for framework in frameworks.iter().filter(|framework| there.contains(framework)) {
            places.push((Some(*framework), meant.name));
            unknowns.push(unknown(meant));
            priors.push(Prior::Mean { group: meant.name, width: OWN_WIDTH });
        }
    }
    let errors = |values: &[f64], out: &mut Vec<f64>| {
        let resolved = TrainingCoefficients::of(&named(&places, values));
        for point in points {
            let predicted = match &resolved {
                Ok(coefficients) => point.predicted(coefficients).unwrap_or(f64::NAN),
                Err(_) => f64::NAN,
            };
            out.push((predicted / point.seconds).ln());
        }
    };
    let found = fit(&unknowns, &priors, &weights(points), &errors);
    Ok(named(&places, &found))
}

impl Point {
    /// Seconds of a step, unless it is refused.
    pub(super) fn predicted(&self, coefficients: &TrainingCoefficients) -> Option<f64> {
        let question = self.question.as_ref()?;
        Some(question.model.with(coefficients).step(&question.layout, &question.run).total())
    }
}

/// A suite of 200 rows is one publisher's habit and not 200 facts, so a suite weighs as the square
/// root of its rows does.
fn weights(points: &[&Point]) -> Vec<f64> {
    let mut sizes: BTreeMap<&str, f64> = BTreeMap::new();
    for point in points {
        *sizes.entry(&point.row.suite).or_default() += 1.0;
    }
    let squared: Vec<f64> =
        points.iter().map(|point| 1.0 / sizes[point.row.suite.as_str()]).collect();
    let mean = squared.iter().sum::<f64>() / squared.len() as f64;
    squared.iter().map(|weight| (weight / mean).sqrt()).collect()
}

fn unknown(meant: &Meant) -> Unknown {
    let Meant { start, low, high, .. } = *meant;
    Unknown { start, low, high }
}

fn named(places: &[(Option<Framework>, &'static str)], values: &[f64]) -> Coefficients {
    let mut found = Coefficients::default();
    for ((framework, name), value) in places.iter().zip(values) {
        let group = match framework {
            None => &mut found.global,
            Some(framework) => found.engine.entry(framework.name().to_owned()).or_default(),
        };
        group.insert((*name).to_owned(), *value);
    }
    found
}
