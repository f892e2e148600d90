//! Floating-point operations of training, and the two ways to call a share of them "utilisation".
//!
//! MFU counts what the model needs; HFU counts what the hardware did, recomputation included. Both
//! need a convention for attention: half of the square, because a causal kernel skips the rest, or
//! the whole of it, as Megatron's and MosaicML's tables have it. The convention is part of the name.

use crate::architecture::{Architecture, Attention};

/// Forward operations for one token, by what they run on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ForwardFlops {
    /// Matrices of the layers: two operations per weight.
    pub layers: f64,
    /// The output layer.
    pub head: f64,
    /// Scores and their use, over the whole square.
    pub attention_square: f64,
}

impl ForwardFlops {
    /// For one token of a sequence of this length.
    pub fn of(model: &Architecture, sequence: f64) -> Self {
        let parameters = model.parameters();
        let head = if parameters.head == 0 { parameters.embedding } else { parameters.head };
        // Reading the embedding is a look-up, not a multiplication.
        let layers = parameters.multiplied() - head;
        let (full, sliding) = (f64::from(model.layers.full), f64::from(model.layers.sliding));
        let seen = full * sequence + sliding * sequence.min(f64::from(model.layers.window) * 2.0);
        Self {
            layers: 2.0 * layers as f64,
            head: 2.0 * head as f64,
            attention_square: 2.0 * attention_width(&model.attention) * seen,
        }
    }

    /// Of the matrices and half of the square.
    pub fn causal(&self) -> f64 {
        self.layers + self.head + self.attention_square / 2.0
    }

    /// Of the matrices and the whole square.
    pub fn square(&self) -> f64 {
        self.layers + self.head + self.attention_square
    }
}

/// Multiply-adds per pair of tokens in one layer: scores over the key width, use over the value
/// width.
fn attention_width(attention: &Attention) -> f64 {
    match *attention {
        Attention::Grouped { heads, head_dim, .. } => 2.0 * f64::from(heads) * f64::from(head_dim),
        Attention::Latent { heads, nope_dim, rope_dim, value_dim, .. } => {
            f64::from(heads) * f64::from(nope_dim + rope_dim + value_dim)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn llama_needs_six_operations_per_weight_and_token() {
        let text = include_str!("../../../../catalog/models/llama-3.1-8b.json");
        let model = Architecture::from_config(text).unwrap();
        let forward = ForwardFlops::of(&model, 8192.0);
        let weights = (8_030_261_248.0 - 128_256.0 * 4096.0) * 2.0;
        assert!(((forward.layers + forward.head) / weights - 1.0).abs() < 1e-3);
        // 4 * layers * hidden * sequence over the whole square.
        assert_eq!(forward.attention_square, 4.0 * 32.0 * 4096.0 * 8192.0);
    }
}
