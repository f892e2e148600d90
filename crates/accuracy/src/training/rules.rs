//! What stands in for the facts that a row leaves out.
//!
//! Each rule is a predicate over the columns and has a number, so that docs/accuracy.md can say how
//! many rows it touched.

use super::row::{Row, Touched, whole};
use anyhow::{Context, Result, bail};
use flyball_perf::architecture::Architecture;
use flyball_perf::precision::Math;
use flyball_perf::training::flops::ForwardFlops;
use flyball_perf::training::{
    Framework, Recipe, Recompute, Selective, Sharding, TrainingLayout, TrainingSetup,
};

/// What stands in for a fact that a row does not state.
pub(super) const RULES: [(&str, &str); 10] = [
    ("R1", "accelerator whose links form a torus: refused (PaLM on TPU v4)"),
    ("R2", "`tp` empty: the layout of the same model in the same suite (TP8 PP6)"),
    (
        "R3",
        "suite megatron-sc21-a100: micro-batch and interleaving from Megatron-LM's \
            examples/sc21/run_table_1.sh",
    ),
    (
        "R4",
        "torchtitan with a pipeline: as many micro-batches as stages; two groups of layers per \
            stage if the notes say Interleaved",
    ),
    (
        "R5",
        "`micro_batch` empty: dlperf from the global batch, others 1 with a pipeline and else \
            the largest power of two with at most 32,768 tokens",
    ),
    ("R6", "`vp` empty: 1 without a pipeline and in dlperf, else two layers per group"),
    ("R7", "shape not in the columns: heads of 96, or a shape from the catalogue or of its family"),
    ("R8", "`recompute` empty: none, but full in dlperf, whose FLOPs count it"),
    ("R9", "no tokens per second: from TFLOP/s by the publisher's own formula"),
    ("R10", "dlperf's hosts share one port of 100 Gb/s among eight GPUs"),
];

/// Suites of before 2023: attention without fused kernels, gradients summed after the step.
const LEGACY: [&str; 3] = ["megatron-sc21-a100", "megatron-seqpar-a100", "dlperf-v100"];
/// Micro-batch and interleaving by model, in the order of the table (R3).
const SC21: [(&str, u32, u32); 10] = [
    ("GPT-1.7B", 16, 1),
    ("GPT-3.6B", 16, 1),
    ("GPT-7.5B", 16, 1),
    ("GPT-18.4B", 8, 1),
    ("GPT-39.1B", 4, 1),
    ("GPT-76.1B", 2, 3),
    ("GPT-145.6B", 2, 2),
    ("GPT-310.1B", 1, 2),
    ("GPT-529.6B", 1, 3),
    ("GPT-1008B", 1, 1),
];

impl Touched {
    pub(super) fn layout(
        &mut self,
        row: &Row,
        framework: Framework,
        architecture: &Architecture,
    ) -> Result<TrainingLayout> {
        let (tensor, pipeline, context, data) = match row.tp {
            Some(tensor) => (tensor, row.pp.unwrap_or(1.0), row.cp.unwrap_or(1.0), row.dp),
            None => {
                self.by("R2");
                (8.0, 6.0, 1.0, Some(row.n_gpus / 48.0))
            }
        };
        let data = data.context("no data-parallel degree")?;
        let layers = f64::from(architecture.layers.total());
        let (micro_batch, interleave) =
            self.micro_batch(row, framework, layers, (tensor, pipeline, data))?;
        let recompute = match row.recompute.as_str() {
            _ if row.suite == "dlperf-v100" => {
                self.by("R8");
                Recompute::Full
            }
            "full" => Recompute::Full,
            selective if selective.starts_with("selective") => Recompute::Selective,
            other => {
                if other.is_empty() {
                    self.by("R8");
                }
                Recompute::None
            }
        };
        let legacy = LEGACY.contains(&row.suite.as_str());
        let sequence_parallel = tensor > 1.0 && (!legacy || row.recompute == "selective+seqpar");
        Ok(TrainingLayout {
            tensor: whole(tensor)?,
            pipeline: whole(pipeline)?,
            interleave: whole(interleave)?,
            context: whole(context)?,
            data: whole(data)?,
            expert: whole(row.ep.unwrap_or(1.0))?,
            micro_batch: whole(micro_batch)?,
            sharding: sharding(row, framework),
            recompute,
            sequence_parallel,
        })
    }

