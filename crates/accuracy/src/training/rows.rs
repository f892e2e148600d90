//! From a row of training_points.csv to what the model is asked.
//!
//! Where publishers leave facts out, `rules` says what stands in for them.

use super::row::{Row, Touched};
use super::{rules, shapes};
use anyhow::{Context, Result};
use flyball_perf::architecture::Architecture;
use flyball_perf::catalog::Catalog;
use flyball_perf::training::flops::ForwardFlops;
use flyball_perf::training::{
    Framework, TrainingCoefficients, TrainingHardware, TrainingLayout, TrainingModel, TrainingSetup,
};

/// Whole suites that nothing was fitted on or chosen by; so are rows on the parts below.
const SEALED: [&str; 3] = ["megatron-bridge-26.02", "torchtitan-a100", "palm"];
const SEALED_PARTS: [&str; 2] = ["B300-SXM", "GB300"];

/// One measured step and everything needed to predict it.
pub(super) struct Point {
    pub(super) row: Row,
    pub(super) sealed: bool,
    pub(super) framework: Framework,
    pub(super) experts: bool,
    /// `None` when refused.
    pub(super) question: Option<StepQuestion>,
    /// Measured seconds of one step.
    pub(super) seconds: f64,
}

pub(super) struct StepQuestion {
    pub(super) architecture: Architecture,
    /// Bytes per second of the network, per accelerator.
    pub(super) network: f64,
    pub(super) model: TrainingModel,
    pub(super) layout: TrainingLayout,
    pub(super) run: TrainingSetup,
    /// Operations of one step without recomputation, and the peak of all accelerators.
    pub(super) flops: f64,
    pub(super) peak: f64,
}

/// All rows, and how many each rule touched.
pub(super) struct Points {
    pub(super) points: Vec<Point>,
    pub(super) touched: Touched,
}

pub(super) fn read(text: &str, catalog: &Catalog) -> Result<Points> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let mut read = Points { points: Vec::new(), touched: Touched::default() };
    let start = TrainingCoefficients::builtin();
    for row in reader.deserialize() {
        let row: Row = row.context("a row of training_points.csv")?;
        let id = row.id.clone();
        let point = read.point(row, catalog, &start).with_context(|| format!("row {id}"))?;
        read.points.push(point);
    }
    Ok(read)
}

impl Points {
    fn point(
        &mut self,
        row: Row,
        catalog: &Catalog,
        coefficients: &TrainingCoefficients,
    ) -> Result<Point> {
        let part = catalog.accelerator(&row.hardware)?;
        let sealed =
            SEALED.contains(&row.suite.as_str()) || SEALED_PARTS.contains(&row.hardware.as_str());
        let framework = rules::framework(&row);
        let mut hardware = match TrainingHardware::of(part, &catalog.accelerators) {
            Ok(hardware) => hardware,
            Err(_) => {
                self.touched.by("R1");
                // A refusal counts as wrong by 100 %, whatever was measured.
                return Ok(Point {
                    row,
                    sealed,
                    framework,
                    experts: false,
                    question: None,
                    seconds: 1.0,
                });
            }
        };
        if row.suite == "dlperf-v100" {
            self.touched.by("R10");
            hardware.network = 100e9 / 8.0 / 8.0;
        }
        let (architecture, stood_in) = shapes::architecture(&row)?;
        if stood_in {
            self.touched.by("R7");
        }
        let layout = self.touched.layout(&row, framework, &architecture)?;
        let run = rules::run(&row, framework);
        let seconds = self.touched.measured(&row, &architecture)?;
        Ok(Point {
            sealed,
            framework,
            experts: architecture.feed_forward.experts.is_some(),
            question: Some(StepQuestion {
                model: TrainingModel::new(&architecture, &hardware, coefficients),
                layout,
                run,
                flops: flops(&row, &architecture, run.lora),
                peak: row.n_gpus * part.peak.at(run.math),
                network: hardware.network,
                architecture,
            }),
            seconds,
            row,
        })
    }
}

/// Operations of a step without recomputation; adapters need no gradients of the weights.
fn flops(row: &Row, architecture: &Architecture, lora: bool) -> f64 {
    let forward = ForwardFlops::of(architecture, row.seq_len);
    let passes = if lora { 2.0 } else { 3.0 };
    let per_token = passes * (forward.layers + forward.head) + 3.0 * forward.attention_square / 2.0;
    row.global_batch * row.seq_len * per_token
}
