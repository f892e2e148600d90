//! In which number formats a checkpoint keeps the parts of a model.

use super::reader::{ConfigError, Reader};
use crate::precision::{Dtype, Math};
use serde_json::{Map, Value};

/// Number formats by part, and what the tensor cores multiply in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Embedding, output layer, router, norms: left wide by every recipe we know.
    pub rest: Dtype,
    pub attention: Dtype,
    pub dense: Dtype,
    pub shared_experts: Dtype,
    pub routed_experts: Dtype,
    /// Format of the cache, where the checkpoint asks for one.
    pub cache: Option<Dtype>,
    /// Whether activations are narrowed too. Without that, small weights only save reading.
    pub narrow_activations: bool,
}

impl Stored {
    /// All parts in one format.
    pub const fn uniform(dtype: Dtype) -> Self {
        Self {
            rest: dtype,
            attention: dtype,
            dense: dtype,
            shared_experts: dtype,
            routed_experts: dtype,
            cache: None,
            narrow_activations: false,
        }
    }

    /// All matrices of the layers in one format, the rest in BF16.
    pub const fn quantised(dtype: Dtype, narrow_activations: bool) -> Self {
        Self { rest: Dtype::Bf16, narrow_activations, ..Self::uniform(dtype) }
    }

    /// Routed experts in one format, the rest in BF16.
    pub const fn experts_only(dtype: Dtype, narrow_activations: bool) -> Self {
        Self { routed_experts: dtype, narrow_activations, ..Self::uniform(Dtype::Bf16) }
    }

    /// What the tensor cores multiply in for weights of this format.
    pub const fn math(&self, weights: Dtype) -> Math {
        if !self.narrow_activations {
            return Math::Half;
        }
        match weights {
            Dtype::Fp32 | Dtype::Bf16 | Dtype::Fp16 => Math::Half,
            Dtype::Fp8 | Dtype::Int8 => Math::Fp8,
            Dtype::Mxfp4 | Dtype::Nvfp4 | Dtype::Int4 => Math::Fp4,
        }
    }

    /// The narrowest format among the matrices of the layers.
    pub fn narrowest(&self) -> Dtype {
        [self.attention, self.dense, self.shared_experts, self.routed_experts]
            .into_iter()
            .min_by(|a, b| a.bytes().total_cmp(&b.bytes()))
            .unwrap_or(self.rest)
    }

    pub(super) fn read(
        reader: &mut Reader<'_>,
        text: &Map<String, Value>,
        separate: Option<&Map<String, Value>>,
        layers: u32,
    ) -> Self {
        let wide = ["torch_dtype", "dtype"]
            .iter()
            .find_map(|key| {
                text.get(*key).or_else(|| reader.whole.get(*key)).and_then(Value::as_str)
            })
            .unwrap_or("bfloat16");
        let rest = match wide {
            "float32" => Dtype::Fp32,
            "float16" => Dtype::Fp16,
            _ => Dtype::Bf16,
        };
        let within = text
            .get("quantization_config")
            .or_else(|| reader.whole.get("quantization_config"))
            .and_then(Value::as_object);
        let separate =
            separate.and_then(|file| file.get("quantization")).and_then(Value::as_object);
        let Some(recipe) = within.or(separate) else { return Self::uniform(rest) };
        match Recipe::read(recipe) {
            Ok(recipe) => recipe.applied(rest, layers),
            Err(problem) => {
                reader.problems.push(problem);
                Self::uniform(rest)
            }
        }
    }
}

/// A quantisation recipe: what was narrowed, and what was left alone.
struct Recipe {
    dtype: Dtype,
    narrow_activations: bool,
    cache: Option<Dtype>,
    /// Patterns of modules left wide.
    ignored: Vec<String>,
    experts_only: bool,
}

