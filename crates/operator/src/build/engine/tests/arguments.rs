//! The argument lists that `cargo xtask engines arguments` holds against the engines' own parsers.

use super::*;
use std::path::Path;

/// A list for each engine and shape, with what is meant by it, in the words of the parsers.
fn lists() -> Vec<Value> {
    let mut lists = Vec::new();
    let shapes: [(&[&str], i32, i32); 3] =
        [(&[], 1, 8_000), (&["org/a:8b", "b"], 8, 8_000), (&["a"], 0, 30_000)];
    for (names, gpus, port) in shapes {
        let requested = if names.is_empty() { vec!["m"] } else { names.to_vec() };
        let tensor = gpus.max(1);
        // On eight H100 a step of 8,192 tokens is inside 200 ms; nobody asks for anything on one.
        let tokens = (gpus > 1).then_some(8_192);
        let of = |kind: &str, model: &str, names: &[&str]| {
            let engine = json!({"kind": kind, "image": "i", "port": port, "drainSeconds": 120});
            let mut service = service(names, model, engine);
            service.spec.variants[0].gpus_per_replica = gpus;
            service.spec.objectives.between_tokens_milliseconds = (gpus > 1).then_some(200);
            words_in(&service, Some(&pool_of("h100-sxm-80gb"))).1
        };
        let model = "Qwen/Qwen3-32B";
        lists.push(json!({
            "engine": "vllm",
            "args": of("VLLM", model, names),
            "meant": {"model": model, "names": requested, "port": port, "gpus": tensor, "drainSeconds": 120, "stepTokens": tokens},
        }));
        // It refuses a first name with a colon, and so does `validate`.
        let plain: Vec<&str> = names.iter().copied().filter(|name| !name.contains(':')).collect();
        let first = plain.first().unwrap_or(&"m");
        lists.push(json!({
            "engine": "sglang",
            "args": of("SGLang", model, &plain),
            "meant": {
                "model": model, "names": [first], "host": "0.0.0.0", "port": port, "gpus": tensor,
                "metrics": true, "stepTokens": tokens,
            },
        }));
        for model in ["/models/nano.gguf", "ggml-org/Qwen3-0.6B-GGUF"] {
            let args = of("LlamaCpp", model, names);
            lists.push(json!({"engine": "llama-server", "args": args, "meant": {"model": model}}));
        }
    }
    lists
}

#[test]
fn the_lists_for_the_engines_parsers_are_current() {
    let lists: Vec<String> = lists().iter().map(|list| format!("  {list}")).collect();
    let text = format!("[\n{}\n]\n", lists.join(",\n"));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cluster/engines/arguments.json");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == text,
        "run: UPDATE=1 cargo test -p flyball-operator the_lists, and then cargo xtask engines arguments"
    );
}
