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
use super::part::Ranged;
use crate::evidence::{Evidence, Intervals};
use crate::training::hardware::NotModelled;
use crate::training::{TrainingCoefficients, TrainingHardware, TrainingLayout, TrainingModel};
use candidate::Candidate;
use std::collections::{BTreeMap, BTreeSet};

/// Layouts of one part that were ruled out for one kind of reason.
#[derive(Clone, Debug)]
pub struct RejectedClass {
    pub part: usize,
    pub count: usize,
    /// One of them, as an example.
    pub layout: TrainingLayout,
    pub reason: Rejection,
}

#[derive(Clone, Debug, Default)]
pub struct TrainPlan {
    pub ranked: Vec<TrainChoice>,
    pub rejected: Vec<RejectedClass>,
    pub considered: usize,
    /// The most accelerators that were tried.
    pub largest: u32,
}

/// Accelerators of a host.
const HOST: u32 = 8;

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
    let mut search = Search {
        question,
        coefficients,
        intervals,
        plan: TrainPlan::default(),
        classes: BTreeMap::new(),
    };
    search.sizes(&sizes(question), progress);
    for fewer in fewer(question.size) {
        if !search.plan.ranked.is_empty() {
            break;
        }
        search.sizes(&[fewer], progress);
    }
    let Search { mut plan, classes, .. } = search;
    rank(question.size, &mut plan.ranked);
    plan.rejected = classes.into_values().collect();
    plan.rejected.sort_by(|a, b| a.reason.by_closeness(&b.reason));
    plan
}

struct Search<'a> {
    question: &'a TrainQuestion<'a>,
    coefficients: &'a TrainingCoefficients,
    intervals: &'a Intervals,
    plan: TrainPlan,
    /// By part and kind of reason.
    classes: BTreeMap<(usize, &'static str), RejectedClass>,
}

impl Search<'_> {
    /// Every layout of so many accelerators, on every part.
    fn sizes(&mut self, sizes: &[u32], progress: &mut dyn FnMut(usize)) {
        let question = self.question;
        self.plan.largest = sizes.iter().copied().fold(self.plan.largest, u32::max);
        for (index, part) in question.parts.iter().enumerate() {
            let hardware = match TrainingHardware::of(part.accelerator, question.all) {
                Ok(hardware) => hardware,
                Err(NotModelled { link, .. }) => {
                    let what = format!("model of training on a torus ({link})");
                    self.reject(index, TrainingLayout::ONE, Rejection::Format { what });
                    continue;
                }
            };
            let model = TrainingModel::new(question.model, &hardware, self.coefficients);
            let candidate = Candidate::new(question, part, &model, self.intervals);
            for gpus in sizes {
                let layouts = layouts::all(question, part.accelerator, *gpus);
                self.plan.considered += layouts.planned.len() + layouts.indivisible.len();
                for planned in layouts.planned {
                    match candidate.judge(&planned) {
                        Ok(choice) => self.plan.ranked.push(TrainChoice { part: index, ..choice }),
                        Err(reason) => self.reject(index, planned.layout, reason),
                    }
                }
                for (layout, reason) in layouts.indivisible {
                    self.reject(index, layout, reason);
                }
                progress(self.plan.considered);
            }
        }
    }

    fn reject(&mut self, part: usize, layout: TrainingLayout, reason: Rejection) {
        let class = self.classes.entry((part, reason.word())).or_insert_with(|| RejectedClass {
            part,
            count: 0,
            layout,
            reason: reason.clone(),
        });
        class.count += 1;
        if reason.by_closeness(&class.reason).is_lt() {
            (class.layout, class.reason) = (layout, reason);
        }
    }
}

/// The usual sizes up to the most that is allowed, and that one itself; of a given number also the whole hosts in it.
fn sizes(question: &TrainQuestion<'_>) -> Vec<u32> {
    let most = match question.size {
        Size::Gpus(gpus) => {
            let hosts = gpus / HOST * HOST;
            return [hosts, gpus]
                .into_iter()
                .filter(|size| *size > 0)
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect();
        }
        Size::Deadline(_) | Size::Budget(_) => question.most_gpus,
    };
    SIZES.into_iter().filter(|gpus| *gpus < most).chain([most]).collect()
}

/// Smaller sizes for a given number that nothing divides into: whole hosts, down to half of what is there.
fn fewer(size: Size) -> impl Iterator<Item = u32> {
    let most = match size {
        Size::Gpus(gpus) => gpus,
        Size::Deadline(_) | Size::Budget(_) => 0,
    };
    (most / 2 / HOST..most / HOST).rev().map(|hosts| hosts * HOST).filter(|gpus| *gpus > 0)
}

/// By what is likeliest; a part that nobody has measured by its high end, so that it wins only where it would there too.
fn rank(size: Size, choices: &mut [TrainChoice]) {
    let likely = |choice: &TrainChoice, range: Ranged| match choice.evidence {
        Evidence::DatasheetOnly => range.high,
        _ => range.point,
    };
    let usd = |choice: &TrainChoice| choice.usd.map_or(f64::INFINITY, |usd| likely(choice, usd));
    choices.sort_by(|a, b| {
        let by_money = usd(a).total_cmp(&usd(b));
        let by_time = likely(a, a.seconds).total_cmp(&likely(b, b.seconds));
        match size {
            Size::Deadline(_) => by_money.then(by_time),
            Size::Gpus(_) | Size::Budget(_) => by_time.then(by_money),
        }
    });
}
