//! What Flyball makes for an engine: its arguments, its objects, and what overlays do to its pod.

mod arguments;
mod overlays;

use super::args::command_line;
use super::*;
use crate::observe::of_deployment;
use crate::observe::{Drain, drain_of};
use flyball_engines::Engine;
use k8s_openapi::api::apps::v1::Deployment;
use proptest::prelude::*;

/// A ModelService with one variant whose engine is this.
fn service(names: &[&str], model: &str, engine: Value) -> ModelService {
    let service = json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "ModelService",
        "metadata": {"name": "m", "namespace": "a"},
        "spec": {
            "model": model, "names": names,
            "variants": [{"name": "x", "gpusPerReplica": 2, "engine": engine}],
        },
    });
    serde_json::from_value(service).unwrap()
}

fn words(service: &ModelService) -> (Vec<String>, Vec<String>) {
    words_in(service, None)
}

fn words_in(service: &ModelService, pool: Option<&Pool>) -> (Vec<String>, Vec<String>) {
    let variant = &service.spec.variants[0];
    let line = command_line(service, variant, variant.engine.as_ref().unwrap(), pool);
    (line.command, line.args)
}

/// A pool of this accelerator.
fn pool_of(accelerator: &str) -> Pool {
    let pool = json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "Pool", "metadata": {"name": "p"},
        "spec": {"accelerator": accelerator},
    });
    serde_json::from_value(pool).unwrap()
}

#[test]
fn steps_are_as_large_as_lets_a_token_come_in_time() {
    let with = |between: Option<i32>, args: &[&str]| {
        let engine = json!({"kind": "VLLM", "image": "i", "args": args});
        let mut service = service(&[], "Qwen/Qwen3-32B", engine);
        service.spec.objectives.between_tokens_milliseconds = between;
        let (_, args) = words_in(&service, Some(&pool_of("h100-sxm-80gb")));
        let at = args.iter().rposition(|word| word.starts_with("--max-num-batched-tokens"));
        at.map(|at| args[at..].join(" "))
    };
    let flag = |tokens: u32| Some(format!("--max-num-batched-tokens {tokens}"));
    assert_eq!(with(Some(5_000), &[]), flag(8_192));
    let strict = with(Some(100), &[]);
    assert!([flag(1_024), flag(2_048)].contains(&strict), "{strict:?}");
    assert_eq!(with(None, &[]), None, "nobody asks for it");
    let own = "--max-num-batched-tokens=4096";
    assert_eq!(with(Some(100), &[own]).as_deref(), Some(own), "the owner says it");
}

#[test]
fn vllm_gets_each_public_name_as_an_argument_of_its_own() {
    let two = service(&["a", "org/b"], "Qwen/Qwen3-32B", json!({"kind": "VLLM", "image": "i"}));
    let (command, args) = words(&two);
    let at = args.iter().position(|word| word == "--served-model-name").unwrap();
    assert_eq!(args[at + 1..at + 3], ["a", "org/b"]);
    assert!(args[at + 3].starts_with("--"), "{args:?}");
    assert_eq!((command.len(), args[0].as_str()), (0, "Qwen/Qwen3-32B"), "`vllm serve MODEL`");
}

#[test]
fn sglang_is_started_by_name_because_its_images_start_a_shell() {
    let one = service(&[], "Qwen/Qwen3-32B", json!({"kind": "SGLang", "image": "i"}));
    let (command, args) = words(&one);
    assert_eq!(command, ["python3", "-m", "sglang.launch_server"]);
    assert_eq!(args[..4], ["--model-path", "Qwen/Qwen3-32B", "--served-model-name", "m"]);
}

#[test]
fn llama_server_loads_a_file_or_a_repository() {
    for (model, flag) in [
        ("/models/nano.gguf", "--model"),
        ("nano.gguf", "--model"),
        ("ggml-org/Qwen3-0.6B-GGUF", "--hf-repo"),
    ] {
        let (_, args) = words(&service(&[], model, json!({"kind": "LlamaCpp", "image": "i"})));
        assert_eq!(args[..2], [flag, model]);
    }
}

