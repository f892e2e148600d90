//! What a law can scale on, and what it is called in Prometheus.

use crate::policy::Reading;
use std::fmt;

/// A number that metrics show of one model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RivalMetric {
    /// Requests that arrive per second.
    ArrivalsPerSecond,
    /// Prompt tokens that arrive per second.
    PromptTokensPerSecond,
    /// Tokens generated per second.
    OutputTokensPerSecond,
    /// Requests that wait.
    Waiting,
    /// Prompt tokens of the requests that wait.
    WaitingTokens,
    /// Requests that engines work on.
    Running,
    /// Requests that wait or run: what proxies call concurrency.
    WaitingPlusRunning,
    /// Share of the cache that is used, 0 to 1.
    CacheUsed,
    /// 90th percentile of the time to the first token, in seconds.
    FirstTokenP90,
    /// 90th percentile of the time between tokens, in seconds.
    BetweenTokensP90,
    /// Requests that arrive per second over what one replica serves in time, which this says.
    Utilisation {
        /// Requests per second that one replica serves in time.
        replica_per_second: f64,
    },
}

impl RivalMetric {
    /// Every metric that a manifest can name. `Utilisation` is not among them: it is computed from
    /// a capacity that a manifest does not carry.
    pub const NAMED: [Self; 10] = [
        Self::ArrivalsPerSecond,
        Self::PromptTokensPerSecond,
        Self::OutputTokensPerSecond,
        Self::Waiting,
        Self::WaitingTokens,
        Self::Running,
        Self::WaitingPlusRunning,
        Self::CacheUsed,
        Self::FirstTokenP90,
        Self::BetweenTokensP90,
    ];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ArrivalsPerSecond => "arrivals_per_second",
            Self::PromptTokensPerSecond => "prompt_tokens_per_second",
            Self::OutputTokensPerSecond => "output_tokens_per_second",
            Self::Waiting => "waiting",
            Self::WaitingTokens => "waiting_tokens",
            Self::Running => "running",
            Self::WaitingPlusRunning => "waiting_plus_running",
            Self::CacheUsed => "cache_used",
            Self::FirstTokenP90 => "first_token_p90",
            Self::BetweenTokensP90 => "between_tokens_p90",
            Self::Utilisation { .. } => "utilisation",
        }
    }

    /// What exporters call it, with `:` and `-` written as `_`, and without the endings that
    /// Prometheus adds to counters and histograms.
    pub const fn prometheus(self) -> &'static [&'static str] {
        match self {
            Self::ArrivalsPerSecond => &[
                "vllm_request_success",
                "vllm_num_incoming_requests",
                "vllm_requests_per_second",
                "requests_per_second",
                "http_requests",
                "http_requests_per_second",
                "istio_requests",
                "nginx_ingress_controller_requests",
                "inference_model_request",
                "inference_objective_request",
                "inference_extension_request",
                "llm_d_epp_request",
                "request_per_second",
            ],
            Self::PromptTokensPerSecond => {
                &["vllm_prompt_tokens", "sglang_prompt_tokens", "prompt_tokens_per_second"]
            }
            Self::OutputTokensPerSecond => &[
                "vllm_generation_tokens",
                "sglang_generation_tokens",
                "sglang_gen_throughput",
                "vllm_avg_generation_throughput_toks_per_s",
            ],
            Self::Waiting => &[
                "vllm_num_requests_waiting",
                "num_requests_waiting",
                "sglang_num_queue_reqs",
                "tgi_queue_size",
                "inference_pool_average_queue_size",
                "inference_pool_per_pod_queue_size",
                "inference_extension_flow_control_queue_size",
                "llm_d_epp_flow_control_queue_size",
            ],
            Self::WaitingTokens => {
                &["llm_d_epp_inflight_tokens", "inference_extension_flow_control_queue_tokens"]
            }
            Self::Running => &[
                "vllm_num_requests_running",
                "num_requests_running",
                "sglang_num_running_reqs",
                "tgi_batch_current_size",
                "inference_model_running_requests",
                "inference_objective_running_requests",
                "llm_d_epp_request_running",
            ],
            Self::WaitingPlusRunning => {
                &["http_requests_in_flight", "ray_serve_deployment_processing_queries"]
            }
            Self::CacheUsed => &[
                "vllm_kv_cache_usage_perc",
                "vllm_gpu_cache_usage_perc",
                "gpu_cache_usage_perc",
                "kv_cache_usage_perc",
                "sglang_token_usage",
                "inference_pool_average_kv_cache_utilization",
            ],
            Self::FirstTokenP90 => {
                &["vllm_time_to_first_token_seconds", "sglang_time_to_first_token_seconds"]
            }
            Self::BetweenTokensP90 => &[
                "vllm_time_per_output_token_seconds",
                "vllm_inter_token_latency_seconds",
                "vllm_request_time_per_output_token_seconds",
                "sglang_inter_token_latency_seconds",
            ],
            Self::Utilisation { .. } => &[],
        }
    }

    /// The metric that an exporter calls so, whatever its ending and separators.
    pub fn from_prometheus(name: &str) -> Option<Self> {
        let plain = name.to_lowercase().replace([':', '-', '.'], "_");
        let endings = ["_total", "_bucket", "_count", "_sum"];
        let bare = endings.iter().find_map(|ending| plain.strip_suffix(ending)).unwrap_or(&plain);
        let knows = |metric: &Self| {
            metric.prometheus().iter().any(|known| *known == plain || *known == bare)
        };
        Self::NAMED.into_iter().find(knows)
    }

    /// What `sum()` over the replicas that serve would show. A percentile has no sum and stays.
    pub fn sum(self, reading: &Reading) -> Option<f64> {
        let shown = match self {
            Self::ArrivalsPerSecond => reading.arrivals_per_second,
            Self::PromptTokensPerSecond => reading.prompt_tokens_per_second,
            Self::OutputTokensPerSecond => reading.output_tokens_per_second,
            Self::Waiting => reading.waiting,
            Self::WaitingTokens => reading.waiting_tokens,
            Self::Running => reading.running,
            Self::WaitingPlusRunning => {
                reading.waiting.zip(reading.running).map(|(waiting, running)| waiting + running)
            }
            Self::CacheUsed => reading.cache_used.map(|used| used * f64::from(reading.ready)),
            Self::FirstTokenP90 => reading.first_token_p90.map(|time| time.0),
            Self::BetweenTokensP90 => reading.between_tokens_p90.map(|time| time.0),
            Self::Utilisation { replica_per_second } => {
                reading.arrivals_per_second.map(|rate| rate / replica_per_second)
            }
        };
        shown.filter(|value| value.is_finite())
    }

    /// What the mean over the replicas that serve would show; `None` where none serves.
    pub fn mean(self, reading: &Reading) -> Option<f64> {
        match self {
            Self::FirstTokenP90 | Self::BetweenTokensP90 => self.sum(reading),
            _ if reading.ready == 0 => None,
            _ => self.sum(reading).map(|sum| sum / f64::from(reading.ready)),
        }
    }
}

