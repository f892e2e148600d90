//! How fast a replica of a scenario is, and how much it can do.

use super::form::{LinearForm, ModelledForm};
use crate::cluster::{LinearEngine, Speed, StepSpeed};
use crate::engine::EngineSettings;
use flyball_core::snapshot::{Capacity, Objectives};
use flyball_estimator::reading::{Paces, PredictedReplica};
use flyball_perf::serving::capacity::{self, CapacityQuestion};
use flyball_perf::serving::steady::RequestShape;
use std::sync::Arc;

/// Tokens in a block of the cache; vLLM's default.
const BLOCK: u32 = 16;

pub(super) fn linear(form: &LinearForm) -> Speed {
    let step = StepSpeed::Linear(LinearEngine {
        base: form.step_ms / 1e3,
        per_prompt_token: form.prompt_token_us / 1e6,
        per_decode: form.request_us / 1e6,
        per_cached_token: form.cached_token_ns / 1e9,
    });
    let blocks = form.cache_tokens / BLOCK;
    Speed { step, settings: EngineSettings::vllm(form.max_running, form.step_tokens, blocks) }
}

/// The speed of a model on an accelerator, with the engine vLLM.
pub(super) fn modelled(form: &ModelledForm, shape: &RequestShape) -> Result<Speed, String> {
    let question = CapacityQuestion {
        model: &form.model,
        accelerator: &form.accelerator,
        tensor: form.tensor,
        step_tokens: form.step_tokens,
        most_running: form.max_running,
    };
    let (step, cache) = capacity::predicted(&question, shape)?;
    let blocks = u32::try_from(cache.get() / u64::from(BLOCK)).unwrap_or(u32::MAX);
    let settings = EngineSettings::vllm(form.max_running, form.step_tokens, blocks);
    Ok(Speed { step: StepSpeed::Modelled(Arc::new(step)), settings })
}

/// What it is made of, for whoever predicts it from the requests that come.
pub(super) fn parts(form: &ModelledForm) -> PredictedReplica {
    PredictedReplica {
        model: form.model.clone(),
        accelerator: form.accelerator.clone(),
        tensor: form.tensor,
        step_tokens: Some(form.step_tokens),
    }
}

/// What policies are told that one replica can do. Where it is predicted, the operator predicts it from
/// the means of requests, which is all that gateways tell.
pub(super) fn capacity(speed: &Speed, shape: &RequestShape, objectives: &Objectives) -> Capacity {
    let shape = as_counted(speed, shape);
    capacity::capacity(&speed.step, &speed.limits(), &shape, objectives)
}

/// How long its tokens take, as policies are told.
pub(super) fn paces(speed: &Speed, shape: &RequestShape, objectives: &Objectives) -> Option<Paces> {
    let shape = as_counted(speed, shape);
    let at = capacity::carried(&speed.step, &speed.limits(), &shape, objectives)?;
    let timely = capacity::in_time(&speed.step, &speed.limits(), &shape, objectives)?;
    let full = at.tpot.max(timely.tpot);
    Some(Paces { idle: speed.idle_pace(&shape), full, carried: at.tpot })
}

fn as_counted(speed: &Speed, shape: &RequestShape) -> RequestShape {
    match speed.step {
        StepSpeed::Modelled(_) => RequestShape::usual(shape.input, shape.output),
        StepSpeed::Linear(_) => *shape,
    }
}
