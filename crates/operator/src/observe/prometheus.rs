//! What engines say, asked of Prometheus: one question per signal for all pods of the cluster.
//!
//! Questions about every model apart would be as many as there are models. A pod is known by the labels
//! `namespace` and `pod`, which a PodMonitor and annotation discovery both set. How old a value is comes
//! from the sample's own time: an instant query would show a dead target's last word for five minutes
//! as if it were new.

use super::demand::{Engine, Signals};
use super::in_flight::Counts;
use flyball_core::units::Timestamp;
use http::{Request, Uri};
use kube::{Client, Config};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// For one question.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What Prometheus did not answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It cannot be reached, or did not answer in time.
    #[error("Prometheus cannot be reached: {0}")]
    Away(String),
    /// It answered something else.
    #[error("Prometheus answered what cannot be read: {0}")]
    Unreadable(String),
}

/// A Prometheus.
#[derive(Clone)]
pub struct Prometheus {
    client: Client,
}

/// One signal: the names it has in each engine, and whether it counts up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    /// Prompt tokens read.
    PromptRate,
    /// Tokens written.
    OutputRate,
    /// Requests worked on.
    Running,
    /// Requests that wait.
    Waiting,
    /// Share of the cache in use.
    CacheUsed,
    /// Mean tokens of a prompt.
    PromptMean,
    /// Mean tokens of an answer.
    OutputMean,
    /// When it was scraped.
    ScrapedAt,
}

impl Series {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::PromptRate,
        Self::OutputRate,
        Self::Running,
        Self::Waiting,
        Self::CacheUsed,
        Self::PromptMean,
        Self::OutputMean,
        Self::ScrapedAt,
    ];

    /// Names in vLLM, SGLang and llama.cpp, in this order.
    const fn names(self) -> &'static str {
        match self {
            Self::PromptRate => {
                "vllm:prompt_tokens_total|sglang:prompt_tokens_total|llamacpp:prompt_tokens_total"
            }
            Self::OutputRate => {
                "vllm:generation_tokens_total|sglang:generation_tokens_total|llamacpp:tokens_predicted_total"
            }
            Self::Running | Self::ScrapedAt => {
                "vllm:num_requests_running|sglang:num_running_reqs|llamacpp:requests_processing"
            }
            Self::Waiting => {
                "vllm:num_requests_waiting|sglang:num_queue_reqs|llamacpp:requests_deferred"
            }
            Self::CacheUsed => {
                "vllm:kv_cache_usage_perc|sglang:token_usage|llamacpp:kv_cache_usage_ratio"
            }
            Self::PromptMean => "vllm:request_prompt_tokens",
            Self::OutputMean => "vllm:request_generation_tokens",
        }
    }

    /// The question.
    pub fn query(self) -> String {
        let names = self.names();
        match self {
            Self::PromptRate | Self::OutputRate => {
                format!("sum by (namespace, pod) (rate({{__name__=~\"{names}\"}}[1m]))")
            }
            Self::Running | Self::Waiting => {
                format!("sum by (namespace, pod) ({{__name__=~\"{names}\"}})")
            }
            Self::CacheUsed => format!("avg by (namespace, pod) ({{__name__=~\"{names}\"}})"),
            Self::ScrapedAt => {
                format!("min by (namespace, pod) (timestamp({{__name__=~\"{names}\"}}))")
            }
            Self::PromptMean | Self::OutputMean => format!(
                "sum by (namespace, pod) (rate({names}_sum[5m])) \
                 / sum by (namespace, pod) (rate({names}_count[5m]))"
            ),
        }
    }

    fn put(self, engine: &mut Engine, value: f64) {
        match self {
            Self::PromptRate => engine.prompt_rate = Some(value),
            Self::OutputRate => engine.output_rate = Some(value),
            Self::Running => engine.running = Some(value),
            Self::Waiting => engine.waiting = Some(value),
            Self::CacheUsed => engine.cache_used = Some(value),
            Self::PromptMean => engine.prompt_mean = Some(value),
            Self::OutputMean => engine.output_mean = Some(value),
            Self::ScrapedAt => engine.at = from_seconds(value).unwrap_or_default(),
        }
    }
}

