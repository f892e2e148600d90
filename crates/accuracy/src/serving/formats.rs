//! What a row's one word for its precision means for each part of the model.

use super::rows::Precision;
use flyball_perf::architecture::{Architecture, Stored};
use flyball_perf::engine::Engine;
use flyball_perf::precision::Dtype;

/// N2: one word for each format. Several names mean the same stored bytes.
pub(super) fn precision(word: &str, model: &Architecture) -> Option<Precision> {
    // Whatever a row says, gpt-oss is published with 4-bit experts only.
    if model.family == "gpt_oss" {
        return Some(Precision::Fp4);
    }
    Some(match word {
        "bf16" | "fp16" => Precision::Bf16,
        "fp8" => Precision::Fp8,
        "fp4" | "nvfp4" | "mxfp4" | "mxfp4/fp8" => Precision::Fp4,
        "int4" => Precision::Int4,
        _ => return None,
    })
}

/// Formats by part. Four-bit checkpoints leave some parts wider, by their published exclude lists.
pub(super) fn stored(precision: Precision, model: &Architecture) -> Stored {
    match precision {
        Precision::Bf16 => Stored::uniform(Dtype::Bf16),
        Precision::Fp8 => Stored::quantised(Dtype::Fp8, true),
        Precision::Int4 => Stored::experts_only(Dtype::Int4, false),
        Precision::Fp4 if model.family == "gpt_oss" => Stored::experts_only(Dtype::Mxfp4, false),
        Precision::Fp4 => {
            let attention = match model.family.as_str() {
                "deepseek_v3" | "kimi_k2" => Dtype::Fp8,
                "glm_moe_dsa" | "minimax_m2" | "qwen3_5_moe_text" => Dtype::Bf16,
                _ => Dtype::Nvfp4,
            };
            Stored { attention, ..Stored::quantised(Dtype::Nvfp4, true) }
        }
    }
}

/// Format of the cache, which no row states. Wide for wide checkpoints; otherwise 8 bits, except in
/// SGLang, whose default keeps it wide, and for gpt-oss outside TensorRT-LLM.
pub(super) fn cache(precision: Precision, engine: Engine, model: &Architecture) -> Dtype {
    let narrow = if model.family == "gpt_oss" {
        engine == Engine::TensorRtLlm
    } else {
        matches!(precision, Precision::Fp8 | Precision::Fp4) && engine != Engine::Sglang
    };
    if narrow { Dtype::Fp8 } else { Dtype::Bf16 }
}
