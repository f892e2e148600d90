//! What engines say, asked of Prometheus: one question for all pods of the cluster.
//!
//! It gives the samples themselves, each with the time at which it was scraped, and not what Prometheus makes of
//! them: how old a value is then stands beside it, where an instant query would show a dead target's last word for
//! five minutes as if it were new, and rates are told in one place. A pod is known by the labels `namespace` and
//! `pod`, which a PodMonitor and annotation discovery both set.

use super::demand::Signals;
use super::in_flight::InFlightCounts;
use flyball_core::units::Timestamp;
use flyball_engines::{Engine, Series};
use flyball_estimator::reading::{CacheUsed, EngineCounts, EngineReading};
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
    #[error("Prometheus is unreachable: {0}")]
    Away(String),
    /// It answered something else.
    #[error("cannot parse Prometheus' answer: {0}")]
    Unreadable(String),
}

/// A Prometheus.
#[derive(Clone)]
pub struct Prometheus {
    client: Client,
}

/// Two scrapes and more, where targets are scraped every minute.
const LOOKBACK: &str = "2m";

fn names() -> impl Iterator<Item = &'static str> {
    Engine::ALL.into_iter().flat_map(|engine| engine.facts().series).map(|(name, _)| *name)
}

/// The one question.
fn query() -> String {
    let names: Vec<&str> = names().collect();
    format!("{{__name__=~\"{}\"}}[{LOOKBACK}]", names.join("|"))
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

    /// What all engines say.
    pub async fn ask(&self) -> Result<BTreeMap<(String, String), EngineReading>, AskError> {
        let mut pods: BTreeMap<(String, String), Samples> = BTreeMap::new();
        for row in self.rows(&query()).await? {
            let (Some(namespace), Some(pod)) = (&row.metric.namespace, &row.metric.pod) else {
                continue;
            };
            if let Some((engine, series)) = Engine::of_series(&row.metric.name) {
                let samples = pods.entry((namespace.clone(), pod.clone())).or_default();
                samples.kind = engine;
                samples.add(series, &row);
            }
        }
        let engines = pods.into_iter().filter_map(|(pod, samples)| Some((pod, samples.engine()?)));
        Ok(engines.collect())
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
        let response = tokio::time::timeout(TIMEOUT, self.client.request_text(request)).await;
        response
            .map_err(|_| AskError::Away(format!("no answer in {} s", TIMEOUT.as_secs())))?
            .map_err(|error| AskError::Away(error.to_string()))
    }
}

impl std::fmt::Debug for Prometheus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Prometheus")
    }
}

/// The samples of one pod, by the time at which they were scraped.
#[derive(Debug, Default)]
struct Samples {
    counts: BTreeMap<Timestamp, EngineCounts>,
    running: Gauge,
    waiting: Gauge,
    cache_used: Gauge,
    cache_tokens: Option<f64>,
    kind: Engine,
}

/// A gauge at the last scrape: the sum of its series, and how many there are.
#[derive(Clone, Copy, Debug, Default)]
struct Gauge {
    at: Timestamp,
    sum: f64,
    series: u32,
}

impl Gauge {
    fn add(&mut self, row: &Row) {
        let Some((at, value)) = row.samples().last() else { return };
        if at > self.at {
            *self = Self { at, sum: 0.0, series: 0 };
        }
        if at == self.at {
            self.sum += value;
            self.series += 1;
        }
    }

    fn sum(self) -> Option<f64> {
        (self.series > 0).then_some(self.sum)
    }

    fn mean(self) -> Option<f64> {
        (self.series > 0).then(|| self.sum / f64::from(self.series))
    }
}

impl Samples {
    /// Adds a series. An engine of several ranks has several of each, which are added up.
    fn add(&mut self, series: Series, row: &Row) {
        match series {
            Series::Running => self.running.add(row),
            Series::Waiting => self.waiting.add(row),
            Series::CacheUsed => self.cache_used.add(row),
            Series::CacheTokens => {
                self.cache_tokens = row.samples().last().map(|(_, value)| value);
            }
            Series::CacheBlocks => self.cache_tokens = row.metric.cache_tokens(),
            _ => {
                for (at, value) in row.samples() {
                    let counts = self.counts.entry(at).or_insert(EngineCounts::UNKNOWN);
                    let count = match series {
                        Series::PromptTokens => &mut counts.prompt_tokens,
                        Series::CachedTokens => &mut counts.cached_tokens,
                        Series::OutputTokens => &mut counts.output_tokens,
                        Series::Answered => &mut counts.answered,
                        Series::PacedTokens => &mut counts.paced_tokens,
                        _ => &mut counts.paced_seconds,
                    };
                    *count = if count.is_nan() { value } else { *count + value };
                }
            }
        }
    }

