//! From a row of training_points.csv to what the model is asked.
//!
//! Where publishers leave facts out, `rules` says what stands in for them.

use super::{rules, shapes};
use anyhow::{Context, Result, bail};
use flyball_perf::architecture::Architecture;
use flyball_perf::catalog::Catalog;
use flyball_perf::training::flops::ForwardFlops;
use flyball_perf::training::{
    Framework, Run, TrainingCoefficients, TrainingHardware, TrainingLayout, TrainingModel,
};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The columns of training_points.csv that the model or its rules read.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) suite: String,
    pub(super) model: String,
    pub(super) layers: Option<f64>,
    pub(super) hidden: Option<f64>,
    pub(super) heads: Option<f64>,
    pub(super) kv_heads: Option<f64>,
    pub(super) ffn: Option<f64>,
    pub(super) vocab: Option<f64>,
    pub(super) moe_active_b: Option<f64>,
    pub(super) seq_len: f64,
    pub(super) hardware: String,
    pub(super) n_gpus: f64,
    pub(super) tp: Option<f64>,
    pub(super) pp: Option<f64>,
    pub(super) cp: Option<f64>,
    pub(super) dp: Option<f64>,
    pub(super) vp: Option<f64>,
    pub(super) ep: Option<f64>,
    pub(super) sharding: String,
    pub(super) micro_batch: Option<f64>,
    pub(super) global_batch: f64,
    pub(super) precision: String,
    pub(super) recompute: String,
    pub(super) tokens_per_s_per_gpu: Option<f64>,
    pub(super) tflops_per_gpu: Option<f64>,
    pub(super) mfu_pct: Option<f64>,
    pub(super) notes: String,
}

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
    pub(super) asked: Option<Asked>,
    /// Measured seconds of one step.
    pub(super) seconds: f64,
}

pub(super) struct Asked {
    pub(super) model: TrainingModel,
    pub(super) layout: TrainingLayout,
    pub(super) run: Run,
    /// Operations of one step without recomputation, and the peak of all accelerators.
    pub(super) flops: f64,
    pub(super) peak: f64,
}

/// All rows, and how many each rule touched.
pub(super) struct Points {
    pub(super) points: Vec<Point>,
    pub(super) touched: BTreeMap<&'static str, usize>,
}

pub(super) fn read(text: &str, catalog: &Catalog) -> Result<Points> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let mut read = Points { points: Vec::new(), touched: BTreeMap::new() };
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
                self.touch("R1");
                // A refusal counts as wrong by 100 %, whatever was measured.
                return Ok(Point {
                    row,
                    sealed,
                    framework,
                    experts: false,
                    asked: None,
                    seconds: 1.0,
                });
            }
        };
        if row.suite == "dlperf-v100" {
            self.touch("R10");
            hardware.network = 100e9 / 8.0 / 8.0;
        }
        let (architecture, stood_in) = shapes::architecture(&row)?;
        if stood_in {
            self.touch("R7");
        }
        let layout = self.layout(&row, framework, &architecture)?;
        let run = rules::run(&row, framework);
        let seconds = self.measured(&row, &architecture)?;
        Ok(Point {
            sealed,
            framework,
            experts: architecture.feed_forward.experts.is_some(),
            asked: Some(Asked {
                model: TrainingModel::new(&architecture, &hardware, coefficients),
                layout,
                run,
                flops: flops(&row, &architecture, run.lora),
                peak: row.n_gpus * part.peak.at(run.math),
            }),
            seconds,
            row,
        })
    }

    pub(super) fn touch(&mut self, rule: &'static str) {
        *self.touched.entry(rule).or_default() += 1;
    }
}

/// Operations of a step without recomputation; adapters need no gradients of the weights.
fn flops(row: &Row, architecture: &Architecture, lora: bool) -> f64 {
    let forward = ForwardFlops::of(architecture, row.seq_len);
    let passes = if lora { 2.0 } else { 3.0 };
    let per_token = passes * (forward.layers + forward.head) + 3.0 * forward.attention_square / 2.0;
    row.global_batch * row.seq_len * per_token
}

pub(super) fn whole(value: f64) -> Result<u32> {
    if value.fract() != 0.0 || !(1.0..1e9).contains(&value) {
        bail!("{value} is not a whole number of at least one");
    }
    Ok(value as u32)
}
