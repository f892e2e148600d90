//! From a row of memory_points.csv to a prediction in the row's own unit.

use super::models::Names;
use crate::training::shapes::Plain;
use anyhow::{Context, Result, bail};
use flyball_perf::architecture::Architecture;
use flyball_perf::catalog::Catalog;
use flyball_perf::layout::ServingLayout;
use flyball_perf::memory::serving::{Budget, ReplicaMemory};
use flyball_perf::memory::training::{TrainingMemory, training};
use flyball_perf::precision::Math;
use flyball_perf::training::{
    Framework, Recipe, Recompute, Sharding, TrainingLayout, TrainingSetup,
};
use serde::Deserialize;

pub(super) const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
/// vLLM's blocks of cache.
pub(super) const BLOCK: f64 = 16.0;

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) model: String,
    pub(super) hardware: String,
    pub(super) tp: Option<u32>,
    pp: Option<u32>,
    dp: Option<u32>,
    cp: Option<u32>,
    seq_len: Option<f64>,
    micro_batch: Option<u32>,
    pub(super) precision: String,
    recompute: String,
    pub(super) param: String,
    pub(super) measured: f64,
    notes: String,
    source: String,
}

/// What a row is scored with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    /// States and activations as Megatron's authors publish them.
    Formula,
    /// Peaks that were measured.
    Peak,
    CacheDense,
    CacheExperts,
    /// Weights alone, as users reported them.
    Weights,
}

pub(super) fn read(text: &str) -> Result<Vec<Row>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(|row| row.context("a row of memory_points.csv")).collect()
}

/// Shapes of Megatron's paper (arXiv 2205.05198, table 3): layers, width, heads, interleaving.
const MEGATRON: [(&str, u32, u32, u32, u32); 4] = [
    ("megatron-22B", 48, 6144, 64, 1),
    ("gpt3-175B", 96, 12_288, 96, 3),
    ("turing-530B", 105, 20_480, 128, 3),
    ("megatron-1T", 128, 25_600, 160, 1),
];

impl Row {
    pub(super) fn group(&self, names: &Names) -> Group {
        if self.kind == "training" {
            return if self.param == "peak memory" { Group::Peak } else { Group::Formula };
        }
        let experts = names
            .model(&self.model, &self.precision)
            .is_some_and(|model| model.feed_forward.experts.is_some());
        match (self.param.contains("weights"), experts) {
            (true, _) => Group::Weights,
            (false, true) => Group::CacheExperts,
            (false, false) => Group::CacheDense,
        }
    }

    /// The prediction, or `None` if the model is not known.
    pub(super) fn predicted(&self, names: &Names, catalog: &Catalog) -> Result<Option<f64>> {
        if self.kind == "training" {
            return self.training(names).map(Some);
        }
        let Some(model) = names.model(&self.model, &self.precision) else { return Ok(None) };
        let replica = self.replica(&model)?;
        if self.param.contains("weights") {
            let weights = replica.memory(flyball_core::units::Bytes::ZERO, 1.0).weights;
            return Ok(Some(weights.get() as f64 / 1e9));
        }
        if let Some(stated) = self.stated_cache() {
            return Ok(Some(stated * GIB / replica.request_bytes(1.0)));
        }
        let usable = catalog.accelerator(&self.hardware)?.usable_memory;
        let tokens = replica.memory(usable, 1.0).cache_tokens.point().get() as f64;
        Ok(Some((tokens / BLOCK).floor()))
    }

    /// Bytes of the training peak, for rows that state one.
    pub(super) fn peak(&self, names: &Names) -> Result<TrainingMemory> {
        let model = names.model(&self.model, "bf16").context("a model without a shape")?;
        let pipeline = self.pp.unwrap_or(1);
        let local = self.micro_batch.context("no batch")?;
        let interleaved = self.notes.contains("Interleaved");
        let layout = TrainingLayout {
            tensor: self.tp.unwrap_or(1),
            pipeline,
            interleave: if interleaved { 2 } else { 1 },
            context: self.cp.unwrap_or(1),
            data: self.dp.unwrap_or(1),
            // As many micro-batches as stages (rule R4 of the steps).
            micro_batch: local / pipeline,
            sharding: Sharding::Full,
            recompute: match self.recompute.as_str() {
                "full" => Recompute::Full,
                _ => Recompute::Selective,
            },
            sequence_parallel: true,
            ..TrainingLayout::ONE
        };
        let recipe = Recipe {
            compiled: !self.notes.contains("no compile"),
            compiled_loss: self.source.contains("2025-06"),
            asynchronous_tensor: self.notes.contains("asyncTP"),
            ..Framework::Fsdp.recipe()
        };
        let batch = f64::from(local) * f64::from(layout.data);
        let sequence = self.seq_len.context("no sequence")?;
        let run = TrainingSetup {
            recipe,
            ..TrainingSetup::new(Framework::Fsdp, sequence, batch, Math::Half)
        };
        Ok(training(&model, &layout, &run))
    }

