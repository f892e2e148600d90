use super::*;

#[test]
fn every_file_of_the_catalogue_is_shipped() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../catalog/models");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|file| file.strip_suffix(".json").map(str::to_owned))
        .collect();
    files.sort();
    assert_eq!(names().collect::<Vec<_>>(), files);
    assert_eq!(all().iter().map(|known| known.name).collect::<Vec<_>>(), files);
}

#[test]
fn every_model_says_what_it_is_called_and_where_its_numbers_are_from() {
    let mut seen: Vec<&str> = Vec::new();
    for known in all() {
        assert!(known.source.contains(", "), "{}: {}", known.name, known.source);
        for id in [&known.published].into_iter().chain(&known.aliases) {
            assert_eq!(id.matches('/').count(), 1, "{}: {id}", known.name);
            assert!(!seen.contains(&id.as_str()), "{id} stands for two models");
            seen.push(id);
        }
    }
}

#[test]
fn every_name_and_id_finds_its_model() {
    for known in all() {
        assert_eq!(find(known.name).unwrap().known.name, known.name);
        for id in [&known.published].into_iter().chain(&known.aliases) {
            let found = find(id).unwrap_or_else(|| panic!("{id}"));
            assert_eq!(found.known.name, known.name, "{id}");
            assert_eq!(&found.reference, id);
        }
    }
}

#[test]
fn names_as_people_write_them_are_found() {
    for (written, shipped) in [
        ("Qwen/Qwen3-32B-FP8", "qwen3-32b-fp8"),
        ("meta-llama/Meta-Llama-3.1-8B", "llama-3.1-8b"),
        ("meta-llama/Llama-2-70b-chat-hf", "llama-2-70b"),
        ("mistralai/Mistral-7B-v0.1", "mistral-7b-v0.1"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b-v0.3"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.1-70b"),
        ("llama-3.3-70b", "llama-3.1-70b"),
        ("deepseek-r1", "deepseek-v3"),
        ("google/gemma-3-27b-it", "gemma-3-27b"),
    ] {
        assert_eq!(find(written).unwrap().known.name, shipped, "{written}");
    }
    assert!(find("my-own-model").is_none());
    assert!(find("my-own-model-awq").is_none());
    assert!(find("").is_none());
}

fn stored(written: &str) -> crate::architecture::Stored {
    architecture(written).unwrap_or_else(|| panic!("{written}")).unwrap().stored
}

#[test]
fn endings_choose_the_format_of_the_weights() {
    for (written, dtype, narrow, cache) in [
        ("meta-llama/Llama-3.3-70B-Instruct", Dtype::Bf16, false, None),
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", Dtype::Fp8, true, None),
        ("nvidia/Llama-3.3-70B-Instruct-FP8", Dtype::Fp8, true, Some(Dtype::Fp8)),
        ("amd/Llama-3.1-405B-Instruct-FP8-KV", Dtype::Fp8, true, Some(Dtype::Fp8)),
        ("nvidia/Llama-3.3-70B-Instruct-FP4", Dtype::Nvfp4, true, Some(Dtype::Fp8)),
        ("RedHatAI/Llama-3.3-70B-Instruct-NVFP4", Dtype::Nvfp4, true, None),
        ("casperhansen/llama-3.3-70b-instruct-awq", Dtype::Int4, false, None),
        ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4", Dtype::Int4, false, None),
        ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int8", Dtype::Int8, false, None),
        ("unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", Dtype::Int4, false, None),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w8a8", Dtype::Int8, true, None),
        ("RedHatAI/Qwen2.5-7B-Instruct-quantized.w4a16", Dtype::Int4, false, None),
        ("amd/Llama-3.3-70B-Instruct-MXFP4", Dtype::Mxfp4, false, None),
    ] {
        let stored = stored(written);
        assert_eq!((stored.attention, stored.dense), (dtype, dtype), "{written}");
        assert_eq!(stored.rest, Dtype::Bf16, "{written}");
        assert_eq!((stored.narrow_activations, stored.cache), (narrow, cache), "{written}");
    }
}

#[test]
fn an_ending_replaces_what_the_checkpoint_was_stored_in() {
    assert_eq!(stored("deepseek-ai/DeepSeek-R1").attention, Dtype::Fp8);
    assert_eq!(stored("unsloth/DeepSeek-R1-BF16").attention, Dtype::Bf16);
    let nvidia = stored("nvidia/DeepSeek-R1-0528-NVFP4-v2");
    assert_eq!((nvidia.attention, nvidia.routed_experts), (Dtype::Bf16, Dtype::Nvfp4));
    let kimi = stored("nvidia/Kimi-K2.5-NVFP4");
    assert_eq!((kimi.attention, kimi.routed_experts), (Dtype::Bf16, Dtype::Nvfp4));
    assert_eq!(kimi.cache, Some(Dtype::Fp8));
}

#[test]
fn an_engine_is_told_what_somebody_published() {
    let published = find("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic").unwrap();
    assert_eq!(published.reference, "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic");
    assert_eq!(published.requantised(), None);
    let own = find("llama-3.3-70b-fp8").unwrap();
    assert_eq!(own.reference, "meta-llama/Llama-3.3-70B-Instruct");
    assert_eq!(own.requantised(), Some(Dtype::Fp8));
}

#[test]
fn what_is_not_found_brings_up_the_nearest() {
    assert_eq!(nearest("Qwen3_32B")[0], "qwen3-32b");
    assert_eq!(nearest("llama-3.1-9b")[0], "llama-3.1-8b");
    assert_eq!(nearest("gpt-oss")[0], "gpt-oss-20b");
    assert_eq!(
        nearest("meta-llama/Llama-3.3-71B-Instruct")[0],
        "meta-llama/Llama-3.3-70B-Instruct"
    );
    assert_eq!(nearest("llama-3.3-71b")[0], "meta-llama/Llama-3.3-70B-Instruct");
    assert_eq!(nearest("qwen").len(), 3);
    assert!(nearest("zzz").is_empty() && nearest("").is_empty());
}
