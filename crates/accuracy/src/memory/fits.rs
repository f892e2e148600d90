//! Whether what ran is said to fit, and what failed is not.

use super::models::{Names, narrowest_cache};
use super::rows::{self, BLOCK, GIB};
use anyhow::{Context, Result};
use flyball_core::units::Bytes;
use flyball_perf::catalog::Catalog;
use flyball_perf::layout::ServingLayout;
use flyball_perf::memory::Fit;
use flyball_perf::memory::serving::{Budget, ReplicaMemory};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Columns of inference_points.csv that decide memory.
#[derive(Deserialize)]
struct Ran {
    model: String,
    hardware: String,
    precision: String,
    mode: String,
    n_gpus: Option<u32>,
    tp: Option<u32>,
    pp: Option<u32>,
    attn_dp: Option<u32>,
    isl: Option<f64>,
    osl: Option<f64>,
}

/// Answers about replicas that did run.
#[derive(Default)]
pub(super) struct RanAnswers {
    pub(super) fits: usize,
    pub(super) tight: usize,
    pub(super) does_not_fit: usize,
    /// Models without a shape.
    pub(super) refused: usize,
    /// Rows that are wrongly said not to fit, by configuration.
    pub(super) wrong: BTreeMap<String, usize>,
}

impl RanAnswers {
    fn add(&mut self, fit: Fit, which: impl Fn() -> String) {
        match fit {
            Fit::Fits => self.fits += 1,
            Fit::Tight => self.tight += 1,
            Fit::DoesNotFit => {
                self.does_not_fit += 1;
                *self.wrong.entry(which()).or_default() += 1;
            }
        }
    }

    pub(super) fn false_oom_pct(&self) -> f64 {
        let answered = self.fits + self.tight + self.does_not_fit;
        100.0 * self.does_not_fit as f64 / answered.max(1) as f64
    }
}

/// Asks about every replica of inference_points.csv that served alone.
pub(super) fn ran(text: &str, names: &Names, catalog: &Catalog) -> Result<RanAnswers> {
    let mut answers = RanAnswers::default();
    for row in csv::Reader::from_reader(text.as_bytes()).deserialize() {
        let row: Ran = row.context("a row of inference_points.csv")?;
        if row.mode != "agg" {
            continue;
        }
        let Some(model) = names.model(&row.model, &row.precision) else {
            answers.refused += 1;
            continue;
        };
        let some = |value: Option<u32>| value.unwrap_or(0).max(1);
        let (pipeline, copies) = (some(row.pp), some(row.attn_dp));
        let gpus = row.n_gpus.filter(|gpus| *gpus > 0).unwrap_or(some(row.tp) * pipeline);
        let layout = ServingLayout {
            tensor: (gpus / (pipeline * copies)).max(1),
            pipeline,
            attention_copies: copies,
            whole_experts: false,
        };
        let budget = Budget { cache: Some(narrowest_cache(&row.precision)), ..Budget::default() };
        let usable = catalog.accelerator(&row.hardware)?.usable_memory;
        let context = row.isl.unwrap_or(1024.0) + row.osl.unwrap_or(1024.0);
        let fit = ReplicaMemory::new(&model, layout, budget).fits(usable, context).fit;
        let which = || format!("{} {} on {}, {layout}", row.model, row.precision, row.hardware);
        answers.add(fit, which);
    }
    Ok(answers)
}

/// Asks about every training peak that was measured, on the part that it was measured on.
pub(super) fn peaks(points: &[rows::Row], names: &Names, catalog: &Catalog) -> Result<RanAnswers> {
    let mut answers = RanAnswers::default();
    for row in points.iter().filter(|row| row.param == "peak memory") {
        let usable = catalog.accelerator(&row.hardware)?.usable_memory;
        answers.add(row.peak(names)?.fits(usable).fit, || row.id.clone());
    }
    Ok(answers)
}

/// Replicas that did not start on one H100 with 1,024 requests (llm-d-benchmark,
/// `empirical-vllm-memory-results.md`): model, precision, tokens.
const FAILED: [(&str, &str, f64); 3] = [
    ("Llama-3.3-70B", "fp8", 16_000.0),
    ("deepseek-ai/DeepSeek-R1", "fp8", 16_000.0),
    ("Qwen3-32B", "bf16", 32_000.0),
];

/// Something that was not there, and the answer to it.
pub(super) struct Failed {
    pub(super) what: String,
    pub(super) fit: Fit,
}

/// Asks about what cannot have fitted: replicas that failed, requests just above a measured
/// capacity, and training peaks on a part just too small for them.
pub(super) fn failed(
    points: &[rows::Row],
    names: &Names,
    catalog: &Catalog,
) -> Result<Vec<Failed>> {
    let h100 = catalog.accelerator("h100")?.usable_memory;
    let mut found = Vec::new();
    for (name, precision, context) in FAILED {
        let model = names.model(name, precision).context("a failure of an unknown model")?;
        let budget = Budget { sequences: 1024, ..Budget::default() };
        let fit = ReplicaMemory::new(&model, ServingLayout::ONE, budget).fits(h100, context).fit;
        found.push(Failed { what: format!("{name} {precision} on one H100"), fit });
    }
    for row in points {
        if row.param == "peak memory" {
            let there = Bytes::new((row.measured * 0.999 * GIB) as u64);
            let what = format!("{} on a part that is too small by a thousandth", row.id);
            found.push(Failed { what, fit: row.peak(names)?.fits(there).fit });
        }
        // The one capacity in tokens has no known part.
        let (Ok(part), true) = (catalog.accelerator(&row.hardware), row.param.contains("capacity"))
        else {
            continue;
        };
        let Some(model) = names.model(&row.model, &row.precision) else { continue };
        let tokens = row.measured * BLOCK * 1.001;
        let fit = row.replica(&model)?.fits(part.usable_memory, tokens).fit;
        found.push(Failed { what: format!("{} with a thousandth more tokens", row.id), fit });
    }
    Ok(found)
}
