//! Weights and cache of a serving replica.
//!
//! An engine takes a share of the memory, loads the weights, runs its largest step once to see what
//! that needs, and gives the rest to the cache. The counts follow vLLM and its
//! `gpu_memory_utilization`. SGLang's `mem_fraction_static` leaves the step outside of the share, and
//! TensorRT-LLM's `free_gpu_memory_fraction` is of what weights and step have left; a share of 0.9
//! stands for the defaults of all three until they have been compared one by one.

use super::weights::RankWeights;
use super::{Fit, FitAnswer, GIB, bytes};
use crate::architecture::{Architecture, Attention};
use crate::layout::ServingLayout;
use crate::precision::Dtype;
use flyball_core::interval::{Interval, Origin};
use flyball_core::units::{Bytes, Tokens};

/// Memory outside of the framework's allocator, CUDA graphs and communication buffers, of one
/// accelerator alone and of one among several. From llm-d-benchmark's
/// `empirical-vllm-memory-results.md`, as are the next two.
const OUTSIDE_ALONE: f64 = 0.13 * GIB;
const OUTSIDE_TOGETHER: f64 = 0.55 * GIB;
/// The sampler's peak over one FP32 table of sequences by vocabulary: 9.38 to 9.54 for five models.
const SAMPLER_TABLES: f64 = 9.5;
/// A step's hidden state and residual, two bytes each.
const STEP_BYTES: f64 = 4.0;
/// What an engine cannot do without beside weights and one request.
const LEAST_RUNTIME: f64 = 0.3 * GIB;
/// More than this of the memory was never seen allocated.
const MOST_SHARE: f64 = 0.97;
/// What is not modelled, at most: fragmentation, and the workspaces of experts.
const UNKNOWN: f64 = 0.5 * GIB;
const UNKNOWN_WITH_EXPERTS: f64 = 1.5 * GIB;

/// Settings of an engine that decide what it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Share of the memory that the engine may use.
    pub utilisation: f64,
    /// Most tokens in one step.
    pub batched_tokens: u32,
    /// Most requests in one step.
    pub sequences: u32,
    /// Format of the cache; `None` for what the checkpoint asks for, and else 16 bit.
    pub cache: Option<Dtype>,
}

impl Default for Budget {
    /// Usual settings of vLLM on a data-centre part.
    fn default() -> Self {
        Self { utilisation: 0.9, batched_tokens: 8192, sequences: 256, cache: None }
    }
}

/// What the fullest accelerator of a replica holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServingMemory {
    pub weights: Bytes,
    /// The table of positions, which every accelerator has for the longest context.
    pub positions: Bytes,
    /// Outside of the framework's allocator.
    pub runtime: Bytes,
    /// The peak of the largest step: hidden states, and sampler or experts.
    pub activations: Bytes,
    /// What is left for the cache.
    pub cache: Bytes,
    /// Tokens that the caches of the whole replica hold, for requests of the given length.
    pub cache_tokens: Interval<Tokens>,
}

/// A replica of a model, spread like this, with these settings.
#[derive(Clone, Copy, Debug)]
pub struct ReplicaMemory<'a> {
    model: &'a Architecture,
    layout: ServingLayout,
    budget: Budget,
    weights: RankWeights,
}

impl<'a> ReplicaMemory<'a> {
    pub fn new(model: &'a Architecture, layout: ServingLayout, budget: Budget) -> Self {
        Self { model, layout, budget, weights: RankWeights::of(model, &layout) }
    }