impl fmt::Display for RivalMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::RivalMetric;
    use crate::policy::Reading;

    #[test]
    fn every_listed_name_finds_its_own_metric() {
        for metric in RivalMetric::NAMED {
            assert!(!metric.prometheus().is_empty(), "{metric}");
            for name in metric.prometheus() {
                assert_eq!(RivalMetric::from_prometheus(name), Some(metric), "{name}");
            }
        }
    }

    #[test]
    fn separators_and_endings_do_not_matter() {
        let waiting = Some(RivalMetric::Waiting);
        assert_eq!(RivalMetric::from_prometheus("vllm:num_requests_waiting"), waiting);
        let tokens = Some(RivalMetric::PromptTokensPerSecond);
        assert_eq!(RivalMetric::from_prometheus("vllm:prompt_tokens_total"), tokens);
        assert_eq!(RivalMetric::from_prometheus("container_cpu_usage_seconds_total"), None);
    }

    #[test]
    fn a_share_sums_over_replicas_and_a_percentile_does_not() {
        let reading = Reading { ready: 4, cache_used: Some(0.5), ..Reading::default() };
        assert_eq!(RivalMetric::CacheUsed.sum(&reading), Some(2.0));
        assert_eq!(RivalMetric::CacheUsed.mean(&reading), Some(0.5));
        assert_eq!(RivalMetric::FirstTokenP90.sum(&reading), None);
    }

    #[test]
    fn a_mean_over_no_replica_and_not_a_number_are_unknown() {
        let reading = Reading { waiting: Some(3.0), running: Some(f64::NAN), ..Reading::default() };
        assert_eq!(RivalMetric::Waiting.mean(&reading), None);
        assert_eq!(RivalMetric::Waiting.sum(&reading), Some(3.0));
        assert_eq!(RivalMetric::Running.sum(&reading), None);
        assert_eq!(RivalMetric::WaitingPlusRunning.sum(&reading), None);
    }
}
