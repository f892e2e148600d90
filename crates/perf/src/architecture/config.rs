//! Reading `config.json`.

use super::encoder;
use super::families::{FAMILIES, Family, Form, QueryKeyNorm, Window, family};
use super::{
    Architecture, Attention, Experts, FeedForward, Indexer, Layers, Linear, Norms, Stored,
};
use serde_json::{Map, Value};
use thiserror::Error;

/// Everything that kept a configuration from being understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct ArchitectureError {
    pub problems: Vec<Problem>,
}

/// One fact that is missing or not understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    #[error("it is not JSON: {0}")]
    NotJson(String),
    #[error("it is not a JSON object")]
    NotAnObject,
    #[error("it has no `model_type`")]
    NoFamily,
    #[error("`{0}` is not a family of models that this version knows")]
    UnknownFamily(String),
    #[error("`{0}` is missing or not a whole number")]
    Missing(String),
    #[error("`{key}` is {value}, which does not go with `{with}`")]
    Contradiction { key: String, value: u64, with: String },
    #[error("{0} are not modelled yet")]
    NotModelled(String),
    #[error("weights stored as `{0}` are not understood")]
    UnknownFormat(String),
}

impl Architecture {
    /// Reads the text of a `config.json`.
    pub fn from_config(text: &str) -> Result<Self, ArchitectureError> {
        Self::from_files(text, None)
    }

    /// Reads a `config.json` and, if the checkpoint has one, its `hf_quant_config.json`.
    pub fn from_files(config: &str, quantisation: Option<&str>) -> Result<Self, ArchitectureError> {
        let whole = object(config).map_err(one)?;
        // Models with an encoder nest the part that matters here.
        let nested = whole.get("text_config").and_then(Value::as_object);
        let name = |map: &Map<String, Value>| {
            map.get("model_type").and_then(Value::as_str).map(str::to_owned)
        };
        let text = nested.unwrap_or(&whole);
        let model_type = name(text).or_else(|| name(&whole)).ok_or(one(Problem::NoFamily))?;
        let family = family(&model_type).ok_or(one(Problem::UnknownFamily(model_type)))?;
        let mut read = Reader { family, text, whole: &whole, problems: Vec::new() };
        let quantisation = quantisation.map(object).transpose().map_err(one)?;
        let architecture = read.architecture(quantisation.as_ref());
        if read.problems.is_empty() {
            Ok(architecture)
        } else {
            Err(ArchitectureError { problems: read.problems })
        }
    }

    /// The families that can be read.
    pub fn families() -> impl Iterator<Item = &'static str> {
        FAMILIES.iter().map(|family| family.name)
    }
}

fn one(problem: Problem) -> ArchitectureError {
    ArchitectureError { problems: vec![problem] }
}

fn object(text: &str) -> Result<Map<String, Value>, Problem> {
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(Problem::NotAnObject),
        Err(error) => Err(Problem::NotJson(error.to_string())),
    }
}

/// Reads keys and remembers what was wrong, so that all of it is reported at once.
pub(super) struct Reader<'a> {
    family: &'static Family,
    text: &'a Map<String, Value>,
    pub(super) whole: &'a Map<String, Value>,
    pub(super) problems: Vec<Problem>,
}

