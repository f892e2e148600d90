//! States and activations of a training run.
//!
//! Two ways of counting. Frameworks that keep whole weights (Megatron) hold 16-bit weights, FP32
//! gradients and the optimizer's 12 bytes, with activations as Korthikanti et al. count them
//! (arXiv 2205.05198). Frameworks that gather weights as they go (FSDP) hold 16 bytes of sharded
//! FP32 state, and beside it whatever is gathered, checkpointed or being computed.

use super::{FitAnswer, GIB, bytes};
use crate::architecture::Architecture;
use crate::training::shape::Shape;
use crate::training::{Recompute, Selective, Sharding, TrainingLayout, TrainingSetup};
use flyball_core::units::Bytes;

/// The largest published peak is 1.115 times its prediction.
const MOST: f64 = 1.15;
/// The smallest is 0.95 times its prediction.
const LEAST: f64 = 0.9;
/// Context and communication buffers, outside of the allocator.
const OUTSIDE: f64 = GIB;
/// Low-rank adapters: trained weights relative to the frozen ones.
const ADAPTERS: f64 = 0.02;

/// Bytes on the fullest accelerator, by what they are for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TrainingMemory {
    /// Weights, gradients and optimizer that stay for the whole run.
    pub(super) states: f64,
    /// Weights and gradients that are whole for a while.
    pub(super) gathered: f64,
    /// What the forward pass keeps for the backward pass.
    pub(super) activations: f64,
    /// What the layer being computed needs on top.
    pub(super) working: f64,
    pub(super) logits: f64,
    /// Inputs, outputs and gradients between stages.
    pub(super) transfers: f64,
    /// Whole tensors around the matrices that are split.
    pub(super) tensor: f64,
}

impl TrainingMemory {
    /// The peak.
    pub fn total(&self) -> Bytes {
        bytes(self.sum())
    }

    /// The same where the fullest stage has so many times the layers of the mean one; for frameworks
    /// that keep whole weights.
    #[must_use]
    pub fn of_fullest_stage(self, fuller: f64) -> Self {
        Self { states: self.states * fuller, activations: self.activations * fuller, ..self }
    }

    /// Weights, gradients and optimizer that stay for the whole run.
    pub fn states(&self) -> Bytes {
        bytes(self.states)
    }

    /// What the forward pass keeps for the backward pass.
    pub fn activations(&self) -> Bytes {
        bytes(self.activations)
    }

    /// Every part with its name, in order.
    pub fn named(&self) -> [(&'static str, Bytes); 7] {
        [
            ("states", bytes(self.states)),
            ("gathered", bytes(self.gathered)),
            ("activations", bytes(self.activations)),
            ("working", bytes(self.working)),
            ("logits", bytes(self.logits)),
            ("transfers", bytes(self.transfers)),
            ("tensor", bytes(self.tensor)),
        ]
    }

    /// Whether it fits into this much usable memory.
    pub fn fits(&self, usable: Bytes) -> FitAnswer {
        let usable = usable.get() as f64;
        FitAnswer::new(LEAST * self.sum(), usable, MOST * self.sum() + OUTSIDE, usable)
    }

    fn sum(&self) -> f64 {
        self.states
            + self.gathered
            + self.activations
            + self.working
            + self.logits
            + self.transfers
            + self.tensor
    }
}

/// The peak of a run.
pub fn training(
    model: &Architecture,
    layout: &TrainingLayout,
    run: &TrainingSetup,
) -> TrainingMemory {
    let inputs = Inputs::new(Shape::of(model), layout, run);
    if layout.sharding.gathers() { inputs.gathering() } else { inputs.whole() }
}

struct Inputs<'a> {
    shape: Shape,
    layout: &'a TrainingLayout,
    run: &'a TrainingSetup,
    tensor: f64,
    pipeline: f64,
    tokens: f64,
    /// Layers of the fullest stage.
    stage_layers: f64,
    /// Micro-batches that the first stage holds at once.
    in_flight: f64,
}

