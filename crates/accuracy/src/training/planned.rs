//! How far a plan is from what people measured: the width of an answer that chooses the layout itself.
//!
//! The other scores tell the model the layout that was run. A plan does not know it: it takes the quickest
//! layout that fits, with the framework as it is today, and who runs it takes what they have. So every
//! development row is asked as a user would ask it (model, accelerators, sequences, precision) with its suite
//! left out of the fit, and what was measured per token is held against the first choice.

use super::folds;
use super::rows::Point;
use super::unknowns::fitted;
use crate::section::Table;
use anyhow::Result;
use flyball_figures::quantile::quantile;
use flyball_perf::catalog::Catalog;
use flyball_perf::evidence::Intervals;
use flyball_perf::search::part::OfferedPart;
use flyball_perf::search::train::{Reliability, Size, TrainQuestion, train};
use flyball_perf::training::{Framework, TrainingCoefficients};
use std::collections::{BTreeMap, BTreeSet};

/// `ln(measured / planned)` of every dense development row that a plan is found for, by suite.
pub(super) fn errors(
    development: &[&Point],
    catalog: &Catalog,
) -> Result<BTreeMap<&'static str, Vec<f64>>> {
    let suites: BTreeSet<&'static str> = development.iter().map(|one| folds::suite(one)).collect();
    let mut found = BTreeMap::new();
    for suite in suites {
        let (own, others): (Vec<&Point>, Vec<&Point>) =
            development.iter().partition(|point| folds::suite(point) == suite);
        let coefficients = TrainingCoefficients::of(&fitted(&others)?)?;
        let logs: Vec<f64> =
            own.iter().filter_map(|point| error(point, catalog, &coefficients)).collect();
        found.insert(suite, logs);
    }
    Ok(found)
}

fn error(point: &Point, catalog: &Catalog, coefficients: &TrainingCoefficients) -> Option<f64> {
    let step = point.question.as_ref().filter(|step| !point.experts && !step.run.lora)?;
    let mut accelerator = catalog.accelerator(&point.row.hardware).ok()?.clone();
    // What a row states of its network (R10), whoever asks would state too.
    accelerator.scale_out.bandwidth = step.network;
    let part = OfferedPart { accelerator: &accelerator, offers: Vec::new() };
    let question = TrainQuestion {
        model: &step.architecture,
        tokens: 1e12,
        sequence: step.run.sequence,
        global_batch: step.run.global_batch,
        math: step.run.math,
        framework: as_named(point.framework),
        parts: &[part],
        all: &catalog.accelerators,
        size: Size::Gpus(point.row.n_gpus as u32),
        confidence: 0.8,
        most_gpus: 0,
        reliability: Reliability::default(),
    };
    let plan = train(&question, coefficients, &Intervals::builtin(), &mut |_| {});
    let first = plan.ranked.first()?;
    let gpus = f64::from(first.gpus.get());
    let planned = gpus * first.step.total() / first.global_batch;
    let measured = point.row.n_gpus * point.seconds / step.run.global_batch;
    Some((measured / planned).ln())
}

/// What a user can name: everything that gathers weights is FSDP.
fn as_named(framework: Framework) -> Framework {
    match framework {
        Framework::Fsdp | Framework::Foundry => Framework::Fsdp,
        Framework::Megatron | Framework::OneFlow | Framework::Other => Framework::Megatron,
    }
}

/// The bounds that hold nine in ten: of the rows, and of the suites, whichever is wider on each side, because the
/// next question is of a new suite as often as of an old one.
fn bounds(errors: &BTreeMap<&'static str, Vec<f64>>) -> [f64; 2] {
    let mut all: Vec<f64> = errors.values().flatten().copied().collect();
    let mut weighted: Vec<(f64, f64)> = errors
        .values()
        .flat_map(|logs| logs.iter().map(|log| (*log, 1.0 / logs.len() as f64)))
        .collect();
    weighted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let whole: f64 = weighted.iter().map(|(_, weight)| weight).sum();
    let of_suites = |share: f64| {
        let mut sum = 0.0;
        let reached = weighted.iter().find(|(_, weight)| {
            sum += weight;
            sum >= share * whole
        });
        reached.map_or(0.0, |(log, _)| *log)
    };
    [quantile(&mut all, 0.05).min(of_suites(0.05)), quantile(&mut all, 0.95).max(of_suites(0.95))]
}

pub(super) fn table(errors: &BTreeMap<&'static str, Vec<f64>>) -> Table {
    let cells = |name: &str, logs: &[f64]| {
        let mut logs = logs.to_vec();
        let at = |share: f64, logs: &mut Vec<f64>| format!("{:+.3}", quantile(logs, share));
        vec![
            name.to_owned(),
            logs.len().to_string(),
            at(0.05, &mut logs),
            at(0.5, &mut logs),
            at(0.95, &mut logs),
        ]
    };
    let all: Vec<f64> = errors.values().flatten().copied().collect();
    let mut rows: Vec<Vec<String>> = errors
        .iter()
        .filter(|(_, logs)| !logs.is_empty())
        .map(|(suite, logs)| cells(suite, logs))
        .collect();
    rows.push(cells("all", &all));
    let [low, high] = bounds(errors);
    let bound = |bound: f64| format!("{bound:+.3}");
    rows.push(vec![
        "rows or suites, the wider".to_owned(),
        String::new(),
        bound(low),
        String::new(),
        bound(high),
    ]);
    let columns = ["suite", "rows", "5 %", "median", "95 %"].map(str::to_owned).to_vec();
    let title = "ln(measured / planned): the layout chosen by the plan, suite left out".to_owned();
    Table { title, columns, rows }
}
