//! llama.cpp's llama-server.

use crate::facts::{
    CommandLine, Continue, Defect, EngineFacts, LaunchFlags, LaunchRequest, PlannedReplica, Series,
    Shutdown, Words,
};

pub(crate) static FACTS: EngineFacts = EngineFacts {
    name: "llama-cpp",
    kind: "LlamaCpp",
    title: "llama.cpp",
    words: &["llama-server", "llama.cpp"],
    port: 8_080,
    // 503 until its model is loaded.
    health: "/health",
    metrics: "/metrics",
    prefix: "llamacpp:",
    // It counts no requests, and of prompt tokens those that it had to read. Old versions show the cache.
    series: &[
        ("llamacpp:prompt_tokens_total", Series::PromptTokens),
        ("llamacpp:tokens_predicted_total", Series::OutputTokens),
        ("llamacpp:tokens_predicted_seconds_total", Series::PacedSeconds),
        ("llamacpp:requests_processing", Series::Running),
        ("llamacpp:requests_deferred", Series::Waiting),
        ("llamacpp:kv_cache_usage_ratio", Series::CacheUsed),
    ],
    paces_all_tokens: true,
    shows_cache: false,
    launch: LaunchFlags {
        model: &["--model", "-m", "--hf-repo", "-hf"],
        served: &[],
        tensor: &[],
        step_tokens: None,
        alters: &[],
        takes_names: false,
        takes_colons: true,
        write,
        plan,
    },
    shutdown: Shutdown::Cuts,
    shares_memory: false,
    cancel_seconds: 5,
    salts: &[],
    narrows_cache: false,
    continues: Continue::ByItself,
    // An answer ends where its slot does, whatever the request asks for.
    context: None,
    defects: &[Defect {
        versions: "all",
        what: "cuts its streams on SIGTERM",
        remedy: "a preStop pause as long as drainSeconds",
    }],
};

/// A file, or a repository of Hugging Face. It answers to any name.
fn write(request: &LaunchRequest<'_>) -> CommandLine {
    let (model, port) = (request.model, request.port.to_string());
    let is_file = model.starts_with(['/', '.']) || model.ends_with(".gguf");
    let mut args = vec![if is_file { "--model" } else { "--hf-repo" }, model];
    args.extend(["--alias", &request.names[0]]);
    args.extend(["--host", "0.0.0.0", "--port", &port, "--metrics"]);
    CommandLine::of(&[], &args)
}

/// It spreads layers over all the accelerators that it sees, and holds each request's tokens in a part of one context.
fn plan(replica: &PlannedReplica<'_>) -> (Vec<String>, Vec<String>) {
    let mut words = Words::of(&["llama-server", "--hf-repo", replica.model]);
    words.flag("--ctx-size", replica.longest * replica.sequences);
    words.flag("--parallel", replica.sequences);
    words.flag("--batch-size", replica.step_tokens);
    words.option(replica.fp8_cache, "--cache-type-k", "q8_0");
    words.option(replica.fp8_cache, "--cache-type-v", "q8_0");
    (words.0, Vec::new())
}