impl Reader<'_> {
    fn architecture(&mut self, quantisation: Option<&Map<String, Value>>) -> Architecture {
        for (key, what) in [
            ("global_head_dim", "layers with heads of different sizes"),
            ("hybrid_override_pattern", "Mamba layers"),
            ("ssm_state_size", "Mamba layers"),
        ] {
            let there = self.text.get(key).is_some_and(|value| !value.is_null());
            let known = Problem::NotModelled(what.to_owned());
            if there && !self.problems.contains(&known) {
                self.problems.push(known);
            }
        }
        let layers = self.layers();
        let attention = self.attention();
        Architecture {
            family: self.family.name.to_owned(),
            hidden: self.needed(&["hidden_size"]),
            vocab: self.needed(&["vocab_size"]),
            max_context: self.number(&["max_position_embeddings"]).unwrap_or(0),
            tied: self.tied(),
            layers,
            attention,
            linear: (layers.linear > 0).then(|| self.linear()),
            feed_forward: self.feed_forward(layers.total()),
            norms: self.norms(attention),
            encoder: encoder::weights(self.whole, self.number(&["hidden_size"]).unwrap_or(0)),
            stored: Stored::read(self, self.text, quantisation, layers.total()),
        }
    }

    fn tied(&self) -> bool {
        let stated =
            |map: &Map<String, Value>| map.get("tie_word_embeddings").and_then(Value::as_bool);
        stated(self.text).or_else(|| stated(self.whole)).unwrap_or(self.family.tied)
    }

    fn layers(&mut self) -> Layers {
        let total = self.needed(&["num_hidden_layers"]);
        let window = self.number(&["sliding_window"]);
        let (linear, stated_sliding) = match self.text.get("layer_types").and_then(Value::as_array)
        {
            Some(kinds) => {
                let count = |kind: &str| {
                    kinds.iter().filter(|value| value.as_str() == Some(kind)).count() as u32
                };
                if kinds.len() as u32 != total {
                    self.problems.push(Problem::Contradiction {
                        key: "num_hidden_layers".to_owned(),
                        value: total.into(),
                        with: format!("layer_types of {} layers", kinds.len()),
                    });
                }
                let local = count("sliding_attention") + count("chunked_attention");
                (count("linear_attention"), Some(local))
            }
            None => match self.number(&["full_attention_interval"]) {
                Some(interval) if interval > 0 => (total - total / interval, None),
                _ => (0, None),
            },
        };
        let (sliding, window) = match (self.family.window, window) {
            (Window::All, Some(window)) => (stated_sliding.unwrap_or(total), window),
            (Window::Alternate, Some(window)) => {
                (stated_sliding.unwrap_or(total.div_ceil(2)), window)
            }
            (Window::Pattern, Some(window)) => {
                let every = self.number(&["sliding_window_pattern"]).unwrap_or(6).max(1);
                (stated_sliding.unwrap_or(total - total / every), window)
            }
            (Window::Chunks, _) => match self.number(&["attention_chunk_size"]) {
                // Every fourth layer has no position encoding and sees everything.
                Some(chunk) => (stated_sliding.unwrap_or(total - total / 4), chunk),
                None => (0, 0),
            },
            _ => (0, 0),
        };
        let full = total.saturating_sub(sliding + linear);
        Layers { full, sliding, window: if sliding > 0 { window } else { 0 }, linear }
    }

    fn attention(&mut self) -> Attention {
        let heads = self.needed(&["num_attention_heads"]);
        if self.family.attention == Form::Latent {
            let indexer = self.number(&["index_n_heads"]).map(|heads| Indexer {
                heads,
                head_dim: self.needed(&["index_head_dim"]),
                top_k: self.needed(&["index_topk"]),
            });
            return Attention::Latent {
                heads,
                query_rank: self.number(&["q_lora_rank"]),
                kv_rank: self.needed(&["kv_lora_rank"]),
                nope_dim: self.needed(&["qk_nope_head_dim"]),
                rope_dim: self.needed(&["qk_rope_head_dim"]),
                value_dim: self.needed(&["v_head_dim"]),
                indexer,
            };
        }
        // Not `hidden / heads` where it is stated: Qwen3, Gemma and gpt-oss differ from it.
        let head_dim = self.number(&["head_dim"]).unwrap_or_else(|| {
            let hidden = self.number(&["hidden_size"]).unwrap_or(0);
            hidden / heads.max(1)
        });
        let stated_bias = self.text.get("attention_bias").and_then(Value::as_bool);
        Attention::Grouped {
            heads,
            kv_heads: self.number(&["num_key_value_heads"]).unwrap_or(heads),
            head_dim,
            qkv_bias: stated_bias.unwrap_or(self.family.qkv_bias),
            output_bias: self.family.output_bias,
            output_gate: self.text.get("attn_output_gate").and_then(Value::as_bool) == Some(true)
                || self.family.name == "qwen3_next",
        }
    }

    fn linear(&mut self) -> Linear {
        Linear {
            key_heads: self.needed(&["linear_num_key_heads"]),
            value_heads: self.needed(&["linear_num_value_heads"]),
            key_dim: self.needed(&["linear_key_head_dim"]),
            value_dim: self.needed(&["linear_value_head_dim"]),
            convolution: self.needed(&["linear_conv_kernel_dim"]),
        }
    }

    fn feed_forward(&mut self, layers: u32) -> FeedForward {
        let matrices = if self.family.gated { 3 } else { 2 };
        let routed = self.number(&["num_local_experts", "num_experts", "n_routed_experts"]);
        let Some(routed) = routed.filter(|routed| *routed > 0) else {
            let dense_width = self.needed(&["intermediate_size"]);
            return FeedForward { matrices, dense_layers: layers, dense_width, experts: None };
        };
        let dense_layers = self.dense_layers(layers);
        let width = self.needed(&["moe_intermediate_size", "intermediate_size"]);
        let shared_width = match self.number(&["shared_expert_intermediate_size"]) {
            Some(width) => width,
            None if self.family.name == "llama4_text" => width,
            None => {
                self.number(&["n_shared_experts"]).map_or(0, |shared| shared.saturating_mul(width))
            }
        };
        let experts = Experts {
            layers: layers.saturating_sub(dense_layers),
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

    fn norms(&self, attention: Attention) -> Norms {
        let query_key = match (self.family.query_key_norm, attention) {
            (QueryKeyNorm::PerHead, Attention::Grouped { head_dim, .. }) => 2 * head_dim,
            (QueryKeyNorm::PerLayer, Attention::Grouped { heads, kv_heads, head_dim, .. }) => {
                (heads + kv_heads) * head_dim
            }
            _ => 0,
        };
        Norms { per_layer: self.family.norms_per_layer, query_key, bias: self.family.norm_bias }
    }

    /// The first of these keys that holds a number.
    fn number(&self, keys: &[&str]) -> Option<u32> {
        keys.iter()
            .find_map(|key| self.text.get(*key).and_then(Value::as_u64))
            .and_then(|number| u32::try_from(number).ok())
    }

    /// The same for a key that the family needs; its absence is remembered.
    fn needed(&mut self, keys: &[&str]) -> u32 {
        self.number(keys).unwrap_or_else(|| {
            let missing = Problem::Missing(keys.join("` or `"));
            if !self.problems.contains(&missing) {
                self.problems.push(missing);
            }
            0
        })
    }
}
