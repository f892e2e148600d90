use super::*;
use std::collections::BTreeSet;

#[test]
fn names_find_their_engine_and_no_two_are_alike() {
    for engine in Engine::ALL {
        assert_eq!(Engine::named(engine.name()), Some(engine));
    }
    assert_eq!(Engine::named("tgi"), None);
    let kinds: BTreeSet<&str> = Engine::ALL.map(|engine| engine.facts().kind).into();
    assert_eq!(kinds.len(), Engine::ALL.len());
}

#[test]
fn containers_give_their_engine_away() {
    let of = |image: &str, args: &[&str]| {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        Engine::of_container(image, &args)
    };
    assert_eq!(of("vllm/vllm-openai:v0.32.0", &[]), Some(Engine::Vllm));
    assert_eq!(of("r/own:1", &["python3", "-m", "sglang.launch_server"]), Some(Engine::Sglang));
    assert_eq!(of("ghcr.io/ggml-org/llama.cpp:server", &[]), Some(Engine::LlamaCpp));
    assert_eq!(of("nvcr.io/nvidia/tensorrt-llm/release:1.2.0", &[]), Some(Engine::TensorRtLlm));
    assert_eq!(of("r/own:1", &["sh", "-c", "trtllm-serve m"]), Some(Engine::TensorRtLlm));
    assert_eq!(of("r/own:1", &["serve"]), None);
}

#[test]
fn every_metric_has_the_prefix_and_one_meaning() {
    let mut names = BTreeSet::new();
    for engine in Engine::ALL {
        let facts = engine.facts();
        for (name, _) in facts.series {
            assert!(name.starts_with(facts.prefix) && names.insert(*name), "{name}");
        }
        for needed in [Series::Running, Series::Waiting, Series::OutputTokens] {
            assert!(facts.names(needed).next().is_some(), "{engine}: {needed:?}");
        }
    }
}

#[test]
fn command_lines_name_model_port_and_gpus() {
    let names = ["chat".to_owned()];
    for engine in Engine::ALL {
        let request = LaunchRequest {
            model: "org/model",
            names: &names,
            gpus: 4,
            port: 8000,
            drain_seconds: 60,
        };
        let line = (engine.facts().launch.write)(&request);
        let has = |word: &str| line.args.iter().any(|arg| arg == word);
        assert!(has("org/model") && has("chat") && has("8000"), "{engine}: {line:?}");
        assert!(has("4") || engine.facts().launch.tensor.is_empty(), "{engine}: {line:?}");
    }
}
