//! What one micro-batch takes on one accelerator, communication apart.

use super::coefficients::{FrameworkCoefficients, TrainingCoefficients};
use super::layout::{Recompute, TrainingLayout};
use super::run::{Recipe, Selective, TrainingSetup};
use super::shape::Shape;
use super::{Framework, TrainingHardware};

/// FlashAttention-2 on tensor cores that are newer than Ampere's: the old instructions reach about
/// 62 % of their peak (as its authors report for H100; recalled).
const OLD_INSTRUCTIONS: f64 = 0.62;
/// Forward and backward of a fused attention kernel, in forwards: the backward pass has five
/// products where the forward pass has two.
const FUSED_ATTENTION: f64 = 3.5;
/// Bytes of memory traffic per score and pass without a fused kernel: written and read in 16 bit by
/// scores, mask, softmax and dropout, and the dropout's mask.
const SCORE_TRAFFIC: f64 = 11.0;
/// Share of the peak memory bandwidth that long, plain transfers reach.
pub(super) const PLAIN_TRAFFIC: f64 = 0.8;

/// How often work is done, in units of a forward pass.
pub(super) struct Passes {
    /// Forward and backward without recomputation.
    pub(super) base: f64,
    /// 1 when everything is recomputed.
    pub(super) full: f64,
    linear: f64,
    elementwise: f64,
    unfused_attention: f64,
}

impl Passes {
    pub(super) fn of(shape: &Shape, layout: &TrainingLayout, run: &TrainingSetup) -> Self {
        // Without gradients of the weights there are two passes instead of three.
        let base = if run.lora { 2.0 } else { 3.0 };
        let full = if layout.recompute == Recompute::Full { 1.0 } else { 0.0 };
        let selective = layout.recompute == Recompute::Selective;
        let down = if run.recipe.early_stop { shape.down_share() } else { 0.0 };
        let again = match run.recipe.selective {
            Selective::EverySecondProduct if selective => shape.second_products_share(),
            Selective::EverySecondLayer if selective => 0.5 * (1.0 - down),
            _ => 0.0,
        };
        Self {
            base,
            full,
            linear: base + full * (1.0 - down) + again,
            elementwise: base + full + again,
            unfused_attention: 3.0 + full + if selective { 1.0 } else { 0.0 },
        }
    }
}

/// Seconds of one micro-batch on the busiest stage.
pub(super) struct Compute {
    pub(super) linear: f64,
    pub(super) head: f64,
    pub(super) attention: f64,
    pub(super) elementwise: f64,
    pub(super) launches: f64,
}

pub(super) struct Inputs<'a> {
    pub(super) shape: &'a Shape,
    pub(super) hardware: &'a TrainingHardware,
    pub(super) global: &'a TrainingCoefficients,
    pub(super) own: &'a FrameworkCoefficients,
    pub(super) layout: &'a TrainingLayout,
    pub(super) run: &'a TrainingSetup,
    pub(super) passes: &'a Passes,
    /// Tokens of a micro-batch.
    pub(super) tokens: f64,
}

impl Inputs<'_> {
    pub(super) fn compute(&self) -> Compute {
        let Self { shape, hardware, own, passes, tokens, .. } = self;
        let tensor = f64::from(self.layout.tensor);
        let pipeline = f64::from(self.layout.pipeline);
        // When layers do not divide evenly, the stage of the output layer has fewer of them and the
        // load is even; otherwise that stage is the slowest and sets the pace.
        let even = self.layout.pipeline > 1 && shape.layers % pipeline != 0.0;
        let head_stages = if even { pipeline } else { 1.0 };
        let products = hardware.products(self.run.math) * own.linear_efficiency;
        let wide_products = hardware.half * own.linear_efficiency;
        Compute {
            linear: 2.0 * shape.linear * tokens * passes.linear / (tensor * pipeline) / products,
            head: 2.0 * shape.head * tokens * passes.base / (tensor * head_stages) / wide_products,
            attention: self.attention(tensor * pipeline),
            elementwise: self.elementwise(tensor, pipeline, head_stages),
            launches: self.launches(pipeline),
        }
    }

    fn attention(&self, split: f64) -> f64 {
        let Self { shape, hardware, own, passes, run, .. } = self;
        let attended = shape.attended(run.sequence);
        let forward = 4.0 * shape.attention_width * attended * self.tokens / split;
        if run.recipe.fused_attention {
            let rate =
                hardware.half * own.attention_efficiency * old_instructions(&run.recipe, hardware);
            return forward * (FUSED_ATTENTION + passes.full) / rate;
        }
        // The whole square is multiplied, not only its causal half, and every score is moved.
        let scores = shape.layers * shape.heads * run.sequence * self.tokens / split;
        let moved = scores * SCORE_TRAFFIC / (PLAIN_TRAFFIC * hardware.memory);
        let multiplied = 2.0 * forward / (hardware.half * own.linear_efficiency);
        passes.unfused_attention * (multiplied + moved)
    }

    /// Norms, residuals, activations and casts: values read or written per token, two bytes each.
    fn elementwise(&self, tensor: f64, pipeline: f64, head_stages: f64) -> f64 {
        let Self { shape, hardware, global, passes, tokens, .. } = self;
        let outside = if self.layout.sequence_parallel { tensor } else { 1.0 };
        let values = shape.layers * (8.0 * shape.hidden / outside + 4.0 * shape.hidden / tensor)
            + shape.dense_layers * shape.matrices * shape.dense_width / tensor
            + shape.expert_layers
                * shape.active_experts
                * (shape.matrices * shape.expert_width + 6.0 * shape.hidden)
                / tensor;
        let layers = 2.0 * values * tokens * passes.elementwise / pipeline;
        // Logits, their FP32 copy and the gradient: eight bytes per entry of the vocabulary.
        let logits = 8.0 * shape.vocab * tokens / tensor / head_stages;
        global.elementwise_traffic * (layers + logits) / hardware.memory
    }

    fn launches(&self, pipeline: f64) -> f64 {
        let Self { shape, global, passes, .. } = self;
        let local_experts = shape.expert_layers * shape.experts / f64::from(self.layout.expert);
        let forward_and_backward = global.layer_launch_seconds * shape.layers
            + global.expert_launch_seconds * local_experts;
        forward_and_backward / pipeline * passes.elementwise / 3.0
    }
}

fn old_instructions(recipe: &Recipe, hardware: &TrainingHardware) -> f64 {
    if recipe.ampere_attention && hardware.newer_tensor_cores { OLD_INSTRUCTIONS } else { 1.0 }
}

impl Framework {
    /// Its place among the resolved coefficients.
    pub(super) const fn index(self) -> usize {
        match self {
            Self::Megatron => 0,
            Self::Fsdp => 1,
            Self::Foundry => 2,
            Self::OneFlow => 3,
            Self::Other => 4,
        }
    }
}
