//! How the weights of a serving replica are split.

use crate::architecture::{Architecture, Attention};
use crate::layout::ServingLayout;
use crate::precision::Dtype;

/// Bytes of weights on the fullest accelerator of a replica, by part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RankWeights {
    /// Embedding and output layer, split along the vocabulary.
    pub(super) vocabulary: f64,
    pub(super) attention: f64,
    /// Feed-forward blocks without a choice, and shared experts.
    pub(super) dense: f64,
    pub(super) experts: f64,
    /// Router, norms and biases: on every accelerator.
    pub(super) small: f64,
    pub(super) encoder: f64,
    /// Values, not bytes, of attention and dense blocks: what some recipes leave in 16 bit.
    pub(super) outside_experts: f64,
}

impl RankWeights {
    pub(super) fn of(model: &Architecture, layout: &ServingLayout) -> Self {
        let parameters = model.parameters();
        let stored = &model.stored;
        let tensor = f64::from(layout.tensor);
        // A stage has its share of the layers, rounded up.
        let layers = model.layers.total();
        let stage = f64::from(layers.div_ceil(layout.pipeline)) / f64::from(layers.max(1));
        // The first stage has the embedding and the last one the output layer; alone, it has both.
        let tables = if layout.pipeline > 1 {
            parameters.embedding
        } else {
            parameters.embedding + parameters.head
        };
        let attention = attention_per_rank(model, tensor) * stage;
        let dense = parameters.dense as f64 / tensor * stage;
        let shared = parameters.shared_experts as f64 / tensor * stage;
        let experts = parameters.routed_experts as f64 / f64::from(layout.abreast()) * stage;
        Self {
            vocabulary: tables as f64 / tensor * stored.rest.bytes(),
            attention: attention * stored.attention.bytes(),
            dense: dense * stored.dense.bytes() + shared * stored.shared_experts.bytes(),
            experts: experts * padding(model, layout) * stored.routed_experts.bytes(),
            small: (parameters.router + parameters.small) as f64 * stage * stored.rest.bytes(),
            encoder: model.encoder.unwrap_or(0) as f64 / tensor * Dtype::Bf16.bytes(),
            outside_experts: attention + dense + shared,
        }
    }

    pub(super) const fn named(&self) -> [(&'static str, f64); 6] {
        [
            ("vocabulary", self.vocabulary),
            ("attention", self.attention),
            ("dense", self.dense),
            ("experts", self.experts),
            ("small", self.small),
            ("encoder", self.encoder),
        ]
    }

    pub(super) fn total(&self) -> f64 {
        self.named().iter().map(|(_, weight)| weight).sum()
    }

    /// The same if attention and dense blocks of a model with experts were left in 16 bit, which
    /// many recipes do without saying so.
    pub(super) fn most(&self, has_experts: bool) -> f64 {
        if !has_experts {
            return self.total();
        }
        let wide = self.outside_experts * Dtype::Bf16.bytes();
        self.total() + (wide - self.attention - self.dense).max(0.0)
    }
}

/// What kernels add to experts in MXFP4, as a factor: vLLM's Marlin, which Hopper takes, wants a multiple of 256
/// along the hidden size and of 128 along the width on each accelerator, and the weights are stored so.
fn padding(model: &Architecture, layout: &ServingLayout) -> f64 {
    let Some(experts) = model.feed_forward.experts else { return 1.0 };
    if model.stored.routed_experts != Dtype::Mxfp4 {
        return 1.0;
    }
    let split = if layout.whole_experts { 1 } else { layout.tensor };
    let width = f64::from(experts.width.div_ceil(split));
    let up = |size: f64, block: f64| (size / block).ceil() * block / size;
    up(f64::from(model.hidden), 256.0) * up(width, 128.0)
}

/// Values of attention on one accelerator, over all layers. Heads are split; what belongs to fewer
/// heads than there are accelerators, or to none, is copied.
fn attention_per_rank(model: &Architecture, tensor: f64) -> f64 {
    let hidden = f64::from(model.hidden);
    let caching = f64::from(model.layers.full + model.layers.sliding);
    let all = model.attention.weights(u64::from(model.hidden)) as f64;
    let copied = match model.attention {
        Attention::Grouped { kv_heads, head_dim, .. } => {
            let kv_heads = f64::from(kv_heads);
            let extra_heads = (kv_heads / tensor).max(1.0) - kv_heads / tensor;
            2.0 * hidden * extra_heads * f64::from(head_dim)
        }
        Attention::Latent { query_rank, kv_rank, rope_dim, indexer, .. } => {
            let rank = query_rank.map_or(0.0, f64::from);
            let index = indexer.map_or(0.0, |indexer| {
                let [heads, dim] = [indexer.heads, indexer.head_dim].map(f64::from);
                let from = query_rank.map_or(hidden, f64::from);
                from * heads * dim + hidden * dim + hidden * heads
            });
            let down = hidden * (rank + f64::from(kv_rank + rope_dim)) + index;
            down * (1.0 - 1.0 / tensor)
        }
    };
    let linear = model.parameters().attention as f64 - caching * all;
    caching * (all / tensor + copied) + linear / tensor
}
