//! What a Prometheus saw of vLLM: its answers to range queries become rates and lengths.
//!
//! [`queries`] says what to ask, [`Recording`] is a file with all answers, and [`read`] takes such
//! a file or the single answer that somebody saved with curl. Samples that are missing or not a
//! number are gaps. vLLM counts a request when it is finished, so that rates lag arrivals by the
//! time that requests take; and how uneven arrivals are within a step is not known, so that they
//! are taken as independent of each other.
//!
//! Not here: the call itself. Start reading at [`Recording`].

use std::collections::BTreeMap;

use flyball_core::quantile::median;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lengths::{LengthQuantiles, Lengths};
use super::load_error::{LoadError, LoadTally};
use super::loaded::{Form, Loaded};
use super::windows::{self, Point};

/// All answers about one model, as one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recording {
    /// [`KIND`].
    pub kind: String,
    /// The model that was asked for; nothing if all were.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default)]
    pub model: Option<String>,
    /// Seconds between two samples.
    pub step_seconds: f64,
    /// What was asked and what came back.
    pub answers: Vec<Answered>,
}

/// One question and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// What it is about.
    pub about: About,
    /// The question, in `PromQL`.
    pub query: String,
    /// The answer, as it came.
    pub response: Value,
}

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum About {
    /// Requests per second.
    Requests,
    /// Prompts by length, as counts up to each bound.
    PromptTokens,
    /// Answers by length, likewise.
    OutputTokens,
}

/// The mark of such a file.
pub const KIND: &str = "TrafficRecording";

/// What to ask about a model (or all, together), with steps of this many seconds.
pub fn queries(model: Option<&str>, step_seconds: u64) -> Vec<(About, String)> {
    let quoted = |name: &str| name.replace('\\', "\\\\").replace('"', "\\\"");
    let only = model.map(|name| format!("{{model_name=\"{}\"}}", quoted(name)));
    let only = only.unwrap_or_default();
    let within = format!("[{step_seconds}s]");
    let lengths = |of: &str| {
        format!("sum by (model_name, le) (increase(vllm:request_{of}_tokens_bucket{only}{within}))")
    };
    vec![
        (
            About::Requests,
            format!("sum by (model_name) (rate(vllm:request_success_total{only}{within}))"),
        ),
        (About::PromptTokens, lengths("prompt")),
        (About::OutputTokens, lengths("generation")),
    ]
}

/// Whether the text begins like an answer of Prometheus or a file of several. Keys may stand in
/// any order, so that all of the beginning is looked at.
pub(crate) fn is_answer(text: &str) -> bool {
    let begin: String = text.chars().filter(|c| !c.is_whitespace()).take(400).collect();
    let kind = format!("\"kind\":\"{KIND}\"");
    ["\"status\":\"error\"", "\"resultType\":", &kind].iter().any(|mark| begin.contains(mark))
}

/// Reads a recording, or one answer. Of a single answer the name of the metric says what it is;
/// without a name it is taken as requests per second.
pub fn read(file: &str, text: &str) -> Result<Loaded, LoadError> {
    let broken = |error: serde_json::Error| {
        LoadError::new(file, format!("not JSON: {error}"))
            .line(error.line() as u64)
            .hint("save the whole answer of /api/v1/query_range")
    };
    let value: Value = serde_json::from_str(text).map_err(broken)?;
    if value["kind"] == KIND {
        let recording: Recording = serde_json::from_value(value).map_err(|error| {
            LoadError::new(file, format!("not a recording: {error}"))
                .hint("record it again: flyball trace record")
        })?;
        return traffic(file, &recording);
    }
    let answers = single(file, value)?;
    traffic(file, &Recording { kind: KIND.to_owned(), model: None, step_seconds: 0.0, answers })
}

/// One saved answer, with what its metrics are about.
fn single(file: &str, response: Value) -> Result<Vec<Answered>, LoadError> {
    let series = matrix(file, &response)?;
    let name = series.first().and_then(|one| one.metric.get("__name__")).cloned();
    let name = name.unwrap_or_default();
    let about = match name.as_str() {
        name if name.contains("prompt_tokens_bucket") => About::PromptTokens,
        name if name.contains("generation_tokens_bucket") => About::OutputTokens,
        _ => About::Requests,
    };
    Ok(vec![Answered { about, query: name, response }])
}

