//! Judging one layout of a training run.

use super::layouts::Planned;
use super::question::{Size, TrainQuestion};
use crate::evidence::{Evidence, Intervals, Spread};
use crate::memory::training::{TrainingMemory, training as memory_of};
use crate::memory::{Fit, FitAnswer};
use crate::precision::Math;
use crate::search::Rejection;
use crate::search::money::PurchaseOrder;
use crate::search::part::{OfferedPart, Ranged};
use crate::training::flops::ForwardFlops;
use crate::training::hardware::chip_is_measured;
use crate::training::{
    Recompute, TrainingLayout, TrainingModel, TrainingSetup, TrainingStepParts, calibrated,
    checkpoint,
};
use flyball_core::units::Gpus;

/// Above this share of a step, a run waits for its links.
const LINK_BOUND: f64 = 0.5;

/// One way to run it.
#[derive(Clone, Debug)]
pub struct TrainChoice {
    pub part: usize,
    pub layout: TrainingLayout,
    pub gpus: Gpus,
    /// Sequences per step: the nearest number to the request that the layout divides.
    pub global_batch: f64,
    pub step: TrainingStepParts,
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
    pub order: Option<PurchaseOrder>,
    /// Dollars for the whole run.
    pub usd: Option<Ranged>,
    /// The share of such runs that keep the deadline or the budget.
    pub confidence: Option<f64>,
    pub evidence: Evidence,
}

/// One part, ready to judge layouts.
pub(super) struct Candidate<'a> {
    question: &'a TrainQuestion<'a>,
    part: &'a OfferedPart<'a>,
    model: &'a TrainingModel,
    run: TrainingSetup,
    forward: ForwardFlops,
    spread: Spread,
    evidence: Evidence,
    checkpoint_bytes: f64,
}

impl<'a> Candidate<'a> {
    pub(super) fn new(
        question: &'a TrainQuestion<'a>,
        part: &'a OfferedPart<'a>,
        model: &'a TrainingModel,
        intervals: &Intervals,
    ) -> Self {
        let moe = question.model.feed_forward.experts.is_some();
        let evidence = evidence(question, part);
        let TrainQuestion { sequence, global_batch, math, framework, .. } = *question;
        Self {
            question,
            part,
            model,
            run: TrainingSetup::new(framework, sequence, global_batch, math),
            forward: ForwardFlops::of(question.model, sequence),
            spread: intervals.training_plan(moe, evidence),
            evidence,
            checkpoint_bytes: checkpoint::bytes(question.model.parameters().total()),
        }
    }

    pub(super) fn judge(&self, planned: &Planned) -> Result<TrainChoice, Rejection> {
        let layout = planned.layout;
        let run = TrainingSetup { global_batch: planned.global_batch, ..self.run };
        let offer = self.part.offer(layout.gpus().get());
        let order = offer.and_then(|offer| PurchaseOrder::of(offer, layout.gpus()));
        // Without a price nothing else matters where money decides.
        if order.is_none() && !matches!(self.question.size, Size::Gpus(_)) {
            return Err(Rejection::NoPrice);
        }
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
        let fuller = self.fuller(&layout);
        let memory = memory_of(self.question.model, &layout, &run);
        // Where weights are gathered, that is counted already.
        let memory = match layout.sharding.gathers() {
            true => memory,
            false => memory.of_fullest_stage(fuller),
        };
        match memory.fits(usable) {
            FitAnswer { fit: Fit::Fits, .. } => {}
            FitAnswer { fit: Fit::Tight, most, .. } => {
                return Err(Rejection::Tight { needed: most, usable });
            }
            FitAnswer { least, .. } => return Err(Rejection::Memory { needed: least, usable }),
        }
        let step = self.model.step(&layout, &run).of_fullest_stage(fuller);
        let share = step.share_of(step.tensor);
        if share > LINK_BOUND {
            let link = self.part.accelerator.link_among(layout.tensor).name;
            return Err(Rejection::Link { layout: format!("TP{}", layout.tensor), link, share });
        }
        self.priced(planned, step, memory, order)
    }

    /// Layers of the fullest stage over those of the mean one: 4 against 61 / 16.
    fn fuller(&self, layout: &TrainingLayout) -> f64 {
        let layers = self.question.model.layers.total();
        let fullest = f64::from(layers.div_ceil(layout.pipeline));
        fullest * f64::from(layout.pipeline) / f64::from(layers)
    }

    fn priced(
        &self,
        planned: &Planned,
        step: TrainingStepParts,
        memory: TrainingMemory,
        order: Option<PurchaseOrder>,
    ) -> Result<TrainChoice, Rejection> {
        let &Planned { layout, global_batch } = planned;
        let gpus = layout.gpus();
        let count = f64::from(gpus.get());
        let step_seconds = Ranged::new(step.total(), self.spread);
        let per_step = global_batch * self.run.sequence;
        let hosts = (count / f64::from(self.part.accelerator.node_gpus.get())).ceil();
        let reliability = &self.question.reliability;
        let save = self.checkpoint_bytes / (reliability.write_per_host * hosts);
        let mtbf = checkpoint::GPU_SECONDS_PER_INTERRUPTION / count;
        let save_interval = checkpoint::interval(save, mtbf);
        let lost_share = checkpoint::lost_share(save, reliability.restart, mtbf, save_interval);
        let steps = self.question.tokens / per_step;
        let whole = |seconds: f64| steps * seconds / (1.0 - lost_share).max(0.01);
        let seconds = step_seconds.map(whole);
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
            global_batch,
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
            confidence: self.confidence(&seconds, usd),
            evidence: self.evidence,
        })
    }

    /// So many of such runs as were asked for must stay inside the deadline or the budget. Held against the far end of
    /// its interval, which nineteen in twenty keep, a plan asked for three times the accelerators that people used.
    fn within(&self, seconds: &Ranged, usd: Option<Ranged>) -> Result<(), Rejection> {
        let sure = |of: &Ranged| self.spread.bound(of.point, self.question.confidence);
        match self.question.size {
            Size::Deadline(deadline) if sure(seconds) > deadline => {
                Err(Rejection::TooLate { seconds: sure(seconds), deadline })
            }
            Size::Budget(budget) => match usd.as_ref().map(sure) {
                Some(usd) if usd > budget => Err(Rejection::OverBudget { usd, budget }),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// How many of such runs stay inside the deadline or the budget.
    fn confidence(&self, seconds: &Ranged, usd: Option<Ranged>) -> Option<f64> {
        match self.question.size {
            Size::Gpus(_) => None,
            Size::Deadline(deadline) => Some(self.spread.chance_within(seconds.point, deadline)),
            Size::Budget(budget) => usd.map(|usd| self.spread.chance_within(usd.point, budget)),
        }
    }
}

/// What stands behind the speed of a part with this framework.
fn evidence(question: &TrainQuestion<'_>, part: &OfferedPart<'_>) -> Evidence {
    if calibrated::on(question.framework, part.accelerator.id.as_str()) {
        Evidence::SameParts
    } else if chip_is_measured(part.accelerator, question.all) {
        Evidence::OtherParts
    } else {
        Evidence::DatasheetOnly
    }
}