    fn training(&self, names: &Names) -> Result<f64> {
        if self.param == "peak memory" {
            return Ok(self.peak(names)?.total().get() as f64 / GIB);
        }
        let (model, interleave) = megatron(&self.model)?;
        let held = |recompute: &str, micro_batch: u32, pipeline: u32| {
            formula(&model, recompute, self.tp.unwrap_or(8), pipeline, interleave, micro_batch)
        };
        if self.param.contains("relative") {
            let [own, none] = [self.recompute.as_str(), "none"].map(|how| held(how, 1, 1));
            let of = |held: TrainingMemory| held.activations().get() as f64;
            return Ok(100.0 * of(own?) / of(none?));
        }
        let pipeline = self.pp.unwrap_or(1);
        let held = held(&self.recompute, self.micro_batch.unwrap_or(1), pipeline)?;
        let states = self.param.contains("weights");
        let bytes = if states { held.states() } else { held.activations() };
        Ok(bytes.get() as f64 / GIB)
    }

    pub(super) fn replica<'a>(&self, model: &'a Architecture) -> Result<ReplicaMemory<'a>> {
        let layout = ServingLayout::tensor(self.tp.unwrap_or(1));
        let defaults = Budget::default();
        // Not stated for most rows: 256 requests, as in the one that does.
        let batched_tokens = self.batched_tokens()?.unwrap_or(defaults.batched_tokens);
        Ok(ReplicaMemory::new(model, layout, Budget { batched_tokens, ..defaults }))
    }

    fn batched_tokens(&self) -> Result<Option<u32>> {
        let Some((_, rest)) = self.notes.split_once("max_num_batched_tokens") else {
            return Ok(None);
        };
        let rest = rest.trim_start_matches(['=', ' ']);
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        Ok(Some(digits.parse().context("max_num_batched_tokens")?))
    }

    /// Room for the cache in GiB, where the row states it instead of settings.
    fn stated_cache(&self) -> Option<f64> {
        let (before, _) = self.notes.split_once(" GiB available for KV")?;
        before.split(' ').next_back()?.parse().ok()
    }
}

fn megatron(name: &str) -> Result<(Architecture, u32)> {
    let known = MEGATRON.iter().find(|(known, ..)| *known == name);
    let (_, layers, hidden, heads, interleave) = *known.context("not a model of the paper")?;
    let shape = Plain {
        layers,
        hidden,
        heads,
        kv_heads: heads,
        ffn: 4 * hidden,
        vocab: 51_200,
        gated: false,
        tied: true,
    };
    Ok((shape.architecture(), interleave))
}

fn formula(
    model: &Architecture,
    how: &str,
    tensor: u32,
    pipeline: u32,
    interleave: u32,
    micro_batch: u32,
) -> Result<TrainingMemory> {
    let (recompute, sequence_parallel) = match how {
        "none" => (Recompute::None, false),
        "seq" => (Recompute::None, true),
        "sel" => (Recompute::Selective, false),
        "seqsel" => (Recompute::Selective, true),
        "full" => (Recompute::Full, false),
        other => bail!("recomputation `{other}`"),
    };
    let layout = TrainingLayout {
        tensor,
        pipeline,
        interleave: if pipeline > 1 { interleave } else { 1 },
        micro_batch,
        recompute,
        sequence_parallel,
        ..TrainingLayout::ONE
    };
    let recipe = Recipe { fused_attention: false, ..Framework::Megatron.recipe() };
    // Enough micro-batches to fill the pipeline.
    let batch = f64::from(micro_batch) * f64::from(pipeline);
    let run = TrainingSetup {
        recipe,
        ..TrainingSetup::new(Framework::Megatron, 2048.0, batch, Math::Half)
    };
    Ok(training(model, &layout, &run))
}
