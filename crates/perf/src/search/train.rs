//! Sizing a run: which part, how many, which layout, how long, how much money.

use super::money::Order;
use super::serve::{Part, Ranged};
use super::{Rejection, train_layouts};
use crate::architecture::Architecture;
use crate::evidence::{Evidence, Intervals, Spread};
use crate::hardware::Accelerator;
use crate::memory::training::{TrainingMemory, training as memory_of};
use crate::memory::{Fit, FitAnswer};
use crate::precision::Math;
use crate::training::flops::ForwardFlops;
use crate::training::{
    Framework, Recompute, Run, StepParts, TrainingCoefficients, TrainingHardware, TrainingLayout,
    TrainingModel, checkpoint,
};
use flyball_core::units::Gpus;
use std::collections::BTreeMap;

/// Above this share of a step, a run waits for its links.
const LINK_BOUND: f64 = 0.5;

/// What is fixed about the size of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// Exactly so many accelerators; the earliest end wins.
    Gpus(u32),
    /// It must end within so many seconds; the least money wins.
    Deadline(f64),
    /// It may cost so many dollars; the earliest end wins.
    Budget(f64),
}

/// How saving and failing go. Assumptions that the answer states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reliability {
    /// Bytes per second with which one host writes a checkpoint.
    pub write_per_host: f64,
    /// Seconds from a failure to the first step after it.
    pub restart: f64,
}

impl Default for Reliability {
    /// Two gigabytes per second and host is what shared storage gives; ten minutes to notice, start
    /// again and load.
    fn default() -> Self {
        Self { write_per_host: 2e9, restart: 600.0 }
    }
}

/// The question.
#[derive(Clone, Debug)]
pub struct TrainQuestion<'a> {
    pub model: &'a Architecture,
    pub tokens: f64,
    pub sequence: f64,
    /// Sequences of one step.
    pub global_batch: f64,
    pub math: Math,
    pub framework: Framework,
    pub parts: &'a [Part<'a>],
    /// The whole catalogue, where relatives of unmeasured parts are looked for.
    pub all: &'a [Accelerator],
    pub size: Size,
    /// Most accelerators to consider where the size is open.
    pub most_gpus: u32,
    pub reliability: Reliability,
}

/// One way to run it.
#[derive(Clone, Debug)]
pub struct TrainChoice {
    pub part: usize,
    pub layout: TrainingLayout,
    pub gpus: Gpus,
    pub step: StepParts,
    pub step_seconds: Ranged,
    pub tokens_per_second: f64,
    /// Operations the model needs, attention counted causally, over the dense peak of the format.
    pub mfu: f64,
    /// The same with what is computed again.
    pub hfu: f64,
    pub memory: TrainingMemory,
    pub checkpoint_bytes: f64,
    pub save_interval: f64,
    /// Share of the time that saves, failures and work done again take.
    pub lost_share: f64,
    /// Seconds to the last token, with what is lost.
    pub seconds: Ranged,
    pub order: Option<Order>,
    /// Dollars for the whole run.
    pub usd: Option<Ranged>,
    pub evidence: Evidence,
}

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
    let mut plan = TrainPlan { ranked: Vec::new(), rejected: Vec::new(), considered: 0 };
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
            Err(unknown) => {
                let what = format!("model of training: {unknown}");
                reject(TrainingLayout::ONE, Rejection::Format { what });
                continue;
            }
        };
        let model = TrainingModel::new(question.model, &hardware, coefficients);
        let candidate = Candidate::new(question, part, &model, intervals);
        for gpus in sizes(question) {
            for layout in train_layouts::all(question, part.accelerator, gpus) {
                plan.considered += 1;
                match candidate.judge(layout) {
                    Ok(choice) => plan.ranked.push(TrainChoice { part: index, ..choice }),
                    Err(reason) => reject(layout, reason),
                }
            }
            progress(plan.considered);
        }
    }
    rank(question.size, &mut plan.ranked);
    plan.rejected = classes.into_values().collect();
    plan.rejected.sort_by(|a, b| a.reason.by_closeness(&b.reason));
    plan
}

fn sizes(question: &TrainQuestion<'_>) -> Vec<u32> {
    match question.size {
        Size::Gpus(gpus) => vec![gpus],
        _ => SIZES.into_iter().filter(|gpus| *gpus <= question.most_gpus).collect(),
    }
}

fn rank(size: Size, choices: &mut [TrainChoice]) {
    let usd = |choice: &TrainChoice| choice.usd.map_or(f64::INFINITY, |usd| usd.point);
    choices.sort_by(|a, b| {
        let by_money = usd(a).total_cmp(&usd(b));
        let by_time = a.seconds.point.total_cmp(&b.seconds.point);
        match size {
            Size::Deadline(_) => by_money.then(by_time),
            Size::Gpus(_) | Size::Budget(_) => by_time.then(by_money),
        }
    });
}

/// One part, ready to judge layouts.
struct Candidate<'a> {
    question: &'a TrainQuestion<'a>,
    part: &'a Part<'a>,
    model: &'a TrainingModel,
    run: Run,
    forward: ForwardFlops,
    spread: Spread,
    evidence: Evidence,
    checkpoint_bytes: f64,
}