    /// The engine; `None` if nothing was scraped.
    fn engine(self) -> Option<EngineReading> {
        let mut engine: Option<EngineReading> = None;
        for (at, mut counts) in self.counts {
            if self.kind.facts().paces_all_tokens {
                counts.paced_tokens = counts.output_tokens;
            }
            match &mut engine {
                Some(engine) => engine.counts.add(at, Timestamp::default(), counts),
                None => engine = Some(EngineReading::counted(at, counts)),
            }
        }
        let of_gauges = self.running.sum().map(|_| self.running.at);
        let engine =
            engine.or_else(|| Some(EngineReading::counted(of_gauges?, EngineCounts::UNKNOWN)))?;
        Some(EngineReading {
            running: self.running.sum(),
            waiting: self.waiting.sum(),
            cache_used: match self.cache_used.mean() {
                Some(share) => CacheUsed::Share(share),
                None if !self.kind.facts().shows_cache => CacheUsed::Untold,
                None => CacheUsed::Missing,
            },
            cache_tokens: self.cache_tokens,
            ..engine
        })
    }
}

/// Puts what engines said beside what gateways said.
pub fn add(signals: &mut Signals, engines: BTreeMap<(String, String), EngineReading>) {
    for ((namespace, pod), engine) in &engines {
        if let (Some(running), Some(at)) = (engine.running, engine.at()) {
            let inside = running + engine.waiting.unwrap_or(0.0);
            signals.in_flight.in_pod(namespace, pod, inside, at);
        }
    }
    signals.in_flight.request(InFlightCounts::Answered);
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
    values: Vec<(f64, String)>,
}

impl Row {
    /// Samples that can be read, each with its time. What is no number stays none.
    fn samples(&self) -> impl DoubleEndedIterator<Item = (Timestamp, f64)> {
        self.values.iter().filter_map(|(at, value)| Some((from_seconds(*at)?, value.parse().ok()?)))
    }
}

#[derive(Deserialize)]
struct Labels {
    #[serde(rename = "__name__")]
    name: String,
    namespace: Option<String>,
    pod: Option<String>,
    num_gpu_blocks: Option<String>,
    block_size: Option<String>,
}

impl Labels {
    fn cache_tokens(&self) -> Option<f64> {
        let number = |text: &Option<String>| text.as_ref()?.parse::<f64>().ok();
        let tokens = number(&self.num_gpu_blocks)? * number(&self.block_size)?;
        (tokens.is_finite() && tokens >= 1.0).then_some(tokens)
    }
}

fn from_seconds(seconds: f64) -> Option<Timestamp> {
    (seconds.is_finite() && seconds >= 0.0).then(|| Timestamp::from_micros((seconds * 1e6) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What Prometheus would answer, by pod.
    fn engine(rows: &[serde_json::Value]) -> Option<EngineReading> {
        let mut samples = Samples::default();
        for row in rows {
            let row: Row = serde_json::from_value(row.clone()).unwrap();
            let (kind, series) = Engine::of_series(&row.metric.name).unwrap();
            samples.kind = kind;
            samples.add(series, &row);
        }
        samples.engine()
    }

    fn row(name: &str, values: &[(f64, &str)]) -> serde_json::Value {
        json!({ "metric": { "__name__": name, "namespace": "a", "pod": "x" }, "values": values })
    }

    #[test]
    fn samples_of_one_scrape_belong_together_and_ranks_are_added_up() {
        let engine = engine(&[
            row("vllm:prompt_tokens_total", &[(100.0, "1000"), (130.0, "4000")]),
            row("vllm:prompt_tokens_total", &[(100.0, "10"), (130.0, "40")]),
            row("vllm:num_requests_running", &[(100.0, "9"), (130.0, "2")]),
            row("vllm:num_requests_running", &[(100.0, "9"), (130.0, "1")]),
        ])
        .unwrap();
        let (at, counts) = engine.counts.last().unwrap();
        assert_eq!((at, counts.prompt_tokens), (Timestamp::from_millis(130_000), 4_040.0));
        assert!(counts.output_tokens.is_nan());
        assert_eq!((engine.running, engine.waiting), (Some(3.0), None));
        assert_eq!(engine.cache_used, CacheUsed::Missing);
    }

    #[test]
    fn a_number_that_is_none_stays_none() {
        let engine = engine(&[row("vllm:num_requests_running", &[(100.0, "NaN")])]).unwrap();
        assert!(engine.running.is_some_and(f64::is_nan), "judged later, where it becomes missing");
        assert_eq!(engine.at(), Some(Timestamp::from_millis(100_000)));
    }

    #[test]
    fn an_engine_that_cannot_tell_of_its_cache_lacks_nothing() {
        let engine = engine(&[
            row("llamacpp:tokens_predicted_total", &[(100.0, "30")]),
            row("llamacpp:tokens_predicted_seconds_total", &[(100.0, "1.5")]),
        ])
        .unwrap();
        assert_eq!(engine.cache_used, CacheUsed::Untold);
        let (_, counts) = engine.counts.last().unwrap();
        assert_eq!((counts.paced_tokens, counts.paced_seconds), (30.0, 1.5));
    }

    #[test]
    fn the_size_of_a_cache_stands_in_labels() {
        let info = json!({
            "metric": { "__name__": "vllm:cache_config_info", "num_gpu_blocks": "100", "block_size": "16" },
            "values": [(100.0, "1")],
        });
        let running = row("vllm:num_requests_running", &[(100.0, "1")]);
        assert_eq!(engine(&[info, running]).unwrap().cache_tokens, Some(1_600.0));
    }

    #[test]
    fn one_question_asks_for_everything_once() {
        let query = query();
        for name in names() {
            assert_eq!(query.matches(name).count(), 1, "{name}");
        }
    }
}