impl<'a> Inputs<'a> {
    fn new(shape: Shape, layout: &'a TrainingLayout, run: &'a TrainingSetup) -> Self {
        let pipeline = f64::from(layout.pipeline);
        Self {
            layout,
            run,
            tensor: f64::from(layout.tensor),
            pipeline,
            tokens: layout.tokens(run.sequence),
            stage_layers: (shape.layers / pipeline).ceil(),
            in_flight: layout.micro_batches(run.global_batch).min(pipeline),
            shape,
        }
    }

    /// Frameworks that keep whole weights.
    fn whole(&self) -> TrainingMemory {
        let shape = &self.shape;
        let per_layer = self.layer_activations();
        // With interleaving the first stage runs ahead by a little more.
        let ahead = if self.layout.interleave > 1 {
            1.0 + (self.pipeline - 1.0) / (self.pipeline * f64::from(self.layout.interleave))
        } else {
            1.0
        };
        let held = shape.layers / self.pipeline * self.in_flight * ahead;
        let working =
            if self.layout.recompute == Recompute::Full { self.all_activations(true) } else { 0.0 };
        // The last stage has the logits and only one micro-batch, so the first one is fuller.
        let logits = if self.pipeline > 1.0 {
            0.0
        } else {
            self.tokens * shape.vocab / self.tensor * self.logit_bytes()
        };
        TrainingMemory {
            states: self.whole_states(),
            activations: per_layer * held,
            working,
            logits,
            ..TrainingMemory::default()
        }
    }

    /// 2 bytes of weight, 4 of gradient and 12 of optimizer, of which the last may be divided.
    fn whole_states(&self) -> f64 {
        let shape = &self.shape;
        let of = |weights: f64, copies: f64| match self.layout.sharding {
            Sharding::Replicated => 18.0 * weights,
            _ => (6.0 + 12.0 / copies) * weights,
        };
        let outside = (shape.total - shape.routed) / (self.tensor * self.pipeline);
        let experts = shape.routed / (self.pipeline * f64::from(self.layout.expert));
        let (copies, expert_copies) = (self.layout.copies(), self.layout.expert_copies());
        if self.run.lora {
            let frozen = 2.0 * (outside + experts);
            return frozen + ADAPTERS * (of(outside, copies) + of(experts, expert_copies));
        }
        of(outside, copies) + of(experts, expert_copies)
    }

    /// Bytes that one layer keeps for one micro-batch.
    fn layer_activations(&self) -> f64 {
        match self.layout.recompute {
            // Its input, which is split along the sequence if everything between matrices is.
            Recompute::Full => 2.0 * self.tokens * self.shape.hidden / self.unsplit(),
            Recompute::Selective => self.all_activations(true),
            Recompute::None => self.all_activations(self.run.recipe.fused_attention),
        }
    }

    /// Everything that one layer produces and the backward pass reads. With 4 hidden widths in the
    /// feed-forward block and as many keys as queries this is `tokens * hidden * (10 + 24 / t + 5 *
    /// heads * sequence / (hidden * t))`.
    fn all_activations(&self, without_scores: bool) -> f64 {
        let shape = &self.shape;
        // Both norms' inputs, the inputs of attention and feed-forward, and two dropout masks.
        let outside = 10.0 * shape.hidden;
        let attention = 2.0 * (2.0 * shape.query_width + 2.0 * shape.key_width);
        // A plain block keeps what goes into and out of its activation, a gated one a third.
        let block = |width: f64| 2.0 * shape.matrices * width;
        let dense_share = shape.dense_layers / shape.layers;
        let visited = shape.active_experts * (block(shape.expert_width) + 2.0 * shape.hidden);
        let feed_forward = dense_share * block(shape.dense_width)
            + (1.0 - dense_share) * (visited + block(shape.shared_width));
        let scores = if without_scores { 0.0 } else { 5.0 * shape.heads * self.run.sequence };
        self.tokens * (outside / self.unsplit() + (attention + feed_forward + scores) / self.tensor)
    }

    /// Over how many accelerators that is divided which tensor parallelism does not split.
    fn unsplit(&self) -> f64 {
        if self.layout.sequence_parallel { self.tensor } else { 1.0 }
    }

