//! What `flyball plan serve` answers.

use flyball_perf::evidence::Evidence;
use flyball_perf::search::sensitivity::{Cliff, SensitivityChange};
use flyball_perf::search::serve::{
    OfferedPart, ServeChoice, ServeObjective, ServePlan, ServeQuestion,
};
use flyball_perf::serving::steady::RequestShape;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::parts::{PaidView, two_of_each};
use super::super::range::{RangeView, tidy};
use super::super::trace::Load;
use super::{assumed_shape, why};
use crate::model::{Model, ModelView};

/// Ways to serve a load, best first.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServeAnswer {
    pub(super) model: ModelView,
    pub(super) engine: &'static str,
    pub(super) load: LoadView,
    pub(super) targets: TargetView,
    /// By what the choices are ranked.
    pub(super) objective: &'static str,
    /// How accelerators are bought.
    pub(super) purchase: &'static str,
    /// Number of layouts and settings considered.
    pub(super) considered: usize,
    /// Best first; the first one is the plan.
    pub(super) choices: Vec<ChoiceView>,
    /// Every possible layout as a point, for pictures.
    pub(super) points: Vec<PointView>,
    /// Rejected layouts, by accelerator and reason, closest first.
    pub(super) rejected: Vec<RejectedView>,
    /// The first choice under other conditions.
    pub(super) changes: Vec<ChangeView>,
    /// Targets near which the first choice needs far more or far fewer accelerators.
    pub(super) cliffs: Vec<CliffView>,
    /// Risks of the first choice.
    pub(super) warnings: Vec<String>,
    /// Where the time of the first choice's steps goes; only with --explain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) step: Option<StepView>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LoadView {
    /// Requests per second.
    pub(super) rate: f64,
    pub(super) input_tokens: f64,
    pub(super) output_tokens: f64,
    /// Requests of the trace, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trace_requests: Option<usize>,
    /// Assumptions about values that were not given.
    pub(super) assumed: Vec<&'static str>,
    #[serde(skip)]
    pub(super) shape: RequestShape,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TargetView {
    /// Milliseconds, 95th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ttft_p95_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) itl_p95_ms: Option<f64>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChoiceView {
    pub(super) accelerator: String,
    /// As people write it, such as TP4 or TP1 DP8 EP8.
    pub(super) layout: String,
    pub(super) gpus_per_replica: u32,
    pub(super) replicas: u32,
    pub(super) gpus: u32,
    /// GPUs that are paid for: whole hosts where they are sold whole.
    pub(super) billed_gpus: u32,
    /// Prompt tokens per step.
    pub(super) chunk_tokens: u32,
    /// Milliseconds; from the queueing formula.
    pub(super) ttft_p95_ms: RangeView,
    pub(super) itl_p95_ms: RangeView,
    /// Mean time per token at this load, and at full capacity.
    pub(super) tpot_ms: RangeView,
    pub(super) tpot_full_ms: RangeView,
    /// Share of steps with prompt tokens, and the length of such a step. Above one in twenty it is
    /// the 95th percentile.
    pub(super) prompt_step_share: f64,
    pub(super) prompt_step_ms: f64,
    /// Share of the capacity in use.
    pub(super) load: f64,
    /// Capacity of one replica within the objectives, in requests per second.
    pub(super) replica_capacity: RangeView,
    /// Tokens that one replica's cache holds.
    pub(super) cache_tokens: RangeView,
    pub(super) usd_per_hour: Option<f64>,
    pub(super) usd_per_million_output_tokens: Option<f64>,
    pub(super) price: Option<PaidView>,
    /// Source of the speed.
    pub(super) evidence: String,
    /// What limits the capacity of a replica: TTFT, ITL, memory, batch (concurrent requests) or
    /// prompts.
    pub(super) bound_by: &'static str,
    /// Why it is not the first choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lost_because: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PointView {
    pub(super) accelerator: String,
    pub(super) layout: String,
    pub(super) replicas: u32,
    pub(super) usd_per_hour: f64,
    pub(super) gpus_per_replica: u32,
    pub(super) ttft_p95_ms: RangeView,
    pub(super) itl_p95_ms: RangeView,
    pub(super) tpot_ms: RangeView,
    pub(super) tpot_full_ms: RangeView,
    pub(super) replica_capacity: RangeView,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RejectedView {
    pub(super) accelerator: String,
    /// The layout that came closest.
    pub(super) layout: String,
    /// One word.
    pub(super) reason: &'static str,
    pub(super) because: String,
    /// Number of layouts of this accelerator rejected for this reason.
    pub(super) layouts: usize,
    /// The accelerator serves in another layout.
    pub(super) part_serves: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChangeView {
    pub(super) what: &'static str,
    /// The first choice then, such as `5 x h200-sxm-141gb TP1`; absent if nothing would do.
    pub(super) then: Option<String>,
    pub(super) usd_per_hour: Option<f64>,
    /// Whether the accelerator or layout differs, not only the number of replicas.
    pub(super) changes_the_choice: bool,
}

/// A small change of a target that moves the number of accelerators much.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CliffView {
    /// TTFT or ITL.
    pub(super) target: &'static str,
    /// Milliseconds as requested, and as they would have to be.
    pub(super) asked_ms: f64,
    pub(super) then_ms: f64,
    /// Accelerators then; absent if none would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) gpus: Option<u32>,
}

impl From<&Cliff> for CliffView {
    fn from(cliff: &Cliff) -> CliffView {
        CliffView {
            target: cliff.target.name(),
            asked_ms: tidy(cliff.limit * 1e3),
            then_ms: tidy(cliff.moved * 1e3),
            gpus: cliff.gpus,
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StepView {
    /// Requests that decode concurrently in a replica.
    pub(super) running: f64,
    /// The two kinds of step, by what they are spent on.
    pub(super) parts: Vec<StepPartView>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StepPartView {
    pub(super) part: &'static str,
    pub(super) decode_ms: f64,
    pub(super) with_prompt_ms: f64,
}

impl LoadView {
    pub(super) fn new(
        rate: Option<f64>,
        input: Option<f64>,
        output: Option<f64>,
        trace: Option<&Load>,
    ) -> LoadView {
        let input = input.or(trace.map(|load| load.input_mean)).unwrap_or(1.0);
        let output = output.or(trace.map(|load| load.output_mean)).unwrap_or(1.0);
        let rate = rate.or(trace.map(|load| load.peak_rate)).unwrap_or(1.0);
        let (shape, mut assumed) = match trace {
            Some(load) => {
                let Load { input_variation, input_p95, .. } = *load;
                (RequestShape { input, output, input_variation, input_p95 }, Vec::new())
            }
            None => (assumed_shape(input, output), vec!["p95 prompt 2.5 x the mean"]),
        };
        assumed.extend(["arrivals without bursts", "no shared prefixes"]);
        LoadView {
            rate: tidy(rate),
            input_tokens: tidy(input),
            output_tokens: tidy(output),
            trace_requests: trace.map(|load| load.requests),
            assumed,
            shape,
        }
    }
}

impl ServeAnswer {
    pub(super) fn new(
        model: &Model,
        load: &LoadView,
        question: &ServeQuestion<'_>,
        plan: &ServePlan,
        changes: &[SensitivityChange],
        top: usize,
    ) -> ServeAnswer {
        let choices = two_of_each(plan.ranked.iter(), |choice| choice.part)
            .take(top.max(1))
            .map(|choice| ChoiceView::new(question, plan, choice))
            .collect();
        let ms = |seconds: Option<f64>| seconds.map(|seconds| tidy(seconds * 1e3));
        ServeAnswer {
            model: model.view(),
            engine: question.engine.name(),
            load: load.clone(),
            targets: TargetView {
                ttft_p95_ms: ms(question.targets.ttft_p95),
                itl_p95_ms: ms(question.targets.itl_p95),
            },
            objective: match question.objective {
                ServeObjective::Cheapest => "cheapest",
                ServeObjective::Fastest { .. } => "fastest",
                ServeObjective::FewestGpus => "fewest-gpus",
                ServeObjective::TokensPerDollar => "tokens-per-dollar",
            },
            purchase: "on-demand",
            considered: plan.considered,
            choices,
            points: plan.ranked.iter().filter_map(|choice| point(question, choice)).collect(),
            rejected: rejected(question, plan),
            changes: changes.iter().map(|one| change(question.parts, plan, one)).collect(),
            cliffs: Vec::new(),
            warnings: Vec::new(),
            step: None,
        }
    }
}

impl ChoiceView {
    fn new(question: &ServeQuestion<'_>, plan: &ServePlan, choice: &ServeChoice) -> ChoiceView {
        let part = &question.parts[choice.part];
        let tokens = choice.memory.cache_tokens;
        let [low, point, high] =
            [tokens.low(), tokens.point(), tokens.high()].map(|tokens| tokens.get() as f64);
        ChoiceView {
            accelerator: part.accelerator.id.to_string(),
            layout: choice.layout.to_string(),
            gpus_per_replica: choice.layout.gpus().get(),
            replicas: choice.replicas.get(),
            gpus: choice.gpus.get(),
            billed_gpus: choice.order.map_or(choice.gpus.get(), |order| order.billed.get()),
            chunk_tokens: choice.chunk,
            ttft_p95_ms: RangeView::of(choice.ttft_p95, 1e3),
            itl_p95_ms: RangeView::of(choice.itl_p95, 1e3),
            tpot_ms: RangeView::of(choice.tpot, 1e3),
            tpot_full_ms: RangeView::of(choice.tpot_full, 1e3),
            prompt_step_share: tidy(choice.at.prompt_share),
            prompt_step_ms: tidy(choice.at.prompt_step * 1e3),
            load: tidy(choice.load()),
            replica_capacity: RangeView::of(choice.capacity, 1.0),
            cache_tokens: RangeView { low, point, high },
            usd_per_hour: choice.order.map(|order| tidy(order.usd_per_hour())),
            usd_per_million_output_tokens: choice.usd_per_million.map(tidy),
            price: PaidView::of(part, choice.layout.gpus().get()),
            evidence: choice.evidence.to_string(),
            bound_by: choice.bound.word(),
            lost_because: plan
                .ranked
                .first()
                .filter(|first| !std::ptr::eq(*first, choice))
                .map(|first| why::lost(question, first, choice)),
        }
    }

    pub(super) fn rests_on_datasheet(&self) -> bool {
        self.evidence == Evidence::DatasheetOnly.to_string()
    }
}

/// All that was ruled out, by part and reason. The search has sorted it closest first.
fn rejected(question: &ServeQuestion<'_>, plan: &ServePlan) -> Vec<RejectedView> {
    let mut found: Vec<RejectedView> = Vec::new();
    for one in &plan.rejected {
        let accelerator = question.parts[one.part].accelerator.id.to_string();
        let reason = one.reason.word();
        let same =
            |known: &&mut RejectedView| known.accelerator == accelerator && known.reason == reason;
        match found.iter_mut().find(same) {
            Some(known) => known.layouts += 1,
            None => found.push(RejectedView {
                accelerator,
                layout: one.layout.to_string(),
                reason,
                because: one.reason.to_string(),
                layouts: 1,
                part_serves: plan.ranked.iter().any(|choice| choice.part == one.part),
            }),
        }
    }
    found
}

fn point(question: &ServeQuestion<'_>, choice: &ServeChoice) -> Option<PointView> {
    Some(PointView {
        accelerator: question.parts[choice.part].accelerator.id.to_string(),
        layout: choice.layout.to_string(),
        replicas: choice.replicas.get(),
        gpus_per_replica: choice.layout.gpus().get(),
        usd_per_hour: tidy(choice.order?.usd_per_hour()),
        ttft_p95_ms: RangeView::of(choice.ttft_p95, 1e3),
        itl_p95_ms: RangeView::of(choice.itl_p95, 1e3),
        tpot_ms: RangeView::of(choice.tpot, 1e3),
        tpot_full_ms: RangeView::of(choice.tpot_full, 1e3),
        replica_capacity: RangeView::of(choice.capacity, 1.0),
    })
}

fn change(parts: &[OfferedPart<'_>], plan: &ServePlan, change: &SensitivityChange) -> ChangeView {
    let named = |choice: &ServeChoice| {
        let id = &parts[choice.part].accelerator.id;
        format!("{} x {id} {}", choice.replicas.get(), choice.layout)
    };
    let same = |choice: &ServeChoice| {
        plan.ranked
            .first()
            .is_some_and(|first| (first.part, first.layout) == (choice.part, choice.layout))
    };
    ChangeView {
        what: change.what,
        then: change.first.as_ref().map(named),
        usd_per_hour: change
            .first
            .as_ref()
            .and_then(|choice| choice.order)
            .map(|order| tidy(order.usd_per_hour())),
        changes_the_choice: change.first.as_ref().is_none_or(|choice| !same(choice)),
    }
}