/// Turns answers into rates and lengths.
pub fn traffic(file: &str, recording: &Recording) -> Result<Loaded, LoadError> {
    let mut tally = LoadTally::of(file);
    let mut rates: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    let mut buckets: BTreeMap<String, [BTreeMap<u64, f64>; 2]> = BTreeMap::new();
    for answered in &recording.answers {
        for series in matrix(file, &answered.response)? {
            let model = series.metric.get("model_name").cloned();
            let model = model.or_else(|| recording.model.clone()).unwrap_or_default();
            let place = match answered.about {
                About::Requests => {
                    let points = rates.entry(model).or_default();
                    points.extend(points_of(&series, recording.step_seconds, &mut tally));
                    continue;
                }
                About::PromptTokens => 0,
                About::OutputTokens => 1,
            };
            let bound = series.metric.get("le").and_then(|le| le.parse::<f64>().ok());
            let Some(bound) = bound else {
                tally.notes.push("a histogram without le is left out".to_owned());
                continue;
            };
            let known = series.values.iter().filter_map(|sample| sample.value());
            // Bits of positive numbers sort as the numbers do, +Inf last.
            let count = buckets.entry(model).or_default()[place].entry(bound.to_bits());
            *count.or_default() += grown(&series, known);
        }
    }
    if rates.values().all(Vec::is_empty) {
        let what = "no samples of requests in it";
        let hint = "query a Prometheus that scrapes vLLM, with a step of at least twice the scrape \
                    interval and an existing model name";
        return Err(LoadError::new(file, what).hint(hint));
    }
    let (zero, mut parts) = windows::parts(file, rates)?;
    for part in &mut parts {
        let name = part.model.clone().unwrap_or_default();
        part.lengths = buckets.get(&name).and_then(lengths);
    }
    let start = (zero >= 1e9).then_some(zero);
    Ok(Loaded { form: Form::Prometheus, start, parts, tally })
}

fn lengths([prompt, output]: &[BTreeMap<u64, f64>; 2]) -> Option<Lengths> {
    let table = |counts: &BTreeMap<u64, f64>| {
        let buckets = counts.iter().map(|(bound, count)| (f64::from_bits(*bound), *count));
        LengthQuantiles::from_buckets(&buckets.collect::<Vec<_>>())
    };
    let (prompt, output) = (table(prompt), table(output));
    (!prompt.is_empty() && !output.is_empty()).then_some(Lengths::Tables { prompt, output })
}

/// One series of a matrix.
#[derive(Deserialize)]
struct Series {
    #[serde(default)]
    metric: BTreeMap<String, String>,
    #[serde(default)]
    values: Vec<Sample>,
}

/// A time and a number as a word, which may be `NaN` or `+Inf`.
#[derive(Deserialize)]
struct Sample(f64, String);

impl Sample {
    fn value(&self) -> Option<f64> {
        self.1.parse::<f64>().ok().filter(|value| value.is_finite())
    }
}

impl Series {
    /// Whether the values are a counter, which only grows, and not yet a rate.
    fn is_counter(&self) -> bool {
        let name = self.metric.get("__name__").map(String::as_str).unwrap_or_default();
        ["_total", "_count", "_bucket"].iter().any(|end| name.ends_with(end))
    }
}

fn matrix(file: &str, response: &Value) -> Result<Vec<Series>, LoadError> {
    let hint = "use /api/v1/query_range with query, start, end and step";
    if response["status"] != "success" {
        let reason = response["error"].as_str().unwrap_or("it does not say why");
        let what = format!("Prometheus did not answer the query: {reason}");
        return Err(LoadError::new(file, what).hint(hint));
    }
    let kind = response["data"]["resultType"].as_str().unwrap_or("nothing");
    if kind != "matrix" {
        let what = format!("expected a matrix, found a {kind}");
        return Err(LoadError::new(file, what).hint(hint));
    }
    serde_json::from_value(response["data"]["result"].clone())
        .map_err(|error| LoadError::new(file, format!("the matrix is not one: {error}")).hint(hint))
}

/// Requests per second, window by window. A sample tells of the step before it.
fn points_of(series: &Series, step: f64, tally: &mut LoadTally) -> Vec<Point> {
    let point = |at: f64, rate: Option<f64>| Point {
        at,
        client: String::new(),
        rate,
        variation: None,
        prompt: None,
        output: None,
    };
    let step = if step > 0.0 { step } else { usual_step(series) };
    let mut points = Vec::with_capacity(series.values.len());
    let mut before: Option<(f64, f64)> = None;
    for sample in &series.values {
        let value = sample.value().filter(|value| *value >= 0.0);
        let at = sample.0 - step;
        let rate = if series.is_counter() {
            let last = before.filter(|(time, _)| sample.0 - time < step * 1.5);
            before = value.map(|value| (sample.0, value));
            // A counter that falls started again from zero.
            value.zip(last).map(|(now, (time, was))| {
                (if now < was { now } else { now - was }) / (sample.0 - time)
            })
        } else {
            value
        };
        tally.read += usize::from(rate.is_some());
        points.push(point(at, rate));
    }
    points
}

