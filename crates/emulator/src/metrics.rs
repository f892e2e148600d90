//! The metrics page, under the names of the engine that is emulated.
//!
//! The names are the engine's and not ours, so they are not in `telemetry`: what reads a real engine must
//! be able to read this one. vLLM's page is written as vLLM writes it; of others, the series that their table
//! names. In the older text form, which vLLM serves too; the newer one does not allow its names of counters.

use crate::engine::{Counts, EmulatedState, Histogram};
use flyball_engines::{Engine, Series};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// What `Content-Type` the page has.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The page.
pub(crate) fn page(
    engine: Engine,
    model: &str,
    (block_tokens, blocks): (u32, u32),
    at: &EmulatedState,
    sums: &Counts,
) -> String {
    let model = model.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ");
    match engine {
        Engine::Vllm => of_vllm(model, (block_tokens, blocks), at, sums),
        other => {
            let tokens = u64::from(block_tokens) * u64::from(blocks);
            by_table(other, &model, tokens, at, sums)
        }
    }
}

/// The series of an engine's table, each under its newest name.
fn by_table(
    engine: Engine,
    model: &str,
    cache_tokens: u64,
    at: &EmulatedState,
    sums: &Counts,
) -> String {
    let (mut text, mut written) = (String::new(), BTreeSet::new());
    let between = &sums.between_tokens;
    for (name, series) in engine.facts().series {
        let value = match series {
            Series::PromptTokens => sums.prompt_tokens as f64,
            Series::CachedTokens => sums.hit_tokens as f64,
            Series::OutputTokens => sums.generated_tokens as f64,
            Series::Answered => (sums.stopped + sums.full) as f64,
            Series::PacedTokens => between.buckets.iter().sum::<u64>() as f64,
            Series::PacedSeconds => between.sum,
            Series::Running => f64::from(at.running),
            Series::Waiting => f64::from(at.waiting),
            Series::CacheUsed if engine.facts().shows_cache => at.used_share,
            Series::CacheTokens => cache_tokens as f64,
            Series::CacheUsed | Series::CacheBlocks => continue,
        };
        if written.insert(*series) {
            let _ =
                writeln!(text, "# TYPE {name} untyped\n{name}{{model_name=\"{model}\"}} {value}");
        }
    }
    text
}

fn of_vllm(
    model: String,
    (block_tokens, blocks): (u32, u32),
    at: &EmulatedState,
    sums: &Counts,
) -> String {
    let mut page = Page { text: String::with_capacity(16 * 1024), model };
    let p = &mut page;
    p.gauge("num_requests_running", "Requests in the batch.", f64::from(at.running));
    p.gauge("num_requests_waiting", "Requests that wait.", f64::from(at.waiting));
    p.gauge("kv_cache_usage_perc", "Share of the cache in use; 1 is all.", at.used_share);
    let counters = [
        ("prefix_cache_queries", "Prompt tokens queried in the cache.", sums.queried_tokens),
        ("prefix_cache_hits", "Prompt tokens found in the cache.", sums.hit_tokens),
        ("prompt_tokens", "Prompt tokens processed.", sums.prompt_tokens),
        ("generation_tokens", "Tokens generated.", sums.generated_tokens),
        ("num_preemptions", "Requests that lost their blocks.", sums.preemptions),
    ];
    for (name, help, value) in counters {
        p.head(name, "_total", help, "counter");
        p.line(&format!("{name}_total"), "", value as f64);
    }
    p.head("request_success", "_total", "Requests that ended, by reason.", "counter");
    for (reason, value) in [("stop", sums.stopped), ("length", sums.full), ("abort", sums.aborted)]
    {
        let label = format!(",finished_reason=\"{reason}\"");
        p.line("request_success_total", &label, value as f64);
    }
    p.histogram("time_to_first_token_seconds", "Time to the first token.", &sums.first_token);
    p.histogram("inter_token_latency_seconds", "Time between tokens.", &sums.between_tokens);
    p.histogram("e2e_request_latency_seconds", "Time of whole requests.", &sums.end_to_end);
    p.histogram("request_queue_time_seconds", "Time before the first step.", &sums.queued);
    p.histogram("request_prefill_time_seconds", "From there to the first token.", &sums.prefill);
    p.histogram("request_decode_time_seconds", "From there to the last.", &sums.decode);
    p.head("cache_config_info", "", "Size of the cache.", "gauge");
    let label = format!(",block_size=\"{block_tokens}\",num_gpu_blocks=\"{blocks}\"");
    p.line("cache_config_info", &label, 1.0);
    page.text
}

struct Page {
    text: String,
    /// Ready to stand between quotes.
    model: String,
}

// Writing into a string cannot fail.
impl Page {
    fn head(&mut self, name: &str, suffix: &str, help: &str, kind: &str) {
        let _ = writeln!(self.text, "# HELP vllm:{name}{suffix} {help}");
        let _ = writeln!(self.text, "# TYPE vllm:{name}{suffix} {kind}");
    }

    fn line(&mut self, name: &str, labels: &str, value: f64) {
        let model = &self.model;
        let _ = writeln!(
            self.text,
            "vllm:{name}{{engine=\"0\",model_name=\"{model}\"{labels}}} {value}"
        );
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, "", help, "gauge");
        self.line(name, "", value);
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, "", help, "histogram");
        let bucket = format!("{name}_bucket");
        let mut below = 0;
        for (index, count) in histogram.buckets.iter().enumerate() {
            below += count;
            let bound = histogram.bounds.get(index).map_or("+Inf".to_owned(), |b| format!("{b:?}"));
            self.line(&bucket, &format!(",le=\"{bound}\""), below as f64);
        }
        self.line(&format!("{name}_sum"), "", histogram.sum);
        self.line(&format!("{name}_count"), "", below as f64);
    }
}