    /// Frameworks that gather weights as they go.
    fn gathering(&self) -> TrainingMemory {
        let shape = &self.shape;
        let copies = self.layout.copies();
        let per_rank = self.tokens / self.tensor;
        let (layer, table) = (self.layer_weights(), shape.vocab * shape.hidden / self.tensor);
        let alone = self.layout.pipeline == 1;
        // The first stage also has the embedding; alone, a rank has the output layer too.
        let weights = if alone {
            layer * shape.layers + table * shape.tables()
        } else {
            self.stage_layers * layer + table
        };
        let trained = if self.run.lora { ADAPTERS } else { 1.0 };
        let gathered = match (alone, self.layout.sharding) {
            // Two layers, and the largest unit in 16 bit with its FP32 gradient.
            (true, Sharding::Full) => 4.0 * layer + 6.0 * trained * layer.max(table),
            (true, _) => 2.0 * weights + 6.0 * trained * layer.max(table),
            // Nothing is given back between micro-batches; gradients add up in FP32, one group of
            // layers at a time.
            (false, _) => {
                2.0 * weights + 4.0 * trained * weights / f64::from(self.layout.interleave)
            }
        };
        let between = 6.0 * per_rank * shape.hidden * self.in_flight;
        let eager = if self.run.recipe.compiled { 1.0 } else { 2.0 };
        let working =
            20.0 * shape.hidden + 6.0 * shape.key_width + 12.0 * self.widest_feed_forward();
        let gathers = if self.run.recipe.asynchronous_tensor { 4.0 } else { 6.0 };
        TrainingMemory {
            states: if self.run.lora { 2.0 + 16.0 * ADAPTERS } else { 16.0 } * weights / copies,
            gathered,
            activations: self.checkpoints() * self.stage_layers * self.in_flight,
            working: working * per_rank * eager,
            logits: if alone { per_rank * shape.vocab * self.logit_bytes() } else { 0.0 },
            transfers: if alone { 0.0 } else { between * f64::from(self.layout.interleave) },
            // Two gathered inputs, two partial outputs and two in the backward pass.
            tensor: if self.layout.tensor > 1 {
                gathers * 2.0 * self.tokens * shape.hidden
            } else {
                0.0
            },
        }
    }

    /// Bytes that one layer keeps for one micro-batch when weights are gathered.
    fn checkpoints(&self) -> f64 {
        let shape = &self.shape;
        let per_rank = self.tokens / self.tensor;
        let input = 2.0 * shape.hidden;
        match (self.layout.recompute, self.run.recipe.selective) {
            (Recompute::Full, _) => per_rank * input,
            (Recompute::None, _) => self.all_activations(self.run.recipe.fused_attention),
            (Recompute::Selective, Selective::EverySecondLayer) => {
                (per_rank * input + self.all_activations(true)) / 2.0
            }
            (Recompute::Selective, Selective::Attention) => self.all_activations(true),
            // Layer input, norms' and attention's outputs, keys and one side of the block.
            (Recompute::Selective, Selective::EverySecondProduct) => {
                let held = 4.0 * shape.hidden + shape.key_width + self.widest_feed_forward();
                per_rank * 2.0 * held
            }
        }
    }

    /// Weights of the largest layer on one accelerator.
    fn layer_weights(&self) -> f64 {
        let shape = &self.shape;
        let block = |width: f64| shape.matrices * shape.hidden * width;
        let dense = block(shape.dense_width) / self.tensor;
        let experts = shape.experts * block(shape.expert_width) / f64::from(self.layout.expert)
            + block(shape.shared_width) / self.tensor;
        shape.attention_weights / self.tensor + dense.max(experts)
    }

    fn widest_feed_forward(&self) -> f64 {
        let shape = &self.shape;
        let visited = shape.active_experts * shape.expert_width + shape.shared_width;
        shape.dense_width.max(visited)
    }

    /// Log-probabilities, their gradient and that of the logits, in FP32; a compiled loss needs
    /// one of them.
    fn logit_bytes(&self) -> f64 {
        if self.run.recipe.compiled_loss { 4.0 } else { 12.0 }
    }
}
