//! Endings of names that say how the weights are stored.

use serde_json::{Map, Value, json};

use crate::precision::Dtype;

/// How a checkpoint of that name is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Bf16,
    Fp8,
    /// The cache is meant to be FP8 too.
    Fp8AndCache,
    /// Weights only.
    Int8,
    /// Activations too.
    Int8Activations,
    Int4,
    Nvfp4,
    Mxfp4,
}

/// Of two endings of which one ends the other, the longer comes first.
const ENDINGS: [(&str, Format); 29] = [
    ("-bf16", Format::Bf16),
    ("-fp8-kv", Format::Fp8AndCache),
    ("-fp8-dynamic", Format::Fp8),
    ("-fp8-block", Format::Fp8),
    ("-fp8-static", Format::Fp8),
    ("-fp8-tensor", Format::Fp8),
    ("-fbgemm-fp8", Format::Fp8),
    ("-fp8", Format::Fp8),
    ("-quantized.w8a8", Format::Int8Activations),
    ("-w8a8", Format::Int8Activations),
    ("-quantized.w8a16", Format::Int8),
    ("-w8a16", Format::Int8),
    ("-gptq-int8", Format::Int8),
    ("-bnb-8bit", Format::Int8),
    ("-int8", Format::Int8),
    ("-quantized.w4a16", Format::Int4),
    ("-w4a16", Format::Int4),
    ("-awq-int4", Format::Int4),
    ("-awq", Format::Int4),
    ("-gptq-int4", Format::Int4),
    ("-gptq", Format::Int4),
    ("-unsloth-bnb-4bit", Format::Int4),
    ("-bnb-4bit", Format::Int4),
    ("-int4", Format::Int4),
    ("-nvfp4", Format::Nvfp4),
    // NVIDIA's earlier name of it.
    ("-fp4", Format::Nvfp4),
    ("-nvfp4-v2", Format::Nvfp4),
    ("-fp4-v2", Format::Nvfp4),
    ("-mxfp4", Format::Mxfp4),
];

/// The name without the ending that says how it is stored, and what that is.
pub(super) fn split(name: &str) -> Option<(&str, Format)> {
    ENDINGS
        .iter()
        .find_map(|(ending, format)| name.strip_suffix(ending).map(|bare| (bare, *format)))
}

impl Format {
    pub(super) const fn dtype(self) -> Dtype {
        match self {
            Self::Bf16 => Dtype::Bf16,
            Self::Fp8 | Self::Fp8AndCache => Dtype::Fp8,
            Self::Int8 | Self::Int8Activations => Dtype::Int8,
            Self::Int4 => Dtype::Int4,
            Self::Nvfp4 => Dtype::Nvfp4,
            Self::Mxfp4 => Dtype::Mxfp4,
        }
    }

    /// The same configuration, with the weights stored so instead of as it says.
    pub(super) fn applied(self, config: &str, by_nvidia: bool) -> String {
        let Ok(Value::Object(mut whole)) = serde_json::from_str(config) else {
            return config.to_owned();
        };
        whole.remove("quantization_config");
        let mut latent = whole.contains_key("kv_lora_rank");
        if let Some(text) = whole.get_mut("text_config").and_then(Value::as_object_mut) {
            text.remove("quantization_config");
            latent |= text.contains_key("kv_lora_rank");
        }
        if let Some(recipe) = self.recipe(latent, by_nvidia) {
            whole.insert("quantization_config".to_owned(), Value::Object(recipe));
        }
        Value::Object(whole).to_string()
    }

    fn recipe(self, latent: bool, by_nvidia: bool) -> Option<Map<String, Value>> {
        let recipe = match self {
            Self::Bf16 => return None,
            Self::Fp8 => json!({"quant_algo": "FP8"}),
            Self::Fp8AndCache => json!({"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}),
            Self::Int8 => json!({"quant_method": "gptq", "bits": 8}),
            Self::Int8Activations => json!({
                "quant_method": "compressed-tensors",
                "config_groups": {"all": {
                    "weights": {"type": "int", "num_bits": 8},
                    "input_activations": {"type": "int", "num_bits": 8},
                }},
            }),
            Self::Int4 => json!({"quant_method": "gptq", "bits": 4}),
            // The checkpoints of DeepSeek, Kimi and GLM in this format keep the attention wide.
            Self::Nvfp4 if latent => {
                json!({"quant_algo": "NVFP4", "exclude_modules": ["self_attn"]})
            }
            Self::Nvfp4 => json!({"quant_algo": "NVFP4"}),
            Self::Mxfp4 => json!({"quant_algo": "W4A16_MXFP4"}),
        };
        let Value::Object(mut recipe) = recipe else { return None };
        // Those that NVIDIA publishes ask for an FP8 cache.
        if by_nvidia && matches!(self, Self::Fp8 | Self::Nvfp4) {
            recipe.insert("kv_cache_quant_algo".to_owned(), json!("FP8"));
        }
        Some(recipe)
    }
}
