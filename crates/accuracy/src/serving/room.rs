//! How many requests a replica holds.
//!
//! The rule of thumb behind the published rows: engines take 92 % of the memory, weights and some
//! 3 GB of workspace come off, the rest is cache.

use flyball_perf::architecture::Architecture;
use flyball_perf::engine::Engine;
use flyball_perf::hardware::Accelerator;
use flyball_perf::layout::ServingLayout;
use flyball_perf::precision::Dtype;
use flyball_perf::serving::steady::{EngineLimits, RequestShape};

const TAKEN: f64 = 0.92;
const WORKSPACE: f64 = 3e9;
/// However tight it looks, the row was measured, so something was left.
const LEAST_FREE: f64 = 1e9;
/// What engines admit per copy of the attention, at most.
const SEQUENCES: f64 = 2048.0;
/// Prompt tokens per step.
const CHUNK: f64 = 8192.0;

/// What the memory and the engine allow.
pub(super) fn limits(
    model: &Architecture,
    part: &Accelerator,
    layout: ServingLayout,
    engine: Engine,
    cache: Dtype,
    shape: &RequestShape,
) -> EngineLimits {
    let [tensor, stages, copies] =
        [layout.tensor, layout.pipeline, layout.attention_copies].map(f64::from);
    let routed = model.parameters().routed_experts as f64 * model.stored.routed_experts.bytes();
    let weights = ((model.weight_bytes() - routed) / tensor + routed / (tensor * copies)) / stages;
    let free = (TAKEN * part.memory.get() as f64 - weights - WORKSPACE).max(LEAST_FREE);
    // TensorRT-LLM admits a request only when its whole answer has room; the others preempt.
    let output_held = if engine == Engine::TensorRtLlm { 1.0 } else { 0.5 };
    let tokens = shape.input + output_held * shape.output;
    let shards = f64::from(layout.tensor.min(model.attention.cache_shards())) * stages;
    let requests = (free * shards / model.cache_bytes(tokens, cache)).clamp(1.0, SEQUENCES);
    EngineLimits {
        chunk: CHUNK,
        // Each stage of a pipeline works on its own batch, with its own chunk of prompt.
        copies: copies * stages,
        sequences: SEQUENCES * copies,
        cache_tokens: requests * copies * tokens,
        output_held,
    }
}
