//! How fast a model is on an accelerator, as `plan` and `backtest` predict it.

use flyball_perf::architecture::Architecture;
use flyball_perf::coefficients::Coefficients;
use flyball_perf::engine::Engine;
use flyball_perf::hardware::Accelerator;
use flyball_perf::layout::ServingLayout;
use flyball_perf::memory::serving::{Budget, ReplicaMemory as InMemory};
use flyball_perf::precision::Dtype;
use flyball_perf::serving::fold::ServingReplica;
use flyball_perf::serving::step::StepModel;
use flyball_simulator::cluster::{Speed, StepSpeed};
use flyball_simulator::engine::EngineSettings;
use std::sync::Arc;

/// Tokens in a block of the cache; vLLM's default.
const BLOCK: u32 = 16;

/// Tokens of a usual request. The cache's room in tokens hardly depends on it.
const CONTEXT: f64 = 4096.0;

/// What is served on what.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The model.
    pub model: &'a Architecture,
    /// Format of the cache.
    pub cache: Dtype,
    /// The accelerator.
    pub accelerator: &'a Accelerator,
    /// Accelerators that share each matrix.
    pub tensor: u32,
}

/// Limits of the engine.
#[derive(Clone, Copy, Debug)]
pub struct EmulatorLimits {
    /// Requests that run at once.
    pub max_running: u32,
    /// Tokens in one step.
    pub step_tokens: u32,
    /// Tokens that the cache holds; what is left of the memory if not set.
    pub cache_tokens: Option<u32>,
}

/// Why there is no such engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The model says no.
    #[error("{0}")]
    Step(String),
    /// Weights and runtime leave no room.
    #[error("no memory is left for the KV cache; hint: use more accelerators or larger ones")]
    Memory,
}

/// The speed of vLLM with these parts.
pub fn predicted(parts: &Parts<'_>, limits: &EmulatorLimits) -> Result<Speed, Unfit> {
    let Parts { model, cache, accelerator, tensor } = *parts;
    let layout = ServingLayout::tensor(tensor);
    let replica = ServingReplica { model, accelerator, layout, engine: Engine::Vllm, cache };
    let kernels = accelerator.kernels_or_assumed();
    let step = StepModel::new(&replica, &kernels, &Coefficients::serving())
        .map_err(|error| Unfit::Step(error.to_string()))?;
    let budget = Budget {
        batched_tokens: limits.step_tokens,
        sequences: limits.max_running,
        cache: Some(cache),
        ..Budget::default()
    };
    let room = || {
        let memory =
            InMemory::new(model, layout, budget).memory(accelerator.usable_memory, CONTEXT);
        memory.cache_tokens.point().get()
    };
    let tokens = limits.cache_tokens.map_or_else(room, u64::from);
    let blocks = u32::try_from(tokens / u64::from(BLOCK)).unwrap_or(u32::MAX);
    if blocks == 0 {
        return Err(Unfit::Memory);
    }
    let settings = EngineSettings::vllm(limits.max_running, limits.step_tokens, blocks);
    Ok(Speed { step: StepSpeed::Modelled(Arc::new(step)), settings })
}
