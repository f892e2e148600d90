//! The shape of a row's model: from its columns, or from the catalogue.

use super::row::{Row, whole};
use anyhow::{Context, Result};
use flyball_perf::architecture::{Architecture, Attention, FeedForward, Layers, Norms, Stored};
use flyball_perf::models;
use flyball_perf::precision::Dtype;

/// Head width where a row states no heads (R7).
const HEAD_DIM: f64 = 96.0;
/// Shapes of models whose rows state none (R7; recalled from NVIDIA's model cards).
const NEMOTRON: [(&str, Plain); 2] = [
    (
        "Nemotron-8B",
        Plain {
            layers: 32,
            hidden: 4096,
            heads: 32,
            kv_heads: 32,
            ffn: 16_384,
            vocab: 256_000,
            gated: false,
            tied: false,
        },
    ),
    (
        "Nemotron-22B",
        Plain {
            layers: 40,
            hidden: 6144,
            heads: 48,
            kv_heads: 48,
            ffn: 24_576,
            vocab: 256_000,
            gated: false,
            tied: false,
        },
    ),
];

/// A transformer with the same dense layer throughout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain {
    pub(crate) layers: u32,
    pub(crate) hidden: u32,
    pub(crate) heads: u32,
    pub(crate) kv_heads: u32,
    pub(crate) ffn: u32,
    pub(crate) vocab: u32,
    pub(crate) gated: bool,
    pub(crate) tied: bool,
}

impl Plain {
    pub(crate) fn architecture(&self) -> Architecture {
        Architecture {
            family: if self.gated { "llama" } else { "gpt" }.to_owned(),
            hidden: self.hidden,
            vocab: self.vocab,
            max_context: 0,
            tied: self.tied,
            layers: Layers { full: self.layers, sliding: 0, window: 0, linear: 0 },
            attention: Attention::Grouped {
                heads: self.heads,
                kv_heads: self.kv_heads,
                head_dim: self.hidden / self.heads,
                qkv_bias: false,
                output_bias: false,
                output_gate: false,
            },
            linear: None,
            feed_forward: FeedForward {
                matrices: if self.gated { 3 } else { 2 },
                dense_layers: self.layers,
                dense_width: self.ffn,
                experts: None,
            },
            norms: Norms { per_layer: 2, query_key: 0, bias: false },
            encoder: None,
            stored: Stored::uniform(Dtype::Bf16),
        }
    }
}

/// The shape, and whether a rule had to stand in for part of it.
pub(super) fn architecture(row: &Row) -> Result<(Architecture, bool)> {
    if row.moe_active_b.is_some() {
        let config = models::config(&row.model).context("not in catalog/models")?;
        return Ok((Architecture::from_config(&config)?, true));
    }
    if let Some((_, shape)) = NEMOTRON.iter().find(|(name, _)| *name == row.model) {
        return Ok((shape.architecture(), true));
    }
    let hidden = row.hidden.context("no hidden size")?;
    let heads = row.heads.unwrap_or(hidden / HEAD_DIM);
    let gated = row.model.to_ascii_lowercase().contains("llama");
    let shape = Plain {
        layers: whole(row.layers.context("no layers")?)?,
        hidden: whole(hidden)?,
        heads: whole(heads)?,
        kv_heads: whole(row.kv_heads.unwrap_or(heads))?,
        ffn: whole(row.ffn.context("no width")?)?,
        vocab: whole(row.vocab.context("no vocabulary")?)?,
        gated,
        // GPT and MPT read the embedding twice; the counts of one suite say that it does not.
        tied: !gated && !row.model.starts_with("Nemotron") && row.suite != "megatron-core-h100",
    };
    Ok((shape.architecture(), row.heads.is_none()))
}
