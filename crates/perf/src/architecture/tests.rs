use super::*;
use crate::precision::Math;

fn shipped(name: &str) -> Architecture {
    let path = format!("{}/../../catalog/models/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    Architecture::from_config(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Counts as their publishers state them, in the checkpoint's own metadata or report.
const PUBLISHED: &[(&str, u64)] = &[
    ("llama-2-7b", 6_738_415_616),
    ("llama-2-13b", 13_015_864_320),
    ("llama-2-70b", 68_976_648_192),
    ("llama-3.1-8b", 8_030_261_248),
    ("llama-3.1-70b", 70_553_706_496),
    ("llama-3.1-405b", 405_853_388_800),
    ("llama-3.2-1b", 1_235_814_400),
    ("llama-3.2-3b", 3_212_749_824),
    ("codellama-34b", 33_743_970_304),
    ("yi-34b", 34_388_917_248),
    ("mistral-7b-v0.1", 7_241_732_096),
    ("mistral-nemo-12b", 12_247_782_400),
    ("mixtral-8x7b", 46_702_792_704),
    ("mixtral-8x22b", 140_630_071_296),
    ("qwen2.5-7b", 7_615_616_512),
    ("qwen3-0.6b", 596_049_920),
    ("qwen3-1.7b", 1_720_574_976),
    ("qwen3-4b", 4_022_468_096),
    ("qwen3-8b", 8_190_735_360),
    ("qwen3-14b", 14_768_307_200),
    ("qwen3-32b", 32_762_123_264),
    ("qwen3-30b-a3b", 30_532_122_624),
    ("qwen3-235b-a22b", 235_093_634_560),
    ("deepseek-v3", 671_026_419_200),
    ("kimi-k2", 1_026_408_232_448),
    ("gpt-oss-120b", 116_829_156_672),
    ("gpt-oss-20b", 20_914_757_184),
    ("gemma-2b", 2_506_172_416),
    ("gemma-2-9b", 9_241_705_984),
    ("gemma-2-27b", 27_227_128_320),
    ("gemma-3-1b", 999_885_952),
    ("phi-3-mini", 3_821_079_552),
    ("phi-4", 14_659_507_200),
];

#[test]
fn counts_are_within_a_thousandth_of_the_published_ones() {
    for (name, published) in PUBLISHED {
        let counted = shipped(name).parameters().total();
        let off = (counted as f64 / *published as f64 - 1.0).abs();
        assert!(off < 0.001, "{name}: counted {counted}, published {published}");
    }
}

#[test]
fn active_weights_match_the_names_of_the_models() {
    for (name, billions) in [
        ("qwen3-30b-a3b", 3.3),
        ("qwen3-235b-a22b", 22.2),
        ("deepseek-v3", 37.5),
        ("kimi-k2", 32.9),
        ("gpt-oss-120b", 5.7),
        ("llama-4-scout", 17.2),
        ("qwen3.5-397b-a17b", 17.0),
    ] {
        let active = shipped(name).parameters().active() as f64 / 1e9;
        assert!((active / billions - 1.0).abs() < 0.05, "{name}: {active:.2} B");
    }
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
    assert_eq!(refusal("{}"), "it has no `model_type`");
    assert_eq!(
        refusal(r#"{"model_type": "mamba2"}"#),
        "`mamba2` is not a family of models that this version knows"
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
    assert_eq!(refusal(text), "weights stored as `aqlm` are not understood");
}