impl Recipe {
    fn read(map: &Map<String, Value>) -> Result<Self, ConfigError> {
        let word = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default();
        let number = |key: &str| map.get(key).and_then(Value::as_u64);
        let method = word("quant_method");
        let algorithm = word("quant_algo").to_ascii_uppercase();
        let (dtype, narrow_activations) = match (method, algorithm.as_str()) {
            (_, "FP8" | "FP8_PB_WO") | ("fp8" | "fbgemm_fp8", _) => (Dtype::Fp8, true),
            (_, "NVFP4") => (Dtype::Nvfp4, true),
            (_, "W4A8_MXFP4_FP8" | "W4A16_MXFP4") | ("mxfp4", _) => (Dtype::Mxfp4, false),
            ("awq" | "gptq" | "auto-round", _) => match number("bits") {
                Some(4) => (Dtype::Int4, false),
                Some(8) => (Dtype::Int8, false),
                other => {
                    return Err(ConfigError::UnknownFormat(format!("{method} {other:?} bits")));
                }
            },
            ("compressed-tensors", _) => compressed(map)?,
            ("bitsandbytes", _) => match map.get("load_in_8bit").and_then(Value::as_bool) {
                Some(true) => (Dtype::Int8, false),
                _ => (Dtype::Int4, false),
            },
            (method, algorithm) => {
                let named = if method.is_empty() { algorithm } else { method };
                return Err(ConfigError::UnknownFormat(named.to_owned()));
            }
        };
        let ignored = ["ignore", "modules_to_not_convert", "exclude_modules"]
            .iter()
            .filter_map(|key| map.get(*key).and_then(Value::as_array))
            .flatten()
            .filter_map(|value| value.as_str().map(str::to_owned))
            .collect();
        let fp8_cache = word("kv_cache_quant_algo").eq_ignore_ascii_case("fp8")
            || map.get("kv_cache_scheme").and_then(|scheme| scheme.get("num_bits"))
                == Some(&Value::from(8));
        Ok(Self {
            dtype,
            narrow_activations,
            cache: fp8_cache.then_some(Dtype::Fp8),
            ignored,
            experts_only: method == "mxfp4",
        })
    }

    fn applied(&self, rest: Dtype, layers: u32) -> Stored {
        let part = |words: &[&str]| if self.leaves(words, layers) { rest } else { self.dtype };
        let experts = |dtype: Dtype| if self.experts_only { rest } else { dtype };
        Stored {
            rest,
            attention: experts(part(&["self_attn", "attention"])),
            dense: experts(part(&["mlp.(gate", "mlp.gate_proj", "mlp.down_proj", "mlp\\.(gate"])),
            shared_experts: experts(part(&["shared_expert"])),
            routed_experts: self.dtype,
            cache: self.cache,
            narrow_activations: self.narrow_activations,
        }
    }

    /// Whether a part is left wide: by a pattern for all layers, or by naming most of them.
    fn leaves(&self, words: &[&str], layers: u32) -> bool {
        // Norms inside the attention are always wide and say nothing about its matrices.
        let about = |pattern: &&String| {
            words.iter().any(|word| pattern.contains(word)) && !pattern.contains("norm")
        };
        let named = self.ignored.iter().filter(about);
        let general = named.clone().any(|pattern| !pattern.contains(|c: char| c.is_ascii_digit()));
        general || named.count() as u32 * 2 > layers
    }
}

/// `compressed-tensors` says the format of each group of modules.
fn compressed(map: &Map<String, Value>) -> Result<(Dtype, bool), ConfigError> {
    let group = map.get("config_groups").and_then(Value::as_object).and_then(|g| g.values().next());
    let tensor = |name: &str, key: &str| group.and_then(|g| g.get(name)).and_then(|t| t.get(key));
    let bits = tensor("weights", "num_bits").and_then(Value::as_u64);
    let kind = tensor("weights", "type").and_then(Value::as_str).unwrap_or_default();
    let narrow = tensor("input_activations", "num_bits").and_then(Value::as_u64).is_some();
    match (kind, bits) {
        ("int", Some(4)) => Ok((Dtype::Int4, false)),
        ("int", Some(8)) => Ok((Dtype::Int8, narrow)),
        ("float", Some(8)) => Ok((Dtype::Fp8, narrow)),
        ("float", Some(4)) => Ok((Dtype::Nvfp4, narrow)),
        (kind, bits) => {
            Err(ConfigError::UnknownFormat(format!("compressed-tensors {kind} {bits:?} bits")))
        }
    }
}
