//! TensorRT-LLM's trtllm-serve, as of 1.2: `tensorrt_llm/metrics/collector.py` and `commands/serve.py` of its repository.

use crate::facts::{
    CommandLine, Continue, Defect, EngineFacts, Interface, LaunchFlags, LaunchRequest,
    PlannedReplica, Series, Shutdown, Words,
};

pub(crate) static FACTS: EngineFacts = EngineFacts {
    name: "trtllm",
    kind: "TensorRTLLM",
    title: "TensorRT-LLM",
    words: &["trtllm-serve", "tensorrt-llm"],
    port: 8_000,
    health: "/health",
    // `/metrics` is JSON about single iterations.
    metrics: "/prometheus/metrics",
    prefix: "trtllm_",
    series: &[
        ("trtllm_prompt_tokens_total", Series::PromptTokens),
        ("trtllm_prompt_cached_tokens_total", Series::CachedTokens),
        ("trtllm_generation_tokens_total", Series::OutputTokens),
        ("trtllm_request_success_total", Series::Answered),
        // One value per request: the mean of requests, where others have the mean of tokens.
        ("trtllm_time_per_output_token_seconds_count", Series::PacedTokens),
        ("trtllm_time_per_output_token_seconds_sum", Series::PacedSeconds),
        ("trtllm_num_requests_running", Series::Running),
        ("trtllm_num_requests_waiting", Series::Waiting),
        ("trtllm_kv_cache_utilization", Series::CacheUsed),
    ],
    paces_all_tokens: false,
    shows_cache: true,
    launch: LaunchFlags {
        model: &["trtllm-serve", "serve"],
        served: &["--served_model_name"],
        tensor: &["--tp_size"],
        step_tokens: Some("--max_num_tokens"),
        alters: &["--extra_llm_api_options", "--config"],
        takes_names: true,
        takes_colons: true,
        write,
        plan,
    },
    // Its uvicorn waits for connections to end, by its source; not tried on a GPU.
    shutdown: Shutdown::Finishes,
    shares_memory: true,
    cancel_seconds: 5,
    // Its request types refuse fields that they do not know.
    salts: &[Interface::Chat],
    narrows_cache: true,
    continues: Continue::Never,
    context: None,
    defects: &[Defect {
        versions: "before 1.2",
        what: "shows neither running nor waiting requests on its Prometheus page",
        remedy: "the gateway counts its own",
    }],
};

/// It takes the model first and one name.
fn write(request: &LaunchRequest<'_>) -> CommandLine {
    let numbers = [request.port, request.gpus as i32].map(|n| n.to_string());
    let mut args = vec![request.model, "--served_model_name", &request.names[0]];
    args.extend(["--host", "0.0.0.0", "--port", &numbers[0], "--tp_size", &numbers[1]]);
    CommandLine::of(&["trtllm-serve"], &args)
}

/// Names of flags as of TensorRT-LLM 1.2, which takes some things from a file only.
fn plan(replica: &PlannedReplica<'_>) -> (Vec<String>, Vec<String>) {
    let mut words = Words::of(&["trtllm-serve", replica.model]);
    words.flag("--tp_size", replica.tensor * replica.attention_copies);
    words.above_one("--pp_size", replica.pipeline);
    words.above_one("--ep_size", replica.expert_ranks);
    words.flag("--max_seq_len", replica.longest);
    words.flag("--max_num_tokens", replica.step_tokens);
    words.flag("--max_batch_size", replica.sequences);
    words.flag("--kv_cache_free_gpu_memory_fraction", 0.9);
    let lines = [
        (replica.attention_copies > 1, &["enable_attention_dp: true"][..]),
        (replica.fp8_cache, &["kv_cache_config:", "  dtype: fp8"]),
        (replica.fp8_weights, &["quant_config:", "  quant_algo: FP8"]),
    ];
    let lines = lines.into_iter().filter(|(there, _)| *there).flat_map(|(_, lines)| lines);
    let lines: Vec<String> = lines.map(|line| (*line).to_owned()).collect();
    words.option(!lines.is_empty(), "--extra_llm_api_options", "options.yaml");
    (words.0, lines)
}
