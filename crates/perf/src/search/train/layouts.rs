//! Which layouts of a training run there are to try.

use super::question::TrainQuestion;
use crate::hardware::Accelerator;
use crate::search::Rejection;
use crate::search::layouts::powers;
use crate::training::{Framework, Recompute, Selective, Sharding, TrainingLayout};

/// Sequences from here on are worth splitting in two, as NVIDIA's recipes for Llama 3 70B and 405B do, because what
/// layers keep for the backward pass is halved; beyond the second, in up to sixteen.
const LONG: f64 = 8_192.0;
const LONGER: f64 = 16_384.0;
/// How far the batch of a layout may be from the one asked for, as a factor on it. Further off, the
/// run would learn differently, and a layout would win by its batch.
const BATCH_MOVES: (f64, f64) = (2.0 / 3.0, 4.0 / 3.0);

/// A layout, and the sequences of one step that it divides into.
pub(super) struct Planned {
    pub(super) layout: TrainingLayout,
    pub(super) global_batch: f64,
}

/// What there is to try, and what does not divide.
#[derive(Default)]
pub(super) struct Layouts {
    pub(super) planned: Vec<Planned>,
    pub(super) indivisible: Vec<(TrainingLayout, Rejection)>,
}

/// Every layout of so many accelerators that the framework can run.
pub(super) fn all(question: &TrainQuestion<'_>, part: &Accelerator, gpus: u32) -> Layouts {
    let heads = question.model.attention.heads();
    let gathers = matches!(question.framework, Framework::Fsdp | Framework::Foundry);
    let sharding = if gathers { Sharding::Full } else { Sharding::OptimizerOnly };
    let mut found = Layouts::default();
    for tensor in powers(part.node_gpus.get().max(8).min(heads).min(gpus)) {
        let split = TrainingLayout {
            tensor,
            sharding,
            sequence_parallel: tensor > 1,
            ..TrainingLayout::ONE
        };
        if !found.divides("attention heads", heads, tensor, split) {
            continue;
        }
        for pipeline in powers(question.model.layers.total().min(gpus / tensor)) {
            let most = gpus / (tensor * pipeline);
            for context in powers(most.min(splits(question.sequence))) {
                let copy = tensor * pipeline * context;
                let frame = TrainingLayout { pipeline, context, data: gpus / copy, ..split };
                if found.divides("GPUs", gpus, copy, frame) {
                    found.experts(question, frame);
                }
            }
        }
    }
    found
}

/// Over how many accelerators a sequence may be split, at most.
fn splits(sequence: f64) -> u32 {
    match sequence {
        _ if sequence > LONGER => 16,
        _ if sequence >= LONG => 2,
        _ => 1,
    }
}

impl Layouts {
    fn divides(&mut self, what: &'static str, count: u32, by: u32, layout: TrainingLayout) -> bool {
        let divides = count.is_multiple_of(by);
        if !divides {
            self.indivisible.push((layout, Rejection::Indivisible { what, count, by }));
        }
        divides
    }

    /// Degrees over which experts can be spread.
    fn experts(&mut self, question: &TrainQuestion<'_>, frame: TrainingLayout) {
        let Some(experts) = question.model.feed_forward.experts else {
            return self.variants(question, frame);
        };
        let places = frame.data * frame.tensor * frame.context;
        let degrees = powers(64.min(experts.routed));
        for expert in degrees.filter(|degree| places.is_multiple_of(*degree)) {
            let frame = TrainingLayout { expert, ..frame };
            if self.divides("experts", experts.routed, expert, frame) {
                self.variants(question, frame);
            }
        }
    }

    /// Micro-batches, interleaving and recomputation of one frame.
    fn variants(&mut self, question: &TrainQuestion<'_>, frame: TrainingLayout) {
        let layers = question.model.layers.total();
        for micro_batch in [1, 2, 4, 8] {
            let frame = TrainingLayout { micro_batch, ..frame };
            let at_once = frame.data.saturating_mul(micro_batch);
            let Some(global_batch) = batch(question.global_batch, at_once) else {
                let count = question.global_batch.round() as u32;
                let what = "sequences per step";
                let reason = Rejection::Indivisible { what, count, by: at_once };
                self.indivisible.push((frame, reason));
                continue;
            };
            // Stages that take turns need as many micro-batches as stages, or a multiple of that.
            let a_round = at_once.saturating_mul(frame.pipeline);
            let in_rounds = batch(question.global_batch, a_round);
            let turns = [2, 4]
                .into_iter()
                .filter(|turns| interleaves(layers, frame.pipeline, *turns))
                .filter_map(|turns| in_rounds.map(|global_batch| (turns, global_batch)));
            for (interleave, global_batch) in [(1, global_batch)].into_iter().chain(turns) {
                for recompute in [Recompute::None, Recompute::Selective, Recompute::Full] {
                    // Fused attention keeps no scores, so there is nothing to select.
                    let same = recompute == Recompute::Selective
                        && question.framework.recipe().selective == Selective::Attention;
                    if !same {
                        let layout = TrainingLayout { interleave, recompute, ..frame };
                        self.planned.push(Planned { layout, global_batch });
                    }
                }
            }
        }
    }
}

/// Whether stages can take turns: the fullest one must not grow by the finer cut.
fn interleaves(layers: u32, stages: u32, turns: u32) -> bool {
    let groups = stages * turns;
    stages > 1 && layers >= groups && layers.div_ceil(groups) * turns == layers.div_ceil(stages)
}

/// The multiple of `at_once` nearest to the batch asked for, if it is near.
fn batch(requested: f64, at_once: u32) -> Option<f64> {
    let at_once = f64::from(at_once);
    let used = (requested / at_once).round().max(1.0) * at_once;
    let (least, most) = BATCH_MOVES;
    (requested * least..=requested * most).contains(&used).then_some(used)
}

#[cfg(test)]
mod tests {
    use super::{batch, interleaves};

    #[test]
    fn the_batch_moves_to_the_nearest_multiple_but_not_far() {
        assert_eq!(batch(512.0, 128), Some(512.0));
        assert_eq!(batch(488.3, 32), Some(480.0));
        assert_eq!(batch(512.0, 96), Some(480.0));
        assert_eq!(batch(512.0, 600), Some(600.0));
        assert_eq!(batch(512.0, 1024), None);
    }

    #[test]
    fn stages_take_turns_where_none_gets_fuller() {
        assert!(interleaves(80, 4, 4));
        assert!(interleaves(94, 8, 4), "3 layers four times, as 12 at once");
        assert!(interleaves(61, 8, 4), "2 layers four times, as 8 at once");
        assert!(!interleaves(94, 16, 4), "2 layers four times against 6");
        assert!(!interleaves(80, 1, 2), "one stage has nobody to wait for");
    }
}
