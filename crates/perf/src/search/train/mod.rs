//! Sizing a run: which part, how many, which layout, how long, how much money.

mod candidate;
pub mod changes;
mod layouts;
mod question;
#[cfg(test)]
mod tests;

pub use candidate::TrainChoice;
pub use changes::TrainChange;
pub use question::{Reliability, Size, TrainQuestion};

use super::Rejection;
use crate::evidence::Intervals;
use crate::training::hardware::NotModelled;
use crate::training::{TrainingCoefficients, TrainingHardware, TrainingLayout, TrainingModel};
use candidate::Candidate;
use std::collections::BTreeMap;

/// Layouts of one part that were ruled out for one kind of reason.
#[derive(Clone, Debug)]
pub struct RejectedClass {
    pub part: usize,
    pub count: usize,
    /// One of them, as an example.
    pub layout: TrainingLayout,
    pub reason: Rejection,
}

#[derive(Clone, Debug)]
pub struct TrainPlan {
    pub ranked: Vec<TrainChoice>,
    pub rejected: Vec<RejectedClass>,
    pub considered: usize,
    /// The most accelerators that were tried.
    pub largest: u32,
}

/// Numbers of accelerators to try where the size is open: hosts of eight, in steps of a third to a
/// half, as clusters are sold.
const SIZES: [u32; 19] = [
    8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192, 16_384,
];

/// Tries everything. `progress` hears how many layouts were looked at.
pub fn train(
    question: &TrainQuestion<'_>,
    coefficients: &TrainingCoefficients,
    intervals: &Intervals,
    progress: &mut dyn FnMut(usize),
) -> TrainPlan {
    let sizes = sizes(question);
    let largest = sizes.last().copied().unwrap_or(0);
    let mut plan = TrainPlan { ranked: Vec::new(), rejected: Vec::new(), considered: 0, largest };
    let mut classes: BTreeMap<(usize, &'static str), RejectedClass> = BTreeMap::new();
    for (index, part) in question.parts.iter().enumerate() {
        let mut reject = |layout: TrainingLayout, reason: Rejection| {
            classes
                .entry((index, reason.word()))
                .and_modify(|class| {
                    class.count += 1;
                    if reason.by_closeness(&class.reason).is_lt() {
                        (class.layout, class.reason) = (layout, reason.clone());
                    }
                })
                .or_insert_with(|| RejectedClass {
                    part: index,
                    count: 1,
                    layout,
                    reason: reason.clone(),
                });
        };
        let hardware = match TrainingHardware::of(part.accelerator, question.all) {
            Ok(hardware) => hardware,
            Err(NotModelled { link, .. }) => {
                let what = format!("model of training on a torus ({link})");
                reject(TrainingLayout::ONE, Rejection::Format { what });
                continue;
            }
        };
        let model = TrainingModel::new(question.model, &hardware, coefficients);
        let candidate = Candidate::new(question, part, &model, intervals);
        for gpus in &sizes {
            let layouts = layouts::all(question, part.accelerator, *gpus);
            plan.considered += layouts.planned.len() + layouts.indivisible.len();
            for planned in layouts.planned {
                match candidate.judge(&planned) {
                    Ok(choice) => plan.ranked.push(TrainChoice { part: index, ..choice }),
                    Err(reason) => reject(planned.layout, reason),
                }
            }
            for (layout, reason) in layouts.indivisible {
                reject(layout, reason);
            }
            progress(plan.considered);
        }
    }
    rank(question.size, &mut plan.ranked);
    plan.rejected = classes.into_values().collect();
    plan.rejected.sort_by(|a, b| a.reason.by_closeness(&b.reason));
    plan
}

/// The usual sizes up to the most that is allowed, and that one itself.
fn sizes(question: &TrainQuestion<'_>) -> Vec<u32> {
    let most = match question.size {
        Size::Gpus(gpus) => return vec![gpus],
        Size::Deadline(_) | Size::Budget(_) => question.most_gpus,
    };
    SIZES.into_iter().filter(|gpus| *gpus < most).chain([most]).collect()
}

/// By the high ends: a part about which little is known must be that much better to win.
fn rank(size: Size, choices: &mut [TrainChoice]) {
    let usd = |choice: &TrainChoice| choice.usd.map_or(f64::INFINITY, |usd| usd.high);
    choices.sort_by(|a, b| {
        let by_money = usd(a).total_cmp(&usd(b));
        let by_time = a.seconds.high.total_cmp(&b.seconds.high);
        match size {
            Size::Deadline(_) => by_money.then(by_time),
            Size::Gpus(_) | Size::Budget(_) => by_time.then(by_money),
        }
    });
}
