//! What `flyball plan train` answers.

use flyball_perf::evidence::Evidence;
use flyball_perf::search::train::{Size, TrainChoice, TrainPlan, TrainQuestion};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::parts::{PaidView, two_of_each};
use super::super::range::{RangeView, tidy};
use super::changes::TrainChangeView;
use super::rejected::{self, RejectedClassView};
use crate::model::{Model, ModelView};

/// Ways to run a training, best first.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TrainAnswer {
    pub(super) model: ModelView,
    pub(super) framework: &'static str,
    pub(super) precision: &'static str,
    pub(super) tokens: f64,
    pub(super) sequence_tokens: f64,
    /// Requested sequences per step; each choice uses the nearest number that its layout divides.
    pub(super) sequences_per_step: f64,
    /// What was fixed: `gpus`, `deadline` or `budget`, and its value (seconds, or dollars).
    pub(super) fixed: &'static str,
    pub(super) fixed_value: f64,
    /// How accelerators are bought.
    pub(super) purchase: &'static str,
    pub(super) considered: usize,
    pub(super) feasible: usize,
    /// The most accelerators that were tried.
    pub(super) largest_tried: u32,
    /// Assumptions about values that were not given.
    pub(super) assumed: Vec<&'static str>,
    /// Best first; the first one is the plan.
    pub(super) choices: Vec<TrainChoiceView>,
    /// Rejected layouts by accelerator and kind of reason, closest first.
    pub(super) rejected: Vec<RejectedClassView>,
    /// The first choice under other conditions.
    pub(super) changes: Vec<TrainChangeView>,
    /// Risks of the first choice.
    pub(super) warnings: Vec<String>,
    /// Places of the parts among the choices.
    #[serde(skip)]
    pub(super) parts: Vec<usize>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TrainChoiceView {
    pub(super) accelerator: String,
    pub(super) gpus: u32,
    pub(super) billed_gpus: u32,
    /// As people write it, such as TP4 PP2 DP64 MB1 ZeRO-1.
    pub(super) layout: String,
    /// Sequences per step: the nearest number to the request that the layout divides.
    pub(super) sequences_per_step: u64,
    pub(super) step_seconds: RangeView,
    pub(super) tokens_per_second: f64,
    /// Model operations over the dense peak, attention counted causally (half of the square).
    pub(super) mfu: f64,
    /// The same with recomputation.
    pub(super) hfu: f64,
    pub(super) days: RangeView,
    pub(super) usd: Option<RangeView>,
    /// Percent of such runs that keep the deadline or the budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kept_percent: Option<f64>,
    pub(super) price: Option<PaidView>,
    /// Peak on the fullest accelerator.
    pub(super) memory_bytes: u64,
    pub(super) usable_bytes: u64,
    pub(super) checkpoint_bytes: u64,
    pub(super) save_every_seconds: f64,
    /// Share of the time that saves, failures and work done again take.
    pub(super) lost_share: f64,
    /// Seconds of a step by component, largest first.
    pub(super) step_parts: Vec<StepPartView>,
    pub(super) evidence: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lost_because: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StepPartView {
    pub(super) part: &'static str,
    pub(super) seconds: f64,
    pub(super) share: f64,
}

const DAY: f64 = 86_400.0;

impl TrainAnswer {
    pub(super) fn new(
        model: &Model,
        question: &TrainQuestion<'_>,
        plan: &TrainPlan,
        top: usize,
    ) -> TrainAnswer {
        let (fixed, fixed_value) = match question.size {
            Size::Gpus(gpus) => ("gpus", f64::from(gpus)),
            Size::Deadline(seconds) => ("deadline", seconds),
            Size::Budget(usd) => ("budget", usd),
        };
        let shown: Vec<&TrainChoice> = best_of_each(&plan.ranked).take(top).collect();
        let mut parts: Vec<usize> = shown.iter().map(|choice| choice.part).collect();
        parts.sort_unstable();
        parts.dedup();
        let choices =
            shown.into_iter().map(|choice| TrainChoiceView::new(question, plan, choice)).collect();
        TrainAnswer {
            model: model.view(),
            framework: question.framework.name(),
            precision: "bf16",
            tokens: question.tokens,
            sequence_tokens: question.sequence,
            sequences_per_step: tidy(question.global_batch),
            fixed,
            fixed_value,
            purchase: "on-demand",
            considered: plan.considered,
            feasible: plan.ranked.len(),
            largest_tried: plan.largest,
            assumed: vec![
                "Adam in mixed precision",
                "one interruption in 50,700 GPU-hours (arXiv 2407.21783)",
                "a host writes checkpoints at 2 GB/s",
                "10 minutes from a failure to the next step",
            ],
            choices,
            rejected: rejected::views(question, plan),
            changes: Vec::new(),
            warnings: Vec::new(),
            parts,
        }
    }
}

/// Two layouts of each part and size at most, so that near copies do not fill the table; and none
/// that takes ten times as long as the first, which nobody would run.
fn best_of_each(ranked: &[TrainChoice]) -> impl Iterator<Item = &TrainChoice> {
    let longest = ranked.first().map_or(0.0, |first| 10.0 * first.seconds.point);
    let quick = ranked.iter().filter(move |choice| choice.seconds.point <= longest);
    two_of_each(quick, |choice| (choice.part, choice.gpus))
}

impl TrainChoiceView {
    fn new(question: &TrainQuestion<'_>, plan: &TrainPlan, choice: &TrainChoice) -> Self {
        let part = &question.parts[choice.part];
        let total = choice.step.total();
        let mut step_parts: Vec<StepPartView> = choice
            .step
            .named()
            .into_iter()
            .filter(|(_, seconds)| *seconds > 0.0)
            .map(|(part, seconds)| StepPartView {
                part,
                seconds: tidy(seconds),
                share: tidy(seconds / total),
            })
            .collect();
        step_parts.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        TrainChoiceView {
            accelerator: part.accelerator.id.to_string(),
            gpus: choice.gpus.get(),
            billed_gpus: choice.order.map_or(choice.gpus.get(), |order| order.billed.get()),
            layout: choice.layout.to_string(),
            sequences_per_step: choice.global_batch as u64,
            step_seconds: RangeView::of(choice.step_seconds, 1.0),
            tokens_per_second: tidy(choice.tokens_per_second),
            mfu: tidy(choice.mfu),
            hfu: tidy(choice.hfu),
            days: RangeView::of(choice.seconds, 1.0 / DAY),
            usd: choice.usd.map(|usd| RangeView::of(usd, 1.0)),
            kept_percent: choice.confidence.map(|share| (100.0 * share).floor()),
            price: PaidView::of(part, choice.gpus.get()),
            memory_bytes: choice.memory.total().get(),
            usable_bytes: part.accelerator.usable_memory.get(),
            checkpoint_bytes: choice.checkpoint_bytes as u64,
            save_every_seconds: tidy(choice.save_interval),
            lost_share: tidy(choice.lost_share),
            step_parts,
            evidence: choice.evidence.to_string(),
            lost_because: plan
                .ranked
                .first()
                .filter(|first| !std::ptr::eq(*first, choice))
                .map(|first| lost(question.size, first, choice)),
        }
    }
}

impl TrainChoiceView {
    pub(super) fn rests_on_datasheet(&self) -> bool {
        self.evidence == Evidence::DatasheetOnly.to_string()
    }
}

/// What the first choice has over this one.
fn lost(size: Size, first: &TrainChoice, other: &TrainChoice) -> String {
    let percent = |a: f64, b: f64| (b / a - 1.0) * 100.0;
    let later = percent(first.seconds.point, other.seconds.point);
    let dearer = first.usd.zip(other.usd).map(|(a, b)| percent(a.point, b.point));
    let cause = largest_difference(first, other);
    match (size, dearer) {
        (Size::Deadline(_), Some(dearer)) => format!("{} more expensive: {cause}", share(dearer)),
        _ => format!("{} later: {cause}", share(later)),
    }
}

fn share(percent: f64) -> String {
    if percent < 0.5 { "less than 1 %".to_owned() } else { format!("{percent:.0} %") }
}

/// The part of the step that takes the most longer, per accelerator and token.
fn largest_difference(first: &TrainChoice, other: &TrainChoice) -> String {
    let per_gpu = |choice: &TrainChoice| f64::from(choice.gpus.get());
    let worst = first
        .step
        .named()
        .into_iter()
        .zip(other.step.named())
        .map(|((part, a), (_, b))| (part, b * per_gpu(other) - a * per_gpu(first)))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    match worst {
        Some((part, more)) if more > 0.0 => {
            let percent = more / (first.step.total() * per_gpu(first)) * 100.0;
            format!("{part} takes {} of a step more", share(percent))
        }
        _ => "its accelerators cost more".to_owned(),
    }
}