    /// Bytes of weights on the fullest accelerator, by part.
    pub fn weights(&self) -> [(&'static str, Bytes); 6] {
        self.weights.named().map(|(name, weight)| (name, bytes(weight)))
    }

    /// What it holds on an accelerator with this much usable memory, and how many tokens its caches
    /// take if requests are `context` tokens long.
    pub fn memory(&self, usable: Bytes, context: f64) -> ServingMemory {
        let share = self.budget.utilisation * usable.get() as f64;
        let weights = self.weights.total();
        let positions = self.positions();
        let cache = share - weights - positions - self.runtime() - self.activations();
        let low = share - self.most(0.0);
        let high = share - weights - LEAST_RUNTIME;
        let tokens = |cache: f64| Tokens::new(self.tokens(cache, context) as u64);
        let point = tokens(cache);
        let (low, high) = (tokens(low).min(point), tokens(high).max(point));
        ServingMemory {
            weights: bytes(weights),
            positions: bytes(positions),
            runtime: bytes(self.runtime()),
            activations: bytes(self.activations()),
            cache: bytes(cache),
            cache_tokens: Interval::new(low, point, high, Origin::Modelled)
                .expect("the ends were just put in order"),
        }
    }

    /// Whether it starts and holds one request of `context` tokens.
    pub fn fits(&self, usable: Bytes, context: f64) -> FitAnswer {
        let usable = usable.get() as f64;
        let request = self.cache_bytes(context, self.cache_format());
        let wide_request = self.cache_bytes(context, Dtype::Bf16);
        let least = self.weights.total() + request + LEAST_RUNTIME;
        let most = self.most(wide_request);
        FitAnswer::new(least, MOST_SHARE * usable, most, self.budget.utilisation * usable)
    }

    /// The same at the share of the memory that the engine may use: what cannot hold one request there, however
    /// little else it needs, does not fit, though a larger share might.
    pub fn fits_at_its_share(&self, usable: Bytes, context: f64) -> FitAnswer {
        let answer = self.fits(usable, context);
        let held = self.memory(usable, context).cache_tokens.high().get() as f64;
        match answer.fit {
            Fit::Tight if held < context.floor() => FitAnswer { fit: Fit::DoesNotFit, ..answer },
            _ => answer,
        }
    }

    /// Bytes that one request of `context` tokens takes in the cache of one accelerator.
    pub fn request_bytes(&self, context: f64) -> f64 {
        self.cache_bytes(context, self.cache_format())
    }

    /// The most that weights, a cache of this size and everything else can need.
    fn most(&self, cache: f64) -> f64 {
        let has_experts = self.model.feed_forward.experts.is_some();
        let unknown = if has_experts { UNKNOWN_WITH_EXPERTS } else { UNKNOWN };
        1.02 * self.weights.most(has_experts)
            + cache
            + self.positions()
            + self.runtime()
            + 1.1 * self.sampler()
            + self.step()
            + unknown
    }

    fn cache_format(&self) -> Dtype {
        self.budget.cache.or(self.model.stored.cache).unwrap_or(Dtype::Bf16)
    }

    /// Tokens that fit into so many bytes on each accelerator, over all copies of the attention.
    fn tokens(&self, cache: f64, context: f64) -> f64 {
        let requests = cache.max(0.0) / self.cache_bytes(context, self.cache_format());
        requests * context * f64::from(self.layout.attention_copies)
    }

    fn cache_bytes(&self, context: f64, dtype: Dtype) -> f64 {
        let stages = f64::from(self.layout.pipeline);
        let split = f64::from(self.layout.tensor.min(self.model.attention.cache_shards()));
        let state = self.model.state_bytes() / f64::from(self.layout.tensor);
        let layers = &self.model.layers;
        // Chunks of Llama 4 are kept whole: vLLM's allocator for layers of different kinds is off
        // for them by default.
        let window = if self.model.family == "llama4_text" {
            context
        } else {
            context.min(f64::from(layers.window))
        };
        let seen = f64::from(layers.full) * context + f64::from(layers.sliding) * window;
        let cached = seen * self.model.attention.cached_values() as f64 * dtype.bytes();
        (cached / split + state) / stages
    }

    /// Sines and cosines in 16 bit for every position of the longest context.
    fn positions(&self) -> f64 {
        let width = match self.model.attention {
            Attention::Grouped { head_dim, .. } => head_dim,
            Attention::Latent { rope_dim, .. } => rope_dim,
        };
        f64::from(self.model.max_context) * f64::from(width) * Dtype::Bf16.bytes()
    }

    fn runtime(&self) -> f64 {
        if self.layout.gpus().get() > 1 { OUTSIDE_TOGETHER } else { OUTSIDE_ALONE }
    }

    fn activations(&self) -> f64 {
        self.step() + self.sampler().max(self.expert_workspace())
    }

    fn step(&self) -> f64 {
        STEP_BYTES * f64::from(self.budget.batched_tokens) * f64::from(self.model.hidden)
    }

    fn sampler(&self) -> f64 {
        let table = 4.0 * f64::from(self.budget.sequences) * f64::from(self.model.vocab);
        SAMPLER_TABLES * table
    }

    /// Inputs and outputs of both products of the experts, for every copy of a token.
    fn expert_workspace(&self) -> f64 {
        self.model.feed_forward.experts.map_or(0.0, |experts| {
            let width = f64::from(experts.width) / f64::from(self.layout.abreast());
            let copies = f64::from(self.budget.batched_tokens) * f64::from(experts.active);
            let widest = (2.0 * width).max(f64::from(self.model.hidden));
            copies * Dtype::Bf16.bytes() * (2.0 * widest + width)
        })
    }
}
