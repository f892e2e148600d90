//! vLLM.

use crate::facts::{
    CommandLine, Continue, Defect, EngineFacts, Interface, LaunchFlags, LaunchRequest,
    PlannedReplica, Series, Shutdown, Words,
};

pub(crate) static FACTS: EngineFacts = EngineFacts {
    name: "vllm",
    kind: "VLLM",
    title: "vLLM",
    words: &["vllm"],
    port: 8_000,
    // Answered by its API server: 503 once the engine is dead, and 200 when that hangs.
    health: "/health",
    metrics: "/metrics",
    prefix: "vllm:",
    // The time between tokens was called `time_per_output_token` until 0.10, and the cache `gpu_cache_usage_perc`
    // until 0.9.
    series: &[
        ("vllm:prompt_tokens_total", Series::PromptTokens),
        ("vllm:prefix_cache_hits_total", Series::CachedTokens),
        ("vllm:generation_tokens_total", Series::OutputTokens),
        ("vllm:request_success_total", Series::Answered),
        ("vllm:inter_token_latency_seconds_count", Series::PacedTokens),
        ("vllm:time_per_output_token_seconds_count", Series::PacedTokens),
        ("vllm:inter_token_latency_seconds_sum", Series::PacedSeconds),
        ("vllm:time_per_output_token_seconds_sum", Series::PacedSeconds),
        ("vllm:num_requests_running", Series::Running),
        ("vllm:num_requests_waiting", Series::Waiting),
        ("vllm:kv_cache_usage_perc", Series::CacheUsed),
        ("vllm:gpu_cache_usage_perc", Series::CacheUsed),
        ("vllm:cache_config_info", Series::CacheBlocks),
    ],
    paces_all_tokens: false,
    shows_cache: true,
    launch: LaunchFlags {
        model: &["serve", "--model"],
        served: &["--served-model-name"],
        tensor: &["--tensor-parallel-size", "-tp"],
        step_tokens: Some("--max-num-batched-tokens"),
        alters: &["--quantization", "--speculative", "--kv-cache-dtype", "--enable-lora"],
        takes_names: true,
        takes_colons: true,
        write,
        plan,
    },
    shutdown: Shutdown::Flag("--shutdown-timeout"),
    shares_memory: true,
    cancel_seconds: 5,
    // Pull requests 17045 (chat), 20981 (completions, responses) and 49498 (messages; older ones ignore it).
    salts: &[Interface::Chat, Interface::Completions, Interface::Responses, Interface::Messages],
    narrows_cache: false,
    continues: Continue::Fields(&[
        ("continue_final_message", true),
        ("add_generation_prompt", false),
    ]),
    context: Some(("/v1/models", "max_model_len")),
    defects: &[Defect {
        versions: "before 0.18",
        what: "has no --shutdown-timeout: streams of a pod that ends stall",
        remedy: "Flyball drains the pod first and advises the flag",
    }],
};

/// For `vllm serve`, which takes the model first and every name as an argument of its own.
fn write(request: &LaunchRequest<'_>) -> CommandLine {
    let numbers = [request.port, request.gpus as i32, request.drain_seconds].map(|n| n.to_string());
    let mut args = vec![request.model, "--served-model-name"];
    args.extend(request.names.iter().map(String::as_str));
    args.extend(["--port", &numbers[0], "--tensor-parallel-size", &numbers[1]]);
    args.extend(["--shutdown-timeout", &numbers[2]]);
    CommandLine::of(&[], &args)
}

/// Names of flags as of vLLM 0.19.
fn plan(replica: &PlannedReplica<'_>) -> (Vec<String>, Vec<String>) {
    let mut words = Words::of(&["vllm", "serve", replica.model]);
    words.flag("--tensor-parallel-size", replica.tensor);
    words.above_one("--pipeline-parallel-size", replica.pipeline);
    words.above_one("--data-parallel-size", replica.attention_copies);
    words.when(replica.expert_ranks > 1, "--enable-expert-parallel");
    words.flag("--max-model-len", replica.longest);
    words.flag("--max-num-batched-tokens", replica.step_tokens);
    words.flag("--max-num-seqs", replica.sequences);
    words.flag("--gpu-memory-utilization", 0.9);
    words.option(replica.fp8_cache, "--kv-cache-dtype", "fp8");
    words.option(replica.fp8_weights, "--quantization", "fp8");
    (words.0, Vec::new())
}
