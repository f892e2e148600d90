//! What one replica can do within its objectives, in the units that demand is counted in.
//!
//! The simulator asks it for the replicas of a scenario and the operator for those of a cluster, so
//! that both tell the governor the same.

use super::batch::Step;
use super::fold::Replica;
use super::steady::{Limits, Operating, Shape, most_running};
use super::step::StepModel;
use crate::architecture::Architecture;
use crate::catalog::Catalog;
use crate::coefficients::Coefficients;
use crate::engine::Engine;
use crate::layout::ServingLayout;
use crate::memory::serving::{Budget, Replica as InMemory};
use crate::models;
use crate::precision::Dtype;
use flyball_core::interval::{Interval, Origin};
use flyball_core::snapshot::{Capacity, Objectives};
use flyball_core::units::{Micros, Tokens, TokensPerSecond};

/// A replica is not planned fuller than this, in prompts or in requests at once: near 1 the queue
/// explodes. The same bound that `plan` uses.
const FULLEST: f64 = 0.9;

/// What capacity is told as: so much either way. The spread of the intervals for parts and models
/// that were measured is about this.
const SPREAD: f64 = 0.1;

/// A model on accelerators of one kind, served by vLLM.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The model, by its name in the list of known ones.
    pub model: &'a str,
    /// The accelerator, by its name in the catalogue.
    pub accelerator: &'a str,
    /// Accelerators that one replica is spread over.
    pub tensor: u32,
    /// Prompt tokens of one step.
    pub step_tokens: u32,
    /// Requests that run at once, at most.
    pub most_running: u32,
}

/// How long steps take, and how many tokens the cache holds; or why that cannot be told.
pub fn predicted(wanted: &Wanted<'_>, shape: &Shape) -> Result<(StepModel, Tokens), String> {
    let config = models::config(wanted.model)
        .ok_or_else(|| format!("no model is called {}", wanted.model))?;
    let model = Architecture::from_config(config).map_err(|error| error.to_string())?;
    let catalog = Catalog::builtin();
    let accelerator = catalog.accelerator(wanted.accelerator).map_err(|error| error.to_string())?;
    let kernels = accelerator
        .kernels
        .as_ref()
        .ok_or_else(|| format!("nobody has measured kernels on {}", wanted.accelerator))?;
    let layout = ServingLayout::tensor(wanted.tensor);
    let cache = model.stored.cache.unwrap_or(Dtype::Bf16);
    let replica = Replica { model: &model, accelerator, layout, engine: Engine::Vllm, cache };
    let step = StepModel::new(&replica, kernels, &Coefficients::serving())
        .map_err(|error| error.to_string())?;
    let budget = Budget {
        batched_tokens: wanted.step_tokens,
        sequences: wanted.most_running,
        ..Budget::default()
    };
    let memory = InMemory::new(&model, layout, budget)
        .memory(accelerator.usable_memory, shape.input + shape.output);
    Ok((step, memory.cache_tokens.point()))
}

/// Requests per second that one replica carries inside the objectives, and the requests it then
/// works on.
pub fn carried(
    step: &impl Step,
    limits: &Limits,
    shape: &Shape,
    objectives: &Objectives,
) -> Option<Operating> {
    let seconds = |limit: Option<Micros>| limit.map(|limit| limit.get() as f64 / 1e6);
    let first = seconds(objectives.first_token);
    let between = seconds(objectives.between_tokens);
    most_running(step, shape, limits, |at| {
        first.is_none_or(|limit| at.ttft_p95 <= limit)
            && between.is_none_or(|limit| at.tpot <= limit)
            && at.prompt_load <= FULLEST
            && at.slots <= FULLEST
    })
}

/// What is told that one replica can do.
pub fn capacity(
    step: &impl Step,
    limits: &Limits,
    shape: &Shape,
    objectives: &Objectives,
) -> Capacity {
    let Some(at) = carried(step, limits, shape, objectives) else { return Capacity::UNKNOWN };
    let rate = |tokens: f64| {
        let [low, point, high] = [1.0 - SPREAD, 1.0, 1.0 + SPREAD]
            .map(|share| TokensPerSecond::from_sample(tokens * share).unwrap_or_default());
        Interval::new(low, point, high, Origin::Modelled).ok()
    };
    let resident = Tokens::from_sample(limits.cache_tokens * FULLEST);
    Capacity {
        prefill: rate(at.rate * shape.input),
        decode: rate(at.rate * shape.output),
        resident: resident.and_then(|tokens| Interval::exact(tokens, Origin::Modelled).ok()),
    }
}