fn usual_step(series: &Series) -> f64 {
    let mut apart: Vec<f64> = series.values.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    apart.sort_by(f64::total_cmp);
    median(&apart).unwrap_or(60.0)
}

/// What a series of a histogram adds up to: increases are summed, a counter's are taken first.
fn grown(series: &Series, known: impl Iterator<Item = f64>) -> f64 {
    if !series.is_counter() {
        return known.filter(|value| *value > 0.0).sum();
    }
    let mut last = None;
    known
        .map(|now| {
            let was = last.replace(now);
            was.map_or(0.0, |was| if now < was { now } else { now - was })
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::load::{self, Traffic};
    use serde_json::json;

    fn response(result: &Value) -> Value {
        json!({"status": "success", "data": {"resultType": "matrix", "result": result}})
    }

    fn rates(loaded: &Loaded) -> &crate::traffic::TrafficRates {
        let Traffic::Rates(rates) = &loaded.parts[0].traffic else { panic!("rates") };
        rates
    }

    #[test]
    fn a_recording_becomes_rates_with_gaps_and_lengths() {
        let bucket = |le: &str, counts: [&str; 2]| {
            json!({"metric": {"model_name": "m", "le": le},
                   "values": [[1_700_000_060, counts[0]], [1_700_000_120, counts[1]]]})
        };
        let values = json!([
            [1_700_000_060, "2.5"],
            [1_700_000_120, "NaN"],
            [1_700_000_180, "3"],
            [1_700_000_360, "4"]
        ]);
        let answered = |about, result: &Value| Answered {
            about,
            query: String::new(),
            response: response(result),
        };
        let lengths = json!([
            bucket("100", ["1", "1"]),
            bucket("+Inf", ["4", "4"]),
            bucket("200", ["4", "4"])
        ]);
        let recording = Recording {
            kind: KIND.to_owned(),
            model: Some("m".to_owned()),
            step_seconds: 60.0,
            answers: vec![
                answered(
                    About::Requests,
                    &json!([{"metric": {"model_name": "m"}, "values": values}]),
                ),
                answered(About::PromptTokens, &lengths),
                answered(About::OutputTokens, &lengths),
            ],
        };
        let text = serde_json::to_string(&recording).unwrap();
        let loaded = load::read("r.json", text.as_bytes()).unwrap();
        assert_eq!((loaded.form, loaded.start), (Form::Prometheus, Some(1_700_000_000.0)));
        assert_eq!(loaded.parts[0].model.as_deref(), Some("m"));
        let rates = rates(&loaded);
        assert_eq!((rates.windows(), rates.total(0), rates.total(5)), (6, 2.5, 4.0));
        assert_eq!(rates.gaps, [1..2, 3..5]);
        // By hand: a quarter up to 100, the rest up to 200.
        let lengths = loaded.parts[0].lengths.as_ref().unwrap();
        assert_eq!(lengths.quantiles(0.25), (100.0, 100.0));
        assert_eq!(lengths.quantiles(0.625), (150.0, 150.0));
    }

    #[test]
    fn a_saved_counter_becomes_rates_and_restarts_are_no_loss() {
        let result = json!([{"metric": {"__name__": "vllm:request_success_total"},
            "values": [[0, "10"], [60, "70"], [120, "30"], [300, "90"], [360, "150"]]}]);
        let loaded = load::read("r.json", response(&result).to_string().as_bytes()).unwrap();
        let rates = rates(&loaded);
        // 60 in a minute, then a restart and 30; three minutes are missing; 60 again.
        assert_eq!([1, 2, 6].map(|window| rates.total(window)), [1.0, 0.5, 1.0]);
        assert_eq!(rates.gaps, [0..1, 3..6]);
    }

    #[test]
    fn answers_that_say_nothing_are_refused_with_a_hint() {
        let wrong = |value: Value| {
            let error = load::read("r.json", value.to_string().as_bytes()).unwrap_err();
            assert!(!error.hint.is_empty());
            error.what
        };
        let refused = json!({"status": "error", "errorType": "bad_data", "error": "parse error"});
        assert_eq!(wrong(refused), "Prometheus did not answer the query: parse error");
        let vector = json!({"status": "success", "data": {"resultType": "vector", "result": []}});
        assert_eq!(wrong(vector), "expected a matrix, found a vector");
        assert_eq!(wrong(response(&json!([]))), "no samples of requests in it");
    }

    #[test]
    fn names_are_quoted_in_queries() {
        let all = queries(Some("a\"b"), 60);
        assert_eq!(
            all[0].1,
            "sum by (model_name) (rate(vllm:request_success_total{model_name=\"a\\\"b\"}[60s]))"
        );
        assert!(queries(None, 60)[1].1.contains("prompt_tokens_bucket[60s]"));
    }
}
