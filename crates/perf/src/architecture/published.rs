//! Counts as published, against counts from the shapes that come with the program.

use super::Architecture;

fn shipped(name: &str) -> Architecture {
    crate::models::architecture(name).unwrap_or_else(|| panic!("{name}")).unwrap()
}

/// To the last weight, as the checkpoint's metadata or its port to another library states them.
const EXACT: &[(&str, u64)] = &[
    ("llama-2-7b", 6_738_415_616),
    ("llama-2-13b", 13_015_864_320),
    ("llama-2-70b", 68_976_648_192),
    ("llama-3-8b", 8_030_261_248),
    ("llama-3-70b", 70_553_706_496),
    ("llama-3.1-8b", 8_030_261_248),
    ("llama-3.1-70b", 70_553_706_496),
    ("llama-3.1-405b", 405_853_388_800),
    ("llama-3.2-1b", 1_235_814_400),
    ("llama-3.2-3b", 3_212_749_824),
    ("codellama-34b", 33_743_970_304),
    ("yi-34b", 34_388_917_248),
    ("mistral-7b-v0.1", 7_241_732_096),
    ("mistral-7b-v0.2", 7_241_732_096),
    ("mistral-7b-v0.3", 7_248_023_552),
    ("mistral-nemo-12b", 12_247_782_400),
    ("mistral-small-24b", 23_572_403_200),
    ("mixtral-8x7b", 46_702_792_704),
    ("mixtral-8x22b", 140_630_071_296),
    ("qwen1.5-moe-a2.7b", 14_315_784_192),
    ("qwen2.5-0.5b", 494_032_768),
    ("qwen2.5-1.5b", 1_543_714_304),
    ("qwen2.5-3b", 3_085_938_688),
    ("qwen2.5-7b", 7_615_616_512),
    ("qwen2.5-32b", 32_763_876_352),
    ("qwen2.5-72b", 72_706_203_648),
    ("qwen3-0.6b", 596_049_920),
    ("qwen3-1.7b", 1_720_574_976),
    ("qwen3-4b", 4_022_468_096),
    ("qwen3-4b-2507", 4_022_468_096),
    ("qwen3-8b", 8_190_735_360),
    ("qwen3-14b", 14_768_307_200),
    ("qwen3-32b", 32_762_123_264),
    ("qwen3-30b-a3b", 30_532_122_624),
    ("qwen3-30b-a3b-2507", 30_532_122_624),
    ("qwen3-235b-a22b", 235_093_634_560),
    ("qwen3-235b-a22b-2507", 235_093_634_560),
    ("qwen3-embedding-0.6b", 595_776_512),
    ("qwen3-embedding-4b", 4_021_774_336),
    ("qwen3-embedding-8b", 8_188_515_328),
    ("deepseek-v3", 671_026_419_200),
    ("kimi-k2", 1_026_408_232_448),
    ("gpt-oss-120b", 116_829_156_672),
    ("gpt-oss-20b", 20_914_757_184),
    ("gemma-2b", 2_506_172_416),
    ("gemma-7b", 8_537_680_896),
    ("gemma-2-2b", 2_614_341_888),
    ("gemma-2-9b", 9_241_705_984),
    ("gemma-2-27b", 27_227_128_320),
    ("gemma-3-1b", 999_885_952),
    // The next three without their image encoders.
    ("gemma-3-4b", 3_880_099_328),
    ("gemma-3-12b", 11_765_788_416),
    ("gemma-3-27b", 27_009_002_240),
    ("phi-3-mini", 3_821_079_552),
    ("phi-4", 14_659_507_200),
    ("smollm3-3b", 3_075_100_928),
];

