//! `flyball trace record`: traffic of vLLM, as a Prometheus saw it.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use flyball_simulator::traffic::prometheus::{self, Answered, KIND, Recording};
use kube::Client;
use kube::client::Body;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::answer::TraceReport;
use crate::cluster::{anonymous, innermost};
use crate::flags::{time, time_above_zero};
use crate::output::{Exit, Failure, Printer, duration};

/// Names of series stay readable in logs.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_');

/// Record traffic of vLLM from a Prometheus: rates and lengths, to inspect and replay
///
/// Asks for finished requests per second and for histograms of tokens. Prompts and answers are
/// not in there, only how long they are. Times without samples become gaps.
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Address of the Prometheus, as in http://localhost:9090
    #[arg(long, value_name = "URL", env = "FLYBALL_TRACE_PROMETHEUS", hide_env_values = true)]
    prometheus: http::Uri,

    /// How far back, as in 90m, 24h or 14d
    #[arg(long, value_name = "TIME", env = "FLYBALL_TRACE_SINCE", hide_env_values = true)]
    #[arg(default_value = "24h", value_parser = span)]
    since: Duration,

    /// Length of a window; at least twice the time between two scrapes
    #[arg(long, value_name = "TIME", env = "FLYBALL_TRACE_STEP", hide_env_values = true)]
    #[arg(default_value = "1m", value_parser = time_above_zero)]
    step: Duration,

    /// Only this model, as vLLM calls it (label model_name); all of them if not set
    #[arg(long, value_name = "NAME", env = "FLYBALL_TRACE_MODEL", hide_env_values = true)]
    model: Option<String>,

    /// File to write; one that exists is replaced
    #[arg(long, value_name = "FILE", env = "FLYBALL_TRACE_OUTPUT", hide_env_values = true)]
    output: PathBuf,
}

/// Prometheus answers with at most 11,000 points of a series, so that more are asked in pieces.
const POINTS: u64 = 10_000;

pub(super) async fn run(
    args: &RecordArgs,
    limit: Duration,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let step = args.step.as_secs();
    if step == 0 || args.step.subsec_nanos() != 0 {
        return Err(Failure::new(Exit::Usage, "--step must be whole seconds")
            .hint("--step 1m fits scrapes every 30 s or more often"));
    }
    let client = anonymous(args.prometheus.clone(), limit).await?;
    // Whole steps, so that two recordings have the same windows.
    let end = jiff::Timestamp::now().as_second() as u64 / step * step;
    let begin = end.saturating_sub(args.since.as_secs().max(2 * step)) + step;
    let mut answers = Vec::new();
    for (about, query) in prometheus::queries(args.model.as_deref(), step) {
        let mut from = begin;
        while from <= end {
            let to = end.min(from + (POINTS - 1) * step);
            let query_answer = ask(&client, &query, [from, to, step]);
            let response = match tokio::time::timeout(limit, query_answer).await {
                Ok(answer) => answer.map_err(|failure| failure.at(place(&args.prometheus)))?,
                Err(_) => {
                    return Err(Failure::new(Exit::Unknown, NO_ANSWER)
                        .at(place(&args.prometheus))
                        .because(format!("no answer in {}", duration(limit)))
                        .hint("--timeout gives it longer, --step makes the question smaller"));
                }
            };
            answers.push(Answered { about, query: query.clone(), response });
            from = to + step;
        }
    }
    let model = args.model.clone();
    let recording = Recording { kind: KIND.to_owned(), model, step_seconds: step as f64, answers };
    let file = args.output.display().to_string();
    let loaded = prometheus::traffic(&place(&args.prometheus), &recording).map_err(|error| {
        let failure = Failure::new(Exit::Unknown, "nothing to record");
        super::advised(failure.at(error.file).because(error.what), error.hint)
    })?;
    let text = serde_json::to_string(&recording).unwrap_or_default();
    std::fs::write(&args.output, text + "\n").map_err(|error| {
        Failure::new(Exit::Usage, "the file cannot be written")
            .at(&file)
            .because(error.to_string())
            .hint("name a file in a folder that exists with --output")
    })?;
    let mut report = TraceReport::new(loaded);
    report.remarks.push(format!("written to {file}; to inspect it: flyball trace inspect {file}"));
    Ok(printer.answer(&report))
}

const NO_ANSWER: &str = "cannot query Prometheus";

fn place(url: &http::Uri) -> String {
    url.to_string().trim_end_matches('/').to_owned()
}

/// One range query: from, to and step in seconds.
async fn ask(client: &Client, query: &str, [from, to, step]: [u64; 3]) -> Result<Value, Failure> {
    let failed = |why: String| {
        Failure::new(Exit::Unknown, NO_ANSWER)
            .because(why)
            .hint("--prometheus is its address, as a browser shows it: http://localhost:9090")
    };
    let query = utf8_percent_encode(query, ENCODED);
    let path = format!("/api/v1/query_range?query={query}&start={from}&end={to}&step={step}");
    let request = http::Request::get(path).body(Body::empty());
    let request = request.map_err(|error| failed(error.to_string()))?;
    let response = client.send(request).await.map_err(|error| failed(innermost(&error)))?;
    let code = response.status().as_u16();
    let body = response.into_body().collect_bytes().await;
    let body = body.map_err(|error| failed(innermost(&error)))?;
    // It explains a refusal in JSON too; anything else that answers does not.
    let value: Option<Value> = serde_json::from_slice(&body).ok();
    match value {
        Some(value) if value.get("status").is_some() => match value["error"].as_str() {
            Some(error) => Err(failed(format!("it says: {error}"))),
            None => Ok(value),
        },
        _ => Err(failed(format!("what answers there is not Prometheus (HTTP {code})"))),
    }
}

/// `14d`, or what other times are.
fn span(text: &str) -> Result<Duration, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
    match days.map_or_else(|| time(text), |days| Ok(Duration::from_secs(u64::from(days) * 86_400)))
    {
        Ok(Duration::ZERO) => Err("nothing came in no time at all".to_owned()),
        Ok(span) => Ok(span),
        Err(_) => Err("a time is written as 90m, 24h or 14d".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read() {
        assert_eq!(span("14d"), Ok(Duration::from_secs(14 * 86_400)));
        assert_eq!(span("90m"), Ok(Duration::from_secs(5400)));
        assert!(span("0").is_err() && span("d").is_err() && span("soon").is_err());
    }
}
