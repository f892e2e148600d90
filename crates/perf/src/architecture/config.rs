//! Reading `config.json`.

use super::encoder;
use super::families::{FAMILIES, Form, QueryKeyNorm, Window, family};
use super::reader::{ConfigError, Reader};
use super::{Architecture, Attention, Indexer, Layers, Norms, Stored};
use serde_json::{Map, Value};
use thiserror::Error;

/// Everything that kept a configuration from being understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct ArchitectureError {
    pub problems: Vec<ConfigError>,
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
        let model_type = name(text).or_else(|| name(&whole)).ok_or(one(ConfigError::NoFamily))?;
        let family = family(&model_type).ok_or(one(ConfigError::UnknownFamily(model_type)))?;
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

fn one(problem: ConfigError) -> ArchitectureError {
    ArchitectureError { problems: vec![problem] }
}

fn object(text: &str) -> Result<Map<String, Value>, ConfigError> {
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(ConfigError::NotAnObject),
        Err(error) => Err(ConfigError::NotJson(error.to_string())),
    }
}

impl Reader<'_> {
    fn architecture(&mut self, quantisation: Option<&Map<String, Value>>) -> Architecture {
        self.refuse_what_is_not_modelled();
        let pattern = self.pattern();
        let layers = pattern.map_or_else(|| self.layers(), |pattern| pattern.layers());
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
            feed_forward: self.feed_forward(layers.total(), pattern),
            norms: self.norms(attention),
            encoder: encoder::weights(self.whole, self.number(&["hidden_size"]).unwrap_or(0)),
            stored: Stored::read(self, self.text, quantisation, layers.total()),
        }
    }

    fn refuse_what_is_not_modelled(&mut self) {
        for (key, what) in [
            ("global_head_dim", "layers with heads of different sizes"),
            ("moe_latent_size", "experts that see a narrowed input"),
            ("hybrid_override_pattern", "Mamba layers"),
            ("ssm_state_size", "Mamba layers"),
        ] {
            if self.family.mamba && what == "Mamba layers" {
                continue;
            }
            let there = self.text.get(key).is_some_and(|value| !value.is_null());
            let known = ConfigError::NotModelled(what.to_owned());
            if there && !self.problems.contains(&known) {
                self.problems.push(known);
            }
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
                    self.problems.push(ConfigError::Contradiction {
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
}
