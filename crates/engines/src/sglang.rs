//! SGLang.

use crate::facts::{
    CommandLine, Continue, Defect, EngineFacts, Interface, LaunchFlags, LaunchRequest,
    PlannedReplica, Series, Shutdown, Words,
};

pub(crate) static FACTS: EngineFacts = EngineFacts {
    name: "sglang",
    kind: "SGLang",
    title: "SGLang",
    words: &["sglang"],
    port: 30_000,
    // It writes a token, and never answers in less than a second.
    health: "/health",
    metrics: "/metrics",
    prefix: "sglang:",
    series: &[
        ("sglang:prompt_tokens_total", Series::PromptTokens),
        ("sglang:cached_tokens_total", Series::CachedTokens),
        ("sglang:generation_tokens_total", Series::OutputTokens),
        ("sglang:num_requests_total", Series::Answered),
        ("sglang:inter_token_latency_seconds_count", Series::PacedTokens),
        ("sglang:inter_token_latency_seconds_sum", Series::PacedSeconds),
        ("sglang:num_running_reqs", Series::Running),
        ("sglang:num_queue_reqs", Series::Waiting),
        ("sglang:token_usage", Series::CacheUsed),
        ("sglang:max_total_num_tokens", Series::CacheTokens),
    ],
    paces_all_tokens: false,
    shows_cache: true,
    launch: LaunchFlags {
        model: &["--model-path", "--model"],
        served: &["--served-model-name"],
        tensor: &["--tp-size", "--tp", "--tensor-parallel-size"],
        step_tokens: Some("--chunked-prefill-size"),
        alters: &["--quantization", "--speculative", "--kv-cache-dtype", "--enable-lora"],
        takes_names: true,
        takes_colons: false,
        write,
        plan,
    },
    shutdown: Shutdown::Finishes,
    shares_memory: true,
    // Its gauges are renewed with every logged step, and when idle only 30 s after the last time: a cancel that empties it
    // can look ignored for that long.
    cancel_seconds: 40,
    // Pull request 10718.
    salts: &[Interface::Chat, Interface::Completions, Interface::Responses],
    narrows_cache: false,
    continues: Continue::Fields(&[("continue_final_message", true)]),
    context: Some(("/v1/models", "max_model_len")),
    defects: &[Defect {
        versions: "all up to 0.5",
        what: "answers /health by writing a token, in more than a second",
        remedy: "probes wait ten seconds",
    }],
};

/// It takes one name, and answers to any. Its images start a shell.
fn write(request: &LaunchRequest<'_>) -> CommandLine {
    let numbers = [request.port, request.gpus as i32].map(|n| n.to_string());
    let mut args = vec!["--model-path", request.model, "--served-model-name", &request.names[0]];
    args.extend(["--host", "0.0.0.0", "--port", &numbers[0]]);
    args.extend(["--tp-size", &numbers[1], "--enable-metrics"]);
    CommandLine::of(&["python3", "-m", "sglang.launch_server"], &args)
}

/// Names of flags as of SGLang 0.5.
fn plan(replica: &PlannedReplica<'_>) -> (Vec<String>, Vec<String>) {
    let copies = replica.attention_copies;
    let mut words =
        Words::of(&["python", "-m", "sglang.launch_server", "--model-path", replica.model]);
    words.flag("--tp-size", replica.tensor * copies);
    words.above_one("--pp-size", replica.pipeline);
    words.above_one("--dp-size", copies);
    words.when(copies > 1, "--enable-dp-attention");
    words.above_one("--ep-size", replica.expert_ranks);
    words.flag("--context-length", replica.longest);
    // Shared among the copies of the attention.
    words.flag("--chunked-prefill-size", replica.step_tokens * copies);
    words.flag("--max-running-requests", replica.sequences);
    words.flag("--mem-fraction-static", 0.9);
    words.option(replica.fp8_cache, "--kv-cache-dtype", "fp8_e4m3");
    words.option(replica.fp8_weights, "--quantization", "fp8");
    (words.0, Vec::new())
}