#[test]
fn who_names_a_program_gives_all_of_its_arguments() {
    let engine =
        json!({"kind": "VLLM", "image": "i", "command": ["/flyball"], "args": ["emulate"]});
    assert_eq!(
        words(&service(&[], "m", engine)),
        (vec!["/flyball".into()], vec!["emulate".into()])
    );
}

#[test]
fn an_engine_whose_metrics_are_elsewhere_is_scraped_there() {
    let of =
        |kind: &str| deployment(&service(&["chat"], "org/m", json!({"kind": kind, "image": "i"})));
    let annotations = |made: &Value| made["spec"]["template"]["metadata"]["annotations"].clone();
    let made = of("TensorRTLLM");
    assert_eq!(annotations(&made)["prometheus.io/path"], "/prometheus/metrics");
    let container = &made["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["command"], json!(["trtllm-serve"]));
    let args = ["org/m", "--served_model_name", "chat", "--host", "0.0.0.0", "--port", "8000"];
    assert_eq!(container["args"].as_array().unwrap()[..7], args.map(|arg| json!(arg)));
    assert_eq!(annotations(&of("VLLM"))["prometheus.io/path"], Value::Null, "no pod starts anew");
}

fn deployment(service: &ModelService) -> Value {
    let variant = &service.spec.variants[0];
    let made = objects(service, variant, variant.engine.as_ref().unwrap(), None, Some(1));
    made.into_iter().find(|object| object["kind"] == "Deployment").unwrap()
}

proptest! {
    /// llama-server once got a pause of five seconds, whatever its answers took.
    #[test]
    fn whatever_flyball_makes_gets_the_time_to_finish_its_requests(
        kind in prop::sample::select(Engine::ALL.map(|engine| engine.facts().kind).to_vec()),
        seconds in 1..=3_600_i32,
        port in 1..=65_535_i32,
        names in prop::collection::vec("[a-z/.]{1,9}", 0..4),
    ) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let engine = json!({"kind": kind, "image": "i", "drainSeconds": seconds, "port": port});
        let service = service(&names, "m", engine);
        let made: Deployment = serde_json::from_value(deployment(&service)).unwrap();
        let kind = service.spec.variants[0].engine.as_ref().unwrap().kind;
        let found = drain_of(kind, i64::from(seconds), &of_deployment(&made));
        prop_assert_eq!(found, Drain::Finishes);
    }
}

fn objects_of(service: &ModelService) -> Vec<Value> {
    let variant = &service.spec.variants[0];
    objects(service, variant, variant.engine.as_ref().unwrap(), None, None)
}

#[test]
fn a_budget_keeps_a_node_from_taking_all_replicas_and_lets_broken_ones_go() {
    let made = objects_of(&service(&[], "m", json!({"kind": "VLLM", "image": "i"})));
    let kinds: Vec<&str> = made.iter().filter_map(|object| object["kind"].as_str()).collect();
    assert_eq!(kinds, ["Service", "PodDisruptionBudget", "Deployment"]);
    let (budget, deployment) = (&made[1], &made[2]);
    assert_eq!(budget["spec"]["selector"], deployment["spec"]["selector"]);
    assert_eq!(budget["metadata"]["ownerReferences"], deployment["metadata"]["ownerReferences"]);
    assert_eq!(budget["spec"]["maxUnavailable"], "10%");
    assert_eq!(budget["spec"]["unhealthyPodEvictionPolicy"], "AlwaysAllow");
}

/// The Service once stayed as it was when its port changed.
#[test]
fn all_objects_are_written_anew_when_one_of_them_changes() {
    let at = |port: i32| {
        objects_of(&service(&[], "m", json!({"kind": "VLLM", "image": "i", "port": port})))
    };
    let made: Deployment = serde_json::from_value(at(8_000).remove(2)).unwrap();
    let there = of_deployment(&made);
    assert!(are_new(&at(8_000), None));
    assert!(!are_new(&at(8_000), Some(&there)));
    assert!(are_new(&at(9_000), Some(&there)));
}