    /// Sequences of a micro-batch, and groups of layers per stage.
    fn micro_batch(
        &mut self,
        row: &Row,
        framework: Framework,
        layers: f64,
        (tensor, pipeline, data): (f64, f64, f64),
    ) -> Result<(f64, f64)> {
        let dlperf = row.suite == "dlperf-v100";
        if row.suite == "megatron-sc21-a100" {
            self.by("R3");
            let known = SC21.iter().find(|(model, ..)| *model == row.model);
            let (_, micro_batch, interleave) = known.context("not a model of the table")?;
            return Ok((f64::from(*micro_batch), f64::from(*interleave)));
        }
        let stated = row.micro_batch;
        if let (Framework::Fsdp, Some(local), true) = (framework, stated, pipeline > 1.0) {
            self.by("R4");
            let interleave = if row.notes.contains("Interleaved") { 2.0 } else { 1.0 };
            return Ok(((local / pipeline).max(1.0), interleave));
        }
        let local = row.global_batch / data;
        let micro_batch = stated.unwrap_or_else(|| {
            self.by("R5");
            let guess = match (dlperf, pipeline > 1.0) {
                (true, true) => (local / (4.0 * pipeline)).max(1.0),
                (true, false) if tensor > 1.0 => local,
                (true, false) => 2.0,
                (false, true) => 1.0,
                (false, false) => 2.0_f64.powf((32_768.0 / row.seq_len).max(1.0).log2().floor()),
            };
            guess.min(local)
        });
        let interleave = row.vp.unwrap_or_else(|| {
            self.by("R6");
            if pipeline == 1.0 || dlperf { 1.0 } else { (layers / pipeline / 2.0).floor().max(1.0) }
        });
        Ok((micro_batch, interleave))
    }

    /// Seconds of one step (R9 where no tokens were counted).
    pub(super) fn measured(&mut self, row: &Row, architecture: &Architecture) -> Result<f64> {
        let tokens = row.global_batch * row.seq_len;
        if let Some(rate) = row.tokens_per_s_per_gpu {
            return Ok(tokens / (row.n_gpus * rate));
        }
        self.by("R9");
        let layers = f64::from(architecture.layers.total());
        let (hidden, vocab) = (f64::from(architecture.hidden), f64::from(architecture.vocab));
        let mut tera = row.tflops_per_gpu;
        // Narayanan et al. 2021, with `passes` of 24 operations per weight-shaped product.
        let megatron = |per_layer: f64, per_vocab: f64| {
            let head = vocab / (per_vocab * layers * hidden);
            per_layer
                * tokens
                * layers
                * hidden
                * hidden
                * (1.0 + row.seq_len / (6.0 * hidden) + head)
        };
        let flops = match row.suite.as_str() {
            "megatron-sc21-a100" | "dlperf-v100" => megatron(96.0, 16.0),
            "megatron-core-h100" => {
                tera = tera.or(row.mfu_pct.map(|share| share / 100.0 * 989.0));
                megatron(72.0, 12.0)
            }
            "meta-llama3" => {
                let parameters = architecture.parameters();
                let weights = (parameters.total() - parameters.small) as f64;
                let attention = ForwardFlops::of(architecture, row.seq_len).attention_square;
                tokens * (6.0 * weights + 3.0 * attention)
            }
            other => bail!("no formula for TFLOP/s of `{other}`"),
        };
        Ok(flops / (row.n_gpus * tera.context("no TFLOP/s")? * 1e12))
    }
}

/// The run, with what its suite did differently from today.
pub(super) fn run(row: &Row, framework: Framework) -> TrainingSetup {
    let math = match row.precision.as_str() {
        precision if precision.contains("fp4") => Math::Fp4,
        precision if precision.contains("fp8") => Math::Fp8,
        _ => Math::Half,
    };
    let today = framework.recipe();
    let recipe = if LEGACY.contains(&row.suite.as_str()) {
        Recipe { fused_attention: false, overlap: false, wide_gradients: false, ..today }
    } else if row.recompute.contains("layer") {
        Recipe { selective: Selective::EverySecondLayer, ..today }
    } else {
        today
    };
    TrainingSetup {
        recipe,
        lora: row.model.contains("LoRA"),
        ..TrainingSetup::new(framework, row.seq_len, row.global_batch, math)
    }
}

pub(super) fn framework(row: &Row) -> Framework {
    match row.suite.as_str() {
        "dlperf-v100" if row.notes.starts_with("OneFlow") => Framework::OneFlow,
        suite if suite.starts_with("mosaicml") => Framework::Foundry,
        suite if suite.starts_with("torchtitan") => Framework::Fsdp,
        suite if ["megatron", "nemo", "dlperf"].iter().any(|s| suite.starts_with(s)) => {
            Framework::Megatron
        }
        _ => Framework::Other,
    }
}

fn sharding(row: &Row, framework: Framework) -> Sharding {
    if row.sharding.contains("GRAD_OP") || row.sharding.contains("no reshard") {
        Sharding::Gradients
    } else if row.sharding.starts_with("FSDP") {
        Sharding::Full
    } else if framework == Framework::Megatron {
        Sharding::OptimizerOnly
    } else {
        Sharding::Replicated
    }
}
