//! Reading what is in each layer besides attention: feed-forward blocks and layers with a state.

use super::reader::{ConfigError, Reader};
use super::{Experts, FeedForward, Layers, LinearLayers};
use serde_json::Value;

/// How many blocks of each kind a model has that writes them down one by one, as Nemotron-H does:
/// `M` for Mamba, `*` for attention, `-` for a feed-forward block, `E` for experts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pattern {
    mamba: u32,
    attention: u32,
    dense: u32,
    experts: u32,
}

impl Pattern {
    /// A block that mixes tokens counts as a layer, with the block after it if there is one.
    pub(super) const fn layers(self) -> Layers {
        Layers { full: self.attention, sliding: 0, window: 0, linear: self.mamba }
    }
}

impl Reader<'_> {
    pub(super) fn pattern(&mut self) -> Option<Pattern> {
        if !self.family.mamba {
            return None;
        }
        let key = "hybrid_override_pattern";
        let Some(text) = self.text.get(key).and_then(Value::as_str) else {
            self.problems.push(ConfigError::MissingText(key.to_owned()));
            return None;
        };
        let count = |kind: char| text.chars().filter(|block| *block == kind).count() as u32;
        Some(Pattern {
            mamba: count('M'),
            attention: count('*'),
            dense: count('-'),
            experts: count('E'),
        })
    }

    pub(super) fn linear(&mut self) -> LinearLayers {
        if self.family.mamba {
            return LinearLayers {
                key_heads: self.needed(&["n_groups"]),
                value_heads: self.needed(&["mamba_num_heads"]),
                key_dim: self.needed(&["ssm_state_size"]),
                value_dim: self.needed(&["mamba_head_dim"]),
                convolution: self.needed(&["conv_kernel"]),
                gates: 1,
            };
        }
        LinearLayers {
            key_heads: self.needed(&["linear_num_key_heads"]),
            value_heads: self.needed(&["linear_num_value_heads"]),
            key_dim: self.needed(&["linear_key_head_dim"]),
            value_dim: self.needed(&["linear_value_head_dim"]),
            convolution: self.needed(&["linear_conv_kernel_dim"]),
            gates: 2,
        }
    }

    pub(super) fn feed_forward(&mut self, layers: u32, pattern: Option<Pattern>) -> FeedForward {
        let matrices = if self.family.gated { 3 } else { 2 };
        let routed = self.number(&["num_local_experts", "num_experts", "n_routed_experts"]);
        let Some(routed) = routed.filter(|routed| *routed > 0) else {
            let dense_width = self.needed(&["intermediate_size"]);
            let dense_layers = pattern.map_or(layers, |pattern| pattern.dense);
            return FeedForward { matrices, dense_layers, dense_width, experts: None };
        };
        let dense_layers =
            pattern.map_or_else(|| self.dense_layers(layers), |pattern| pattern.dense);
        let width = self.needed(&["moe_intermediate_size", "intermediate_size"]);
        let shared = ["shared_expert_intermediate_size", "moe_shared_expert_intermediate_size"];
        let shared_width = match self.number(&shared) {
            Some(width) => width,
            None if self.family.name == "llama4_text" => width,
            None => {
                self.number(&["n_shared_experts"]).map_or(0, |shared| shared.saturating_mul(width))
            }
        };
        let experts = Experts {
            layers: pattern.map_or(layers.saturating_sub(dense_layers), |pattern| pattern.experts),
            routed,
            active: self.needed(&["num_experts_per_tok", "experts_per_token", "top_k_experts"]),
            width,
            shared_width,
            bias: self.family.expert_bias,
            shared_gate: self.family.shared_gate && shared_width > 0,
        };
        let dense_width = match dense_layers {
            0 => 0,
            _ => self.needed(&["intermediate_size_mlp", "intermediate_size"]),
        };
        FeedForward { matrices, dense_layers, dense_width, experts: Some(experts) }
    }

    /// Layers of a model with experts that have none.
    fn dense_layers(&self, layers: u32) -> u32 {
        let first = self.number(&["first_k_dense_replace"]).unwrap_or(0);
        let named = self
            .text
            .get("mlp_only_layers")
            .and_then(Value::as_array)
            .map_or(0, |named| named.len() as u32);
        let step = self
            .number(&["decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_freq"])
            .unwrap_or(1)
            .max(1);
        let rest = layers.saturating_sub(first + named);
        first + named + (rest - rest / step)
    }
}
