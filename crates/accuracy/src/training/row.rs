//! A row of training_points.csv as it stands there.

use anyhow::{Result, bail};
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

/// How many rows each rule touched.
#[derive(Default)]
pub(super) struct Touched(pub(super) BTreeMap<&'static str, usize>);

impl Touched {
    pub(super) fn by(&mut self, rule: &'static str) {
        *self.0.entry(rule).or_default() += 1;
    }
}

pub(super) fn whole(value: f64) -> Result<u32> {
    if value.fract() != 0.0 || !(1.0..1e9).contains(&value) {
        bail!("{value} is not a whole number of at least one");
    }
    Ok(value as u32)
}