impl Prometheus {
    /// One at this address.
    pub fn new(url: &str) -> Result<Self, AskError> {
        let url: Uri = url
            .parse()
            .map_err(|error: http::uri::InvalidUri| AskError::Away(error.to_string()))?;
        let mut config = Config::new(url);
        config.connect_timeout = Some(TIMEOUT);
        config.read_timeout = Some(TIMEOUT);
        let client = Client::try_from(config).map_err(|error| AskError::Away(error.to_string()))?;
        Ok(Self { client })
    }

    /// What all engines say. An engine whose scrape time is not known is left out: nobody could say
    /// how old its word is.
    pub async fn ask(&self) -> Result<BTreeMap<(String, String), Engine>, AskError> {
        let mut engines: BTreeMap<(String, String), Engine> = BTreeMap::new();
        for series in Series::ALL {
            for row in self.rows(&series.query()).await? {
                let (Some(namespace), Some(pod)) = (row.metric.namespace, row.metric.pod) else {
                    continue;
                };
                if let Ok(value) = row.value.1.parse::<f64>() {
                    series.put(engines.entry((namespace, pod)).or_default(), value);
                }
            }
        }
        engines.retain(|_, engine| engine.at > Timestamp::default());
        Ok(engines)
    }

    async fn rows(&self, query: &str) -> Result<Vec<Row>, AskError> {
        // The first question after a pause may meet a connection that Prometheus has closed meanwhile.
        let text = match self.text(query).await {
            Ok(text) => text,
            Err(_) => self.text(query).await?,
        };
        let answer: Answer = serde_json::from_str(&text)
            .map_err(|error| AskError::Unreadable(format!("{error} in {text:.200}")))?;
        Ok(answer.data.result)
    }

    async fn text(&self, query: &str) -> Result<String, AskError> {
        let query = utf8_percent_encode(query, NON_ALPHANUMERIC);
        let request = Request::get(format!("/api/v1/query?query={query}"))
            .body(Vec::new())
            .map_err(|error| AskError::Unreadable(error.to_string()))?;
        let asked = tokio::time::timeout(TIMEOUT, self.client.request_text(request)).await;
        asked
            .map_err(|_| AskError::Away(format!("no answer in {} s", TIMEOUT.as_secs())))?
            .map_err(|error| AskError::Away(error.to_string()))
    }
}

impl std::fmt::Debug for Prometheus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Prometheus")
    }
}

/// Puts what engines said beside what gateways said.
pub fn add(signals: &mut Signals, engines: BTreeMap<(String, String), Engine>) {
    for ((namespace, pod), engine) in &engines {
        if let Some(running) = engine.running {
            let inside = running + engine.waiting.unwrap_or(0.0);
            signals.in_flight.in_pod(namespace, pod, inside, engine.at);
        }
    }
    signals.in_flight.asked(Counts::Told);
    signals.engines = engines;
}

#[derive(Deserialize)]
struct Answer {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    result: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    metric: Labels,
    value: (f64, String),
}

#[derive(Deserialize)]
struct Labels {
    namespace: Option<String>,
    pod: Option<String>,
}

fn from_seconds(seconds: f64) -> Option<Timestamp> {
    (seconds.is_finite() && seconds >= 0.0).then(|| Timestamp::from_micros((seconds * 1e6) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_none_stays_none() {
        let mut engine = Engine::default();
        Series::Running.put(&mut engine, f64::NAN);
        assert!(engine.running.is_some_and(f64::is_nan), "judged later, where it becomes missing");
        Series::ScrapedAt.put(&mut engine, f64::NAN);
        assert_eq!(engine.at, Timestamp::default());
    }

    #[test]
    fn every_series_has_a_question_by_pod() {
        for series in Series::ALL {
            assert!(series.query().contains("by (namespace, pod)"), "{series:?}");
        }
    }
}
