//! What stands in `validation/inference_points.csv`, typed, and what the rules make of a line.

use crate::checkout;
use anyhow::{Context, Result};
use flyball_perf::architecture::Architecture;
use flyball_perf::engine::Engine;
use flyball_perf::hardware::Accelerator;
use flyball_perf::layout::ServingLayout;
use flyball_perf::precision::Dtype;
use serde::Deserialize;
use std::collections::BTreeMap;

/// One line, as published. Empty columns are `None`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Point {
    pub(super) id: String,
    pub(super) suite: String,
    pub(super) model: String,
    pub(super) hardware: String,
    pub(super) engine: String,
    pub(super) precision: String,
    pub(super) mode: String,
    pub(super) tp: Option<f64>,
    pub(super) pp: Option<f64>,
    pub(super) ep: Option<f64>,
    pub(super) attn_dp: Option<f64>,
    pub(super) isl: Option<f64>,
    pub(super) osl: Option<f64>,
    pub(super) concurrency: Option<f64>,
    pub(super) request_rate: Option<f64>,
    pub(super) out_tok_s: Option<f64>,
    pub(super) ttft_ms_mean: Option<f64>,
    pub(super) tpot_ms_mean: Option<f64>,
    pub(super) notes: String,
}

impl Point {
    /// Nothing is fitted on such a row or chosen by it.
    pub(super) fn sealed(&self) -> bool {
        const SUITES: [&str; 5] = [
            "trtllm-1.2",
            "llmservingsim-bench",
            "blis-sim2real-h100-300req",
            "vultr-b200-vllm",
            "mlperf-inference-4.1",
        ];
        SUITES.contains(&self.suite.as_str())
            || ["B300-SXM", "GB300"].contains(&self.hardware.as_str())
            || self.model == "moonshotai/Kimi-K2.5"
    }
}

/// How the load was made, which decides what runs at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Load {
    /// So many clients, each waiting for its answer before it asks again.
    Closed(f64),
    /// The same, and all begin at once and stay together.
    InStep(f64),
    /// Decode workers of a disaggregated deployment, with so many requests each.
    Pool(f64),
    /// So many requests per second.
    Open(f64),
    /// All requests are queued at the start.
    Full,
}

/// The formats that the rows name, after the rules made one word of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Precision {
    Bf16,
    Fp8,
    Fp4,
    Int4,
}

impl Precision {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::Fp8 => "fp8",
            Self::Fp4 => "fp4",
            Self::Int4 => "int4",
        }
    }
}

/// A row that the model is asked about.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) suite: String,
    /// Name in `catalog/models`.
    pub(super) shape: String,
    pub(super) model: Architecture,
    pub(super) accelerator: &'static Accelerator,
    pub(super) engine: Engine,
    pub(super) cache: Dtype,
    pub(super) layout: ServingLayout,
    /// The publisher does not say whether experts or attention were split; the better one counts.
    pub(super) free_layout: bool,
    pub(super) load: Load,
    pub(super) input: f64,
    pub(super) output: f64,
    /// Seconds.
    pub(super) ttft: Option<f64>,
    /// Seconds per output token, or output tokens per second where the load is full.
    pub(super) measured: f64,
    /// Model, accelerator, engine, precision and lengths: rows that differ in load and layout.
    pub(super) series: String,
    /// Model as written, accelerator, engine and precision: what quarantine judges.
    pub(super) family: String,
    pub(super) fold: u32,
    pub(super) sealed: bool,
}

impl Row {
    pub(super) fn saturated(&self) -> bool {
        self.load == Load::Full
    }

    /// Clients of a closed loop.
    pub(super) fn clients(&self) -> Option<f64> {
        match self.load {
            Load::Closed(clients) | Load::InStep(clients) => Some(clients),
            Load::Pool(_) | Load::Open(_) | Load::Full => None,
        }
    }

    pub(super) fn moe(&self) -> bool {
        self.model.feed_forward.experts.is_some()
    }

    pub(super) fn part(&self) -> &'static str {
        self.accelerator.id.as_str()
    }
}

fn text(file: &str) -> Result<String> {
    let path = checkout::root()?.join("validation").join(file);
    std::fs::read_to_string(&path).with_context(|| format!("reading validation/{file}"))
}

/// All lines of a file in `validation/`.
fn lines<T: for<'a> Deserialize<'a>>(file: &str) -> Result<Vec<T>> {
    let text = text(file)?;
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().collect::<Result<_, _>>().with_context(|| format!("validation/{file}"))
}

/// Every published serving measurement.
pub(super) fn points() -> Result<Vec<Point>> {
    lines("inference_points.csv")
}

/// Which shape of the catalogue a model's name means; names that mean none are absent.
pub(super) fn shapes() -> Result<BTreeMap<String, String>> {
    #[derive(Deserialize)]
    struct Line {
        name: String,
        catalog_model: Option<String>,
    }
    let known = |line: Line| Some((line.name, line.catalog_model.filter(|name| !name.is_empty())?));
    Ok(lines("models.csv")?.into_iter().filter_map(known).collect())
}

/// What another planner predicts for a row, in seconds per token; `None` where it refuses.
pub(super) fn peer() -> Result<BTreeMap<String, Option<f64>>> {
    #[derive(Deserialize)]
    struct Line {
        point_id: String,
        aic_tpot_ms: Option<f64>,
    }
    let seconds = |line: Line| (line.point_id, line.aic_tpot_ms.map(|ms| ms * 1e-3));
    Ok(lines("peer_aiconfigurator_0.12.0.csv")?.into_iter().map(seconds).collect())
}
