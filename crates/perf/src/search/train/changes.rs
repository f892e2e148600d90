//! What would change the answer about a training run.

use super::question::{Size, TrainQuestion};
use super::{TrainChoice, train};
use crate::evidence::Intervals;
use crate::precision::Math;
use crate::search::part::OfferedPart;
use crate::training::TrainingCoefficients;

/// A change of the question, and what the answer would then be.
#[derive(Clone, Debug)]
pub struct TrainChange {
    pub what: &'static str,
    /// The first choice then; `None` if nothing would do.
    pub first: Option<TrainChoice>,
}

impl TrainChange {
    /// Whether the first choice then is another part or cut another way. More or fewer copies of the
    /// same, other micro-batches and recomputation are settings.
    pub fn differs_from(&self, now: &TrainChoice) -> bool {
        let cut = |choice: &TrainChoice| {
            let layout = &choice.layout;
            (choice.part, layout.tensor, layout.pipeline, layout.context, layout.expert)
        };
        self.first.as_ref().is_none_or(|first| cut(first) != cut(now))
    }
}

/// Asks again with precision, size and length moved, one at a time, of the parts with these places
/// alone: asking about all would take as long as the question each time. `progress` hears how many
/// layouts were looked at.
pub fn changes(
    question: &TrainQuestion<'_>,
    among: &[usize],
    coefficients: &TrainingCoefficients,
    intervals: &Intervals,
    progress: &mut dyn FnMut(usize),
) -> Vec<TrainChange> {
    let parts: Vec<OfferedPart<'_>> =
        among.iter().map(|index| question.parts[*index].clone()).collect();
    let fewer = TrainQuestion { parts: &parts, ..question.clone() };
    let mut before = 0;
    let mut answers = Vec::new();
    for (what, moved) in moved(&fewer) {
        let plan =
            train(&moved, coefficients, intervals, &mut |considered| progress(before + considered));
        before += plan.considered;
        let first = plan.ranked.into_iter().next();
        let first = first.map(|first| TrainChoice { part: among[first.part], ..first });
        answers.push(TrainChange { what, first });
    }
    answers
}

fn moved<'a>(question: &TrainQuestion<'a>) -> Vec<(&'static str, TrainQuestion<'a>)> {
    let mut moved = Vec::new();
    if question.math != Math::Half {
        moved.push(("BF16", TrainQuestion { math: Math::Half, ..question.clone() }));
    } else if question.parts.iter().any(|part| part.accelerator.peak.fp8.is_some()) {
        moved.push(("FP8", TrainQuestion { math: Math::Fp8, ..question.clone() }));
    }
    let sizes = match question.size {
        Size::Gpus(gpus) => vec![
            ("twice the GPUs", Size::Gpus(gpus.saturating_mul(2))),
            ("half the GPUs", Size::Gpus(gpus / 2)),
        ],
        Size::Deadline(seconds) => vec![("deadline -25 %", Size::Deadline(seconds * 0.75))],
        Size::Budget(usd) => vec![("budget -25 %", Size::Budget(usd * 0.75))],
    };
    let whole = sizes.into_iter().filter(|(_, size)| *size != Size::Gpus(0));
    moved.extend(whole.map(|(what, size)| (what, TrainQuestion { size, ..question.clone() })));
    // As many tokens per step, in longer sequences.
    let longer = TrainQuestion {
        sequence: question.sequence * 2.0,
        global_batch: (question.global_batch / 2.0).max(1.0),
        ..question.clone()
    };
    moved.push(("sequences twice as long", longer));
    moved
}
