use super::*;
use crate::precision::Math;

fn shipped(name: &str) -> Architecture {
    let path = format!("{}/../../catalog/models/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    Architecture::from_config(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn every_shipped_model_is_understood() {
    let folder = format!("{}/../../catalog/models", env!("CARGO_MANIFEST_DIR"));
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            shipped(path.file_stem().unwrap().to_str().unwrap());
        }
    }
}

#[test]
fn the_cache_of_known_models_has_the_known_size() {
    let kib = |name: &str| shipped(name).cache_bytes_per_token(Dtype::Bf16) / 1024.0;
    assert_eq!(kib("llama-3.1-8b"), 128.0);
    assert_eq!(kib("llama-3.1-70b"), 320.0);
    assert_eq!(kib("qwen3-32b"), 256.0);
    // 61 layers of 576 values: the 68.6 KiB that DeepSeek's users see.
    assert_eq!(kib("deepseek-v3"), 61.0 * 576.0 * 2.0 / 1024.0);
}

#[test]
fn windows_stop_the_cache_from_growing() {
    let model = shipped("gpt-oss-120b");
    assert_eq!((model.layers.full, model.layers.sliding, model.layers.window), (18, 18, 128));
    let growth = model.cache_bytes(2000.0, Dtype::Bf16) - model.cache_bytes(1000.0, Dtype::Bf16);
    assert_eq!(growth, 1000.0 * model.cache_bytes_per_token(Dtype::Bf16));
}

#[test]
fn quantised_checkpoints_are_read_part_by_part() {
    let gpt_oss = shipped("gpt-oss-120b").stored;
    assert_eq!((gpt_oss.routed_experts, gpt_oss.attention), (Dtype::Mxfp4, Dtype::Bf16));
    let kimi = shipped("kimi-k2.5").stored;
    assert_eq!((kimi.routed_experts, kimi.attention), (Dtype::Int4, Dtype::Bf16));
    assert_eq!((kimi.shared_experts, kimi.dense), (Dtype::Bf16, Dtype::Bf16));
    let deepseek = shipped("deepseek-v3").stored;
    assert_eq!((deepseek.attention, deepseek.routed_experts), (Dtype::Fp8, Dtype::Fp8));
    assert_eq!(deepseek.math(Dtype::Fp8), Math::Fp8);
    assert_eq!(kimi.math(Dtype::Int4), Math::Half, "weights only: multiplied wide");
}

#[test]
fn encoders_are_counted_from_their_shape() {
    // 34 layers of 4 * 1408^2 + 2 * 1408 * 5632, then 5632^2 + 5632 * 5120.
    assert_eq!(shipped("llama-4-scout").encoder, Some(869_400_576));
    assert_eq!(shipped("llama-3.1-8b").encoder, None);
    let kimi = shipped("kimi-k2.5").encoder.unwrap();
    assert!((400_000_000..500_000_000).contains(&kimi), "{kimi}");
}

#[test]
fn mamba_layers_keep_a_state_and_no_cache() {
    // Of 52 blocks 6 attend, 23 are Mamba's and 23 have experts.
    let nano = shipped("nemotron-3-nano-30b-a3b");
    assert_eq!((nano.layers.full, nano.layers.linear), (6, 23));
    assert_eq!(nano.feed_forward.dense_layers, 0);
    assert_eq!(nano.feed_forward.experts.map(|experts| experts.layers), Some(23));
    assert_eq!(nano.cache_bytes_per_token(Dtype::Bf16), 6.0 * 2.0 * 2.0 * 128.0 * 2.0);
    // 64 heads of 64 x 128 in FP32, and three more columns of 64 * 64 + 2 * 8 * 128 channels.
    assert_eq!(nano.state_bytes(), 23.0 * (524_288.0 * 4.0 + 6144.0 * 3.0 * 2.0));
}

#[test]
fn a_separate_quantisation_file_is_read() {
    let path = format!("{}/../../catalog/models/llama-3.1-70b.json", env!("CARGO_MANIFEST_DIR"));
    let config = std::fs::read_to_string(path).unwrap();
    let recipe = r#"{"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8",
        "exclude_modules": ["lm_head"]}}"#;
    let model = Architecture::from_files(&config, Some(recipe)).unwrap();
    assert_eq!(model.stored.attention, Dtype::Nvfp4);
    assert_eq!(model.stored.cache, Some(Dtype::Fp8));
    assert!(model.weight_bytes() < 0.32 * shipped("llama-3.1-70b").weight_bytes());
}

fn refusal(text: &str) -> String {
    Architecture::from_config(text).unwrap_err().to_string()
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    assert!(refusal("{").starts_with("it is not JSON"));
    assert_eq!(refusal("[]"), "it is not a JSON object");
    assert_eq!(refusal("{}"), "`model_type` is missing");
    let mamba = r#"{"model_type": "llama", "ssm_state_size": 128, "hidden_size": 64,
        "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 100, "intermediate_size": 128}"#;
    assert_eq!(refusal(mamba), "Mamba layers are not modelled yet");
    assert_eq!(
        refusal(r#"{"model_type": "mamba2"}"#),
        "model family `mamba2` is not supported by this version"
    );
}

#[test]
fn all_missing_keys_are_named_at_once() {
    assert_eq!(
        refusal(r#"{"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32}"#),
        "`num_hidden_layers` is missing or not a whole number; `vocab_size` is missing or not a \
         whole number; `intermediate_size` is missing or not a whole number"
    );
}

#[test]
fn a_recipe_that_is_not_understood_is_refused() {
    let text = r#"{"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4,
        "num_hidden_layers": 2, "vocab_size": 100, "intermediate_size": 128,
        "quantization_config": {"quant_method": "aqlm"}}"#;
    assert_eq!(refusal(text), "weight format `aqlm` is not supported");
}
