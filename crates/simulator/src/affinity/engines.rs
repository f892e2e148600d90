//! The engines that are chosen from.

use crate::cluster::StepSpeed;
use crate::engine::{EngineSettings, Pace, SimulatedEngine, compare};
use flyball_perf::architecture::Architecture;
use flyball_perf::catalog::Catalog;
use flyball_perf::layout::ServingLayout;
use flyball_perf::memory::serving::{Budget, ReplicaMemory};
use flyball_perf::models;
use std::sync::Arc;

/// A kind of engine.
#[derive(Clone, Debug)]
pub struct AffinityEngine {
    step: StepSpeed,
    settings: EngineSettings,
}

/// Requests and tokens in one step: vLLM's defaults on a data-centre part.
const SEQUENCES: u32 = 256;
const STEP_TOKENS: u32 = 8_192;

/// Tokens in a block of the cache; vLLM's default.
const BLOCK: u32 = 16;

/// Tokens of a usual request, for the room that its cache takes. Dense attention, so any will do.
const CONTEXT: f64 = 12_000.0;

impl AffinityEngine {
    /// vLLM with this model on so many of these accelerators, with the cache that `plan` says.
    /// None if the catalogue lacks the model or the accelerator.
    pub fn vllm(model: &str, accelerator: &str, tensor: u32) -> Option<Self> {
        let layout = ServingLayout::tensor(tensor);
        let step = StepSpeed::Modelled(Arc::new(compare::step_model(model, accelerator, layout)?));
        let model = Architecture::from_config(&models::config(model)?).ok()?;
        let catalog = Catalog::builtin();
        let usable = catalog.accelerator(accelerator).ok()?.usable_memory;
        let budget =
            Budget { batched_tokens: STEP_TOKENS, sequences: SEQUENCES, ..Budget::default() };
        let memory = ReplicaMemory::new(&model, layout, budget).memory(usable, CONTEXT);
        let blocks = u32::try_from(memory.cache_tokens.point().get() / u64::from(BLOCK)).ok()?;
        Some(Self { step, settings: EngineSettings::vllm(SEQUENCES, STEP_TOKENS, blocks) })
    }

    /// Tokens that its cache holds.
    pub fn cache_tokens(&self) -> u64 {
        u64::from(self.settings.blocks) * u64::from(self.settings.block_tokens)
    }

    /// The same with another cache.
    #[must_use]
    pub fn with_cache_tokens(mut self, tokens: u64) -> Self {
        let blocks = tokens / u64::from(self.settings.block_tokens);
        self.settings.blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
        self
    }

    pub(super) fn engine(&self) -> SimulatedEngine<StepSpeed> {
        SimulatedEngine::new(self.settings, self.step.clone(), Pace::Skipping)
    }
}