/// Billions of weights, encoder included, as the makers state them in names, cards and reports.
const ROUNDED: &[(&str, f64)] = &[
    ("codellama-7b", 6.74),
    ("codellama-13b", 13.0),
    ("codellama-70b", 69.0),
    ("tinyllama-1.1b", 1.1),
    ("smollm2-135m", 0.135),
    ("smollm2-360m", 0.36),
    ("smollm2-1.7b", 1.7),
    ("falcon3-7b", 7.46),
    ("falcon3-10b", 10.3),
    ("qwen2.5-14b", 14.7),
    ("deepseek-r1-distill-qwen-1.5b", 1.78),
    ("qwen3-next-80b-a3b", 80.0),
    ("qwen3-coder-480b-a35b", 480.0),
    ("qwen3.5-9b", 9.41),
    ("qwen3.5-27b", 27.36),
    ("qwen3.5-35b-a3b", 35.1),
    ("qwen3.5-122b-a10b", 122.0),
    ("qwen3.5-397b-a17b", 397.0),
    ("qwen3-vl-2b", 2.1),
    ("qwen3-vl-4b", 4.4),
    ("qwen3-vl-8b", 8.8),
    ("qwen3-vl-32b", 33.4),
    ("qwen3-vl-30b-a3b", 31.1),
    ("qwen3-vl-235b-a22b", 235.7),
    ("qwen2.5-vl-3b", 3.75),
    ("qwen2.5-vl-7b", 8.29),
    ("qwen2.5-vl-32b", 33.5),
    ("qwen2.5-vl-72b", 73.4),
    ("internvl3.5-1b", 1.1),
    ("internvl3.5-2b", 2.3),
    ("internvl3.5-4b", 4.7),
    ("internvl3.5-8b", 8.5),
    ("internvl3.5-14b", 15.1),
    ("internvl3.5-30b-a3b", 30.8),
    ("gemma-3-4b", 4.3),
    ("gemma-3-12b", 12.2),
    ("gemma-3-27b", 27.4),
    ("mistral-large-123b", 123.0),
    ("mistral-small-3.1-24b", 24.0),
    ("mistral-small-22b", 22.2),
    ("mistral-small-4-119b", 119.0),
    ("devstral-small-2-24b", 24.0),
    ("devstral-2-123b", 125.0),
    ("ministral-8b", 8.02),
    ("ministral-3-3b", 3.8),
    ("ministral-3-8b", 8.9),
    ("ministral-3-14b", 13.9),
    ("mistral-nemo-minitron-8b", 8.4),
    ("pixtral-12b", 12.7),
    ("deepseek-v2", 236.0),
    ("deepseek-v2-lite", 15.7),
    ("moonlight-16b-a3b", 16.0),
    ("kimi-k2.5", 1030.0),
    ("glm-4-9b", 9.4),
    ("glm-4-9b-0414", 9.4),
    ("glm-4.1v-9b", 10.3),
    ("glm-4.5", 355.0),
    ("glm-4.5-air", 106.0),
    ("glm-4.5v", 106.0),
    ("glm-4.6", 355.0),
    ("glm-4.7-flash", 30.0),
    ("glm-5", 744.0),
    ("glm-5.2", 744.0),
    ("minimax-m2.5", 229.0),
    ("minimax-m2.7", 229.0),
    ("llama-4-scout", 109.0),
    ("llama-4-maverick", 400.0),
    ("nemotron-4-340b", 340.0),
    ("nemotron-h-8b", 8.1),
    ("nemotron-h-47b", 47.0),
    ("nemotron-h-56b", 56.0),
    ("nemotron-nano-9b-v2", 8.9),
    ("nemotron-nano-12b-v2", 12.3),
    ("nemotron-3-nano-30b-a3b", 31.6),
    ("phi-3-medium", 14.0),
    ("phi-3.5-moe", 41.9),
    ("phi-4-mini", 3.8),
    ("olmo-2-7b", 7.3),
    ("olmo-2-13b", 13.7),
    ("olmo-2-32b", 32.2),
    ("olmo-3-7b", 7.3),
    ("olmo-3-32b", 32.2),
    ("olmoe-1b-7b", 6.9),
    ("starcoder2-3b", 3.0),
    ("starcoder2-7b", 7.2),
    ("starcoder2-15b", 15.7),
    ("granite-3.0-8b", 8.1),
    ("granite-3.1-2b", 2.5),
    ("command-r-35b", 35.0),
    ("command-r7b", 8.0),
    ("aya-23-8b", 8.0),
    ("internlm2.5-7b", 7.7),
    ("internlm3-8b", 8.8),
    ("exaone-4.0-32b", 32.0),
    ("solar-open-100b", 102.6),
];

/// Billions of weights that one token passes through, as the makers state them.
const ACTIVE: &[(&str, f64)] = &[
    ("qwen1.5-moe-a2.7b", 2.7),
    ("qwen3-30b-a3b", 3.3),
    ("qwen3-235b-a22b", 22.0),
    ("qwen3-coder-480b-a35b", 35.0),
    ("qwen3.5-122b-a10b", 10.0),
    ("qwen3.5-397b-a17b", 17.0),
    ("deepseek-v2", 21.0),
    ("deepseek-v2-lite", 2.4),
    ("deepseek-v3", 37.0),
    ("kimi-k2", 32.0),
    ("gpt-oss-120b", 5.1),
    ("gpt-oss-20b", 3.6),
    ("llama-4-scout", 17.0),
    ("llama-4-maverick", 17.0),
    ("glm-4.5", 32.0),
    ("glm-4.5-air", 12.0),
    ("glm-5", 40.0),
    ("minimax-m2.5", 10.0),
    ("mistral-small-4-119b", 6.5),
    ("nemotron-3-nano-30b-a3b", 3.6),
    ("olmoe-1b-7b", 1.3),
    ("phi-3.5-moe", 6.6),
    ("solar-open-100b", 12.0),
];

#[test]
fn counts_are_within_a_thousandth_of_the_exact_ones() {
    for (name, published) in EXACT {
        let counted = shipped(name).parameters().total();
        let off = (counted as f64 / *published as f64 - 1.0).abs();
        assert!(off < 0.001, "{name}: counted {counted}, published {published}");
    }
}

#[test]
fn counts_are_within_three_per_cent_of_the_rounded_ones() {
    for (name, published) in ROUNDED {
        let model = shipped(name);
        let counted = (model.parameters().total() + model.encoder.unwrap_or(0)) as f64 / 1e9;
        assert!(
            (counted / published - 1.0).abs() < 0.03,
            "{name}: {counted:.3} B, not {published}"
        );
    }
}

#[test]
fn active_counts_match_with_or_without_the_tables_of_words() {
    // Makers differ in whether they count the embedding and the output layer.
    for (name, published) in ACTIVE {
        let parameters = shipped(name).parameters();
        let most = parameters.active() as f64 / 1e9;
        let least = most - (parameters.embedding + parameters.head) as f64 / 1e9;
        let range = least * 0.95..most * 1.05;
        assert!(range.contains(published), "{name}: {least:.2} to {most:.2} B, not {published}");
    }
}

#[test]
fn every_shipped_model_is_held_against_a_published_count() {
    let listed = |name: &str| {
        EXACT.iter().any(|(known, _)| *known == name)
            || ROUNDED.iter().any(|(known, _)| *known == name)
    };
    let left: Vec<&str> = crate::models::names().filter(|name| !listed(name)).collect();
    // Stored otherwise than one above; of the same shape as one above; or counted by the maker with
    // layers that predict output tokens.
    assert_eq!(
        left,
        [
            "deepseek-v3.2",
            "falcon3-1b",
            "falcon3-3b",
            "glm-5-fp8",
            "mimo-7b",
            "qwen3-235b-a22b-fp8",
            "qwen3-32b-fp8",
        ]
    );
}
