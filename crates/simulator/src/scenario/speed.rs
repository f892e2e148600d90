//! How fast a replica of a scenario is, and how much it can do.

use super::form::{LinearForm, ModelledForm};
use crate::cluster::{Linear, Speed, StepSpeed};
use crate::engine::Settings;
use flyball_core::interval::{Interval, Origin};
use flyball_core::snapshot::{Capacity, Objectives};
use flyball_core::units::{Micros, Tokens, TokensPerSecond};
use flyball_perf::architecture::Architecture;
use flyball_perf::catalog::Catalog;
use flyball_perf::coefficients::Coefficients;
use flyball_perf::engine::Engine;
use flyball_perf::layout::ServingLayout;
use flyball_perf::memory::serving::{Budget, Replica as InMemory};
use flyball_perf::models;
use flyball_perf::precision::Dtype;
use flyball_perf::serving::fold::Replica;
use flyball_perf::serving::steady::{Limits, Operating, Shape, most_running};
use flyball_perf::serving::step::StepModel;
use std::sync::Arc;

/// Tokens in a block of the cache; vLLM's default.
const BLOCK: u32 = 16;

/// A replica is not planned fuller than this, in prompts or in requests at once: near 1 the queue
/// explodes. The same bound that `plan` uses.
const FULLEST: f64 = 0.9;

/// What capacity is told to policies as: so much either way. The spread of `perf`'s intervals for
/// parts and models that were measured is about this.
const SPREAD: f64 = 0.1;

pub(super) fn linear(form: &LinearForm) -> Speed {
    let step = StepSpeed::Linear(Linear {
        base: form.step_ms / 1e3,
        per_prompt_token: form.prompt_token_us / 1e6,
        per_decode: form.request_us / 1e6,
        per_cached_token: form.cached_token_ns / 1e9,
    });
    let blocks = form.cache_tokens / BLOCK;
    Speed { step, settings: Settings::vllm(form.max_running, form.step_tokens, blocks) }
}

/// The speed of a model on an accelerator, with the engine vLLM.
pub(super) fn modelled(form: &ModelledForm, shape: &Shape) -> Result<Speed, String> {
    let config =
        models::config(&form.model).ok_or_else(|| format!("no model is called {}", form.model))?;
    let model = Architecture::from_config(config).map_err(|error| error.to_string())?;
    let catalog = Catalog::builtin();
    let accelerator = catalog.accelerator(&form.accelerator).map_err(|error| error.to_string())?;
    let kernels = accelerator
        .kernels
        .as_ref()
        .ok_or_else(|| format!("nobody has measured kernels on {}", form.accelerator))?;
    let layout = ServingLayout::tensor(form.tensor);
    let cache = model.stored.cache.unwrap_or(Dtype::Bf16);
    let replica = Replica { model: &model, accelerator, layout, engine: Engine::Vllm, cache };
    let step = StepModel::new(&replica, kernels, &Coefficients::serving())
        .map_err(|error| error.to_string())?;
    let budget = Budget {
        batched_tokens: form.step_tokens,
        sequences: form.max_running,
        ..Budget::default()
    };
    let memory = InMemory::new(&model, layout, budget)
        .memory(accelerator.usable_memory, shape.input + shape.output);
    let blocks = memory.cache_tokens.point().get() / u64::from(BLOCK);
    let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
    let settings = Settings::vllm(form.max_running, form.step_tokens, blocks);
    Ok(Speed { step: StepSpeed::Modelled(Arc::new(step)), settings })
}

/// Requests per second that one replica carries inside the objectives, and the requests it then
/// works on.
pub(super) fn carried(speed: &Speed, shape: &Shape, objectives: &Objectives) -> Option<Operating> {
    let settings = &speed.settings;
    let limits = Limits {
        chunk: f64::from(settings.token_budget),
        copies: 1.0,
        sequences: f64::from(settings.max_running),
        cache_tokens: f64::from(settings.blocks) * f64::from(settings.block_tokens),
        output_held: 1.0,
    };
    let seconds = |limit: Option<Micros>| limit.map(|limit| limit.get() as f64 / 1e6);
    let first = seconds(objectives.first_token);
    let between = seconds(objectives.between_tokens);
    most_running(&speed.step, shape, &limits, |at| {
        first.is_none_or(|limit| at.ttft_p95 <= limit)
            && between.is_none_or(|limit| at.tpot <= limit)
            && at.prompt_load <= FULLEST
            && at.slots <= FULLEST
    })
}

/// What policies are told that one replica can do.
pub(super) fn capacity(speed: &Speed, shape: &Shape, objectives: &Objectives) -> Capacity {
    let Some(at) = carried(speed, shape, objectives) else { return Capacity::UNKNOWN };
    let rate = |tokens: f64| {
        let [low, point, high] = [1.0 - SPREAD, 1.0, 1.0 + SPREAD]
            .map(|share| TokensPerSecond::from_sample(tokens * share).unwrap_or_default());
        Interval::new(low, point, high, Origin::Modelled).ok()
    };
    let settings = &speed.settings;
    let room = f64::from(settings.blocks) * f64::from(settings.block_tokens) * FULLEST;
    let resident = Tokens::from_sample(room);
    Capacity {
        prefill: rate(at.rate * shape.input),
        decode: rate(at.rate * shape.output),
        resident: resident.and_then(|tokens| Interval::exact(tokens, Origin::Modelled).ok()),
    }
}
