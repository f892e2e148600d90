//! Which layouts of a training run there are to try.

use super::question::TrainQuestion;
use crate::hardware::Accelerator;
use crate::search::layouts::powers;
use crate::training::{Framework, Recompute, Selective, Sharding, TrainingLayout};

/// Sequences beyond this are worth splitting.
const LONG: f64 = 16_384.0;

/// Every layout of so many accelerators that the framework can run and the model divides into.
pub(super) fn all(
    question: &TrainQuestion<'_>,
    part: &Accelerator,
    gpus: u32,
) -> Vec<TrainingLayout> {
    let model = question.model;
    let heads = model.attention.heads();
    let layers = model.layers.total();
    let widest = part.node_gpus.get().max(8).min(heads);
    let gathers = matches!(question.framework, Framework::Fsdp | Framework::Foundry);
    let mut found = Vec::new();
    for tensor in powers(widest).filter(|tensor| heads.is_multiple_of(*tensor)) {
        for pipeline in powers(layers).filter(|stages| layers.is_multiple_of(*stages)) {
            for context in powers(if question.sequence > LONG { 16 } else { 1 }) {
                let Some(data) = divided(gpus, tensor * pipeline * context) else { continue };
                for expert in experts(question, data * tensor * context) {
                    let frame = TrainingLayout {
                        tensor,
                        pipeline,
                        context,
                        data,
                        expert,
                        sharding: if gathers { Sharding::Full } else { Sharding::OptimizerOnly },
                        sequence_parallel: tensor > 1,
                        ..TrainingLayout::ONE
                    };
                    variants(question, layers, frame, &mut found);
                }
            }
        }
    }
    found
}

fn divided(gpus: u32, by: u32) -> Option<u32> {
    gpus.is_multiple_of(by).then(|| gpus / by).filter(|data| *data > 0)
}

/// Degrees over which experts can be spread.
fn experts(question: &TrainQuestion<'_>, places: u32) -> Vec<u32> {
    match question.model.feed_forward.experts {
        None => vec![1],
        Some(experts) => powers(64.min(experts.routed))
            .filter(|degree| places.is_multiple_of(*degree))
            .filter(|degree| experts.routed.is_multiple_of(*degree))
            .collect(),
    }
}

/// Micro-batches, interleaving and recomputation of one frame.
fn variants(
    question: &TrainQuestion<'_>,
    layers: u32,
    frame: TrainingLayout,
    found: &mut Vec<TrainingLayout>,
) {
    for micro_batch in [1, 2, 4, 8] {
        let at_once = f64::from(frame.data * micro_batch);
        let count = question.global_batch / at_once;
        if count < 1.0 || count.fract() != 0.0 {
            continue;
        }
        let per_stage = layers / frame.pipeline;
        let turns = [1, 2, 4]
            .into_iter()
            .filter(|turns| *turns == 1 || frame.pipeline > 1 && per_stage.is_multiple_of(*turns));
        for interleave in turns {
            for recompute in [Recompute::None, Recompute::Selective, Recompute::Full] {
                // Fused attention keeps no scores, so there is nothing to select.
                let same = recompute == Recompute::Selective
                    && question.framework.recipe().selective == Selective::Attention;
                if !same {
                    found.push(TrainingLayout { micro_batch, interleave, recompute, ..frame });
                }
            }
        }
    }
}
