//! How many replicas the loop asks for now.

use super::{ExternalObjectives, ExternalSource, RUNNING, Slo};
use crate::http;
use anyhow::{Context, Result, ensure};
use flyball_simulator::rivals::llmd::SloAware;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;

/// Both are on the same machine or one bridge away.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the operator says, by its name.
pub(super) const RECOMMENDED: &str = "flyball_model_recommended_replicas";

/// The number of a namespace's model. `None` where nobody asks for any.
pub(super) async fn desired(
    source: &ExternalSource,
    namespace: &str,
    metric: &str,
) -> Result<Option<u32>> {
    match source {
        ExternalSource::Slo(slo) if metric == RUNNING => running(slo, namespace).await,
        ExternalSource::Slo(slo) => desired_by_slo(slo, namespace).await.map(Some),
        // Prometheus drops the series of a target that is down, and its adapter has nothing to hand on.
        ExternalSource::Recommended { operator } => {
            let page = get(*operator, "/metrics").await;
            Ok(page.ok().and_then(|page| recommended(&page, namespace)))
        }
    }
}

/// A namespace's number on the operator's page. The selector is not looked at: it has one model.
fn recommended(page: &str, namespace: &str) -> Option<u32> {
    let of = format!("target_namespace=\"{namespace}\"");
    let mut lines = page.lines().filter(|line| line.starts_with(RECOMMENDED) && line.contains(&of));
    lines.next()?.rsplit(' ').next()?.parse::<f64>().ok().map(|number| number as u32)
}

/// The formula, with the saturation of this moment and the replicas that there are.
async fn desired_by_slo(plan: &Slo, namespace: &str) -> Result<u32> {
    let mut all = plan.objectives.iter();
    let (_, objectives) = all
        .find(|(of, _)| of == namespace)
        .with_context(|| format!("nobody said what {namespace} aims at"))?;
    let answer = ask(plan, &query(objectives, namespace)).await?;
    let deployment = &plan.deployment;
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{deployment}");
    let status = get_json(plan.api, &path).await?;
    let count = |name: &str| status["status"][name].as_u64().unwrap_or(0) as u32;
    let law = SloAware::default();
    Ok(law.formula(saturation(&answer)?, count("replicas"), count("readyReplicas")))
}

/// Requests that the engines of a namespace work on. Without an engine that was scraped there is no number.
async fn running(plan: &Slo, namespace: &str) -> Result<Option<u32>> {
    let answer =
        ask(plan, &format!("sum(vllm:num_requests_running{{namespace=\"{namespace}\"}})")).await?;
    let value = answer["data"]["result"][0]["value"][1].as_str();
    Ok(value.and_then(|value| value.parse::<f64>().ok()).map(|value| value as u32))
}

async fn ask(plan: &Slo, query: &str) -> Result<Value> {
    let query = utf8_percent_encode(query, NON_ALPHANUMERIC).to_string();
    get_json(plan.prometheus, &format!("/api/v1/query?query={query}")).await
}

/// 90th percentiles over half a minute against the objectives, the worse of the two, at most two,
/// averaged over 45 s: the guide's recording rules in one line.
fn query(plan: &ExternalObjectives, namespace: &str) -> String {
    let share = |metric: &str, objective_ms: f64| {
        let objective = objective_ms / 1e3;
        format!(
            "histogram_quantile(0.9, sum by (le) \
             (rate({metric}_bucket{{namespace=\"{namespace}\"}}[30s]))) / {objective}"
        )
    };
    let first = share("gen_ai_server_time_to_first_token_seconds", plan.first_token_ms);
    let between = share("gen_ai_server_time_per_output_token_seconds", plan.between_tokens_ms);
    format!(
        "avg_over_time(clamp_max(max({first} or \
         label_replace({between}, \"of\", \"between\", \"\", \"\")), 2)[45s:5s])"
    )
}

/// Without traffic there is no percentile, which the guide's rules turn into zero.
fn saturation(answer: &Value) -> Result<f64> {
    ensure!(answer["status"] == "success", "Prometheus: {answer}");
    let Some(first) = answer["data"]["result"].get(0) else { return Ok(0.0) };
    let value: f64 = first["value"][1].as_str().context("a sample without a value")?.parse()?;
    Ok(if value.is_finite() { value } else { 0.0 })
}

async fn get_json(address: SocketAddr, path: &str) -> Result<Value> {
    let body = get(address, path).await?;
    serde_json::from_str(&body).with_context(|| format!("reading {path} of {address}"))
}

/// What is behind a path.
async fn get(address: SocketAddr, path: &str) -> Result<String> {
    let exchange = tokio::time::timeout(PATIENCE, http::get(address, path));
    Ok(exchange.await.context("no answer in time")??.body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn saturation_is_read_and_no_traffic_is_none() {
        let sample = |value: &str| {
            json!({ "status": "success", "data": { "result": [
            { "metric": {}, "value": [1.0, value] }] } })
        };
        assert!((saturation(&sample("0.7")).unwrap() - 0.7).abs() < 1e-12);
        assert!(saturation(&sample("NaN")).unwrap().abs() < 1e-12);
        let none = json!({ "status": "success", "data": { "result": [] } });
        assert!(saturation(&none).unwrap().abs() < 1e-12);
        assert!(saturation(&json!({ "status": "error", "error": "x" })).is_err());
    }

    #[test]
    fn the_recommendation_is_that_of_the_namespace() {
        let line = |of: &str, count: u32| {
            format!("{RECOMMENDED}{{model=\"model\",target_namespace=\"{of}\"}} {count}\n")
        };
        let page = format!("# TYPE {RECOMMENDED} gauge\n{}{}", line("a", 3), line("b", 11));
        assert_eq!(recommended(&page, "b"), Some(11));
        assert_eq!(recommended(&page, "c"), None);
    }
}
