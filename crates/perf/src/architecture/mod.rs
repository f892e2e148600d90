//! What a model is made of, as far as memory and speed depend on it.
//!
//! [`Architecture::from_config`] reads a checkpoint's `config.json`. A family that is not in
//! `families`, or a key that is not there, is refused by name: a guessed shape would make every
//! number after it wrong and none of them look it.

mod blocks;
mod config;
mod encoder;
mod families;
mod parameters;
#[cfg(test)]
mod published;
mod reader;
mod stored;
#[cfg(test)]
mod tests;

pub use config::ArchitectureError;
pub use parameters::Parameters;
pub use reader::ConfigError;
pub use stored::Stored;

use crate::precision::Dtype;

/// A decoder-only transformer.
#[derive(Clone, Debug, PartialEq)]
pub struct Architecture {
    /// `model_type` of the text part.
    pub family: String,
    pub hidden: u32,
    pub vocab: u32,
    /// Longest sequence it was made for.
    pub max_context: u32,
    /// Whether the output layer is the embedding, read twice.
    pub tied: bool,
    pub layers: Layers,
    pub attention: Attention,
    /// Layers that keep a fixed state instead of a cache, if there are any.
    pub linear: Option<LinearLayers>,
    pub feed_forward: FeedForward,
    pub norms: Norms,
    /// Weights of the image or audio encoder in front of it, if there is one. They take memory and
    /// are in no other count here.
    pub encoder: Option<u64>,
    pub stored: Stored,
}

/// How many layers attend in which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layers {
    /// See everything before them.
    pub full: u32,
    /// See only the last `window` tokens.
    pub sliding: u32,
    pub window: u32,
    /// Keep a state of fixed size.
    pub linear: u32,
}

impl Layers {
    pub const fn total(&self) -> u32 {
        self.full + self.sliding + self.linear
    }
}

/// Attention with a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attention {
    /// Heads in groups that share keys and values.
    Grouped {
        heads: u32,
        kv_heads: u32,
        head_dim: u32,
        /// Biases on queries, keys and values.
        qkv_bias: bool,
        output_bias: bool,
        /// The output is gated, so the query projection has twice the width.
        output_gate: bool,
    },
    /// Keys and values come from one small latent vector, which is what is cached.
    Latent {
        heads: u32,
        /// `None` if queries are projected directly.
        query_rank: Option<u32>,
        kv_rank: u32,
        nope_dim: u32,
        rope_dim: u32,
        value_dim: u32,
        /// Chooses the tokens to attend to, in sparse variants.
        indexer: Option<Indexer>,
    },
}

impl Attention {
    pub const fn heads(&self) -> u32 {
        match self {
            Self::Grouped { heads, .. } | Self::Latent { heads, .. } => *heads,
        }
    }

    /// Into how many parts the cache can be split before it is copied instead.
    pub const fn cache_shards(&self) -> u32 {
        match self {
            Self::Grouped { kv_heads, .. } => *kv_heads,
            Self::Latent { .. } => 1,
        }
    }

    /// Cached values for one token in one layer.
    pub const fn cached_values(&self) -> u64 {
        match self {
            Self::Grouped { kv_heads, head_dim, .. } => 2 * *kv_heads as u64 * *head_dim as u64,
            Self::Latent { kv_rank, rope_dim, indexer, .. } => {
                let index = match indexer {
                    // Kept in FP8 with a scale, which is half of the cache's usual width.
                    Some(indexer) => indexer.head_dim as u64 / 2,
                    None => 0,
                };
                *kv_rank as u64 + *rope_dim as u64 + index
            }
        }
    }
}

/// The small attention that picks tokens for the large one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indexer {
    pub heads: u32,
    pub head_dim: u32,
    /// Tokens that the large attention reads.
    pub top_k: u32,
}

/// Attention with a state instead of a cache: the gated delta rule, or Mamba, whose groups are the
/// heads of keys and whose state is as wide as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearLayers {
    pub key_heads: u32,
    pub value_heads: u32,
    pub key_dim: u32,
    pub value_dim: u32,
    pub convolution: u32,
    /// Numbers that each head of values takes from the input to steer its state.
    pub gates: u32,
}

/// The other half of each layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedForward {
    /// Matrices per block: 3 when gated, 2 when plain.
    pub matrices: u32,
    pub dense_layers: u32,
    pub dense_width: u32,
    pub experts: Option<Experts>,
}

/// A choice of feed-forward blocks per token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experts {
    pub layers: u32,
    pub routed: u32,
    /// Routed experts that a token visits.
    pub active: u32,
    pub width: u32,
    /// Total width of the experts that every token visits; 0 without any.
    pub shared_width: u32,
    /// Experts and router have biases.
    pub bias: bool,
    /// The shared expert's output is gated by one more vector.
    pub shared_gate: bool,
}

/// Vectors that scale activations. Small, and counted so that totals match the published ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Norms {
    pub per_layer: u32,
    /// Values of the query and key norms in one layer.
    pub query_key: u32,
    /// Norms have a bias too.
    pub bias: bool,
}

impl Architecture {
    /// Bytes of cache that one more token takes in one copy of the model, past every window.
    pub fn cache_bytes_per_token(&self, dtype: Dtype) -> f64 {
        f64::from(self.layers.full) * self.attention.cached_values() as f64 * dtype.bytes()
    }

    /// Bytes of cache that a sequence of so many tokens takes in one copy of the model.
    pub fn cache_bytes(&self, tokens: f64, dtype: Dtype) -> f64 {
        let per_layer = self.attention.cached_values() as f64 * dtype.bytes();
        let seen = f64::from(self.layers.full) * tokens
            + f64::from(self.layers.sliding) * tokens.min(f64::from(self.layers.window));
        seen * per_layer + self.state_bytes()
    }

    /// Bytes that a sequence of any length takes in the layers that keep a state.
    pub fn state_bytes(&self) -> f64 {
        self.linear.map_or(0.0, |linear| {
            let state = f64::from(linear.value_heads * linear.key_dim * linear.value_dim);
            let recent = f64::from(linear.channels() * linear.convolution.saturating_sub(1));
            // The state is kept in FP32 because it adds up over the whole sequence.
            f64::from(self.layers.linear) * (state * 4.0 + recent * 2.0)
        })
    }

    /// Bytes of all weights as stored.
    pub fn weight_bytes(&self) -> f64 {
        self.parameters().bytes(&self.stored)
    }
}

impl LinearLayers {
    /// Channels that pass through the convolution.
    pub const fn channels(&self) -> u32 {
        2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim
    }
}