impl<'a> Candidate<'a> {
    fn new(
        question: &'a TrainQuestion<'a>,
        part: &'a Part<'a>,
        model: &'a TrainingModel,
        intervals: &Intervals,
    ) -> Self {
        let moe = question.model.feed_forward.experts.is_some();
        let measured = part.accelerator.measured.is_some();
        let evidence = if measured { Evidence::SameParts } else { Evidence::DatasheetOnly };
        let TrainQuestion { sequence, global_batch, math, framework, .. } = *question;
        Self {
            question,
            part,
            model,
            run: Run::new(framework, sequence, global_batch, math),
            forward: ForwardFlops::of(question.model, sequence),
            spread: intervals.training_step(moe, evidence),
            evidence,
            checkpoint_bytes: checkpoint::bytes(question.model.parameters().total()),
        }
    }

    fn judge(&self, layout: TrainingLayout) -> Result<TrainChoice, Rejection> {
        let peak = &self.part.accelerator.peak;
        let missing = match self.run.math {
            Math::Fp8 if peak.fp8.is_none() => Some("FP8"),
            Math::Fp4 if peak.fp4.is_none() => Some("FP4"),
            _ => None,
        };
        if let Some(format) = missing {
            return Err(Rejection::Format { what: format.to_owned() });
        }
        let usable = self.part.accelerator.usable_memory;
        let memory = memory_of(self.question.model, &layout, &self.run);
        match memory.fits(usable) {
            FitAnswer { fit: Fit::Fits, .. } => {}
            FitAnswer { fit: Fit::Tight, most, .. } => {
                return Err(Rejection::Tight { needed: most, usable });
            }
            FitAnswer { least, .. } => return Err(Rejection::Memory { needed: least, usable }),
        }
        let step = self.model.step(&layout, &self.run);
        let share = step.share_of(step.tensor);
        if share > LINK_BOUND {
            let inside = layout.tensor <= self.part.accelerator.scale_up_domain.get();
            let part = self.part.accelerator;
            let link = if inside { &part.scale_up } else { &part.scale_out };
            let layout = format!("TP{}", layout.tensor);
            return Err(Rejection::Link { layout, link: link.name.clone(), share });
        }
        self.priced(layout, step, memory)
    }

    fn priced(
        &self,
        layout: TrainingLayout,
        step: StepParts,
        memory: TrainingMemory,
    ) -> Result<TrainChoice, Rejection> {
        let gpus = layout.gpus();
        let count = f64::from(gpus.get());
        let step_seconds = Ranged::new(step.total(), self.spread);
        let per_step = self.run.global_batch * self.run.sequence;
        let hosts = (count / f64::from(self.part.accelerator.node_gpus.get())).ceil();
        let reliability = &self.question.reliability;
        let save = self.checkpoint_bytes / (reliability.write_per_host * hosts);
        let mtbf = checkpoint::GPU_SECONDS_PER_INTERRUPTION / count;
        let save_interval = checkpoint::interval(save, mtbf);
        let lost_share = checkpoint::lost_share(save, reliability.restart, mtbf, save_interval);
        let steps = self.question.tokens / per_step;
        let whole = |seconds: f64| steps * seconds / (1.0 - lost_share).max(0.01);
        let seconds = step_seconds.map(whole);
        let order = self.part.offer.and_then(|offer| Order::of(offer, gpus));
        let usd = order.map(|order| seconds.map(|one| order.usd_per_hour() * one / 3_600.0));
        self.within(&seconds, usd)?;
        let tokens_per_second = per_step / step_seconds.point;
        let peak = self.part.accelerator.peak.at(self.run.math) * count;
        let needed = 3.0 * self.forward.causal();
        let again = match layout.recompute {
            Recompute::Full => self.forward.causal(),
            Recompute::Selective => self.forward.attention_square / 2.0,
            Recompute::None => 0.0,
        };
        Ok(TrainChoice {
            part: 0,
            layout,
            gpus,
            step,
            step_seconds,
            tokens_per_second,
            mfu: needed * tokens_per_second / peak,
            hfu: (needed + again) * tokens_per_second / peak,
            memory,
            checkpoint_bytes: self.checkpoint_bytes,
            save_interval,
            lost_share,
            seconds,
            order,
            usd,
            evidence: self.evidence,
        })
    }

    /// The whole interval must stay inside the deadline or the budget.
    fn within(&self, seconds: &Ranged, usd: Option<Ranged>) -> Result<(), Rejection> {
        match self.question.size {
            Size::Deadline(deadline) if seconds.high > deadline => {
                Err(Rejection::TooLate { seconds: seconds.high, deadline })
            }
            Size::Budget(budget) => match usd {
                None => Err(Rejection::NoPrice),
                Some(usd) if usd.high > budget => {
                    Err(Rejection::OverBudget { usd: usd.high, budget })
                }
                Some(_) => Ok(()),
            },
            Size::Deadline(_) if usd.is_none() => Err(Rejection::NoPrice),
            _ => Ok(()),
        }
    }
}
