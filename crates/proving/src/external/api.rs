//! What the API server asks, and the answers.

use super::{ExternalPlan, signal};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use serde_json::{Value, json};
use std::convert::Infallible;

const GROUP_VERSION: &str = "external.metrics.k8s.io/v1beta1";

/// Answers one request.
pub(super) async fn answer(
    plan: &ExternalPlan,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let metrics = plan.source.metrics();
    let (status, body) = match path_of(request.uri().path(), metrics) {
        MetricsPath::Resources => (StatusCode::OK, resources(metrics)),
        MetricsPath::Value(namespace, metric) => {
            match signal::desired(&plan.source, namespace, metric).await {
                Ok(desired) => {
                    let now = jiff::Timestamp::now().to_string();
                    (StatusCode::OK, values(metric, desired, &now))
                }
                // The controller shows it in the HPA's conditions, and changes nothing.
                Err(error) => (StatusCode::SERVICE_UNAVAILABLE, failure(&format!("{error:#}"))),
            }
        }
        MetricsPath::Other => (StatusCode::NOT_FOUND, failure("there is nothing here")),
    };
    let body = Full::new(Bytes::from(body.to_string()));
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    Ok(response)
}

#[derive(Debug, PartialEq, Eq)]
enum MetricsPath<'a> {
    Resources,
    /// A metric, of a namespace.
    Value(&'a str, &'a str),
    Other,
}

fn path_of<'a>(path: &'a str, metrics: &[&str]) -> MetricsPath<'a> {
    let rest = path.strip_prefix("/apis/").and_then(|rest| rest.strip_prefix(GROUP_VERSION));
    let Some(rest) = rest else { return MetricsPath::Other };
    let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    match parts[..] {
        [] => MetricsPath::Resources,
        ["namespaces", namespace, name] if metrics.contains(&name) => {
            MetricsPath::Value(namespace, name)
        }
        _ => MetricsPath::Other,
    }
}

fn resources(metrics: &[&str]) -> Value {
    let resource = |metric: &&str| {
        json!({
            "name": metric, "singularName": "", "namespaced": true,
            "kind": "ExternalMetricValueList", "verbs": ["get"],
        })
    };
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": GROUP_VERSION,
        "resources": metrics.iter().map(resource).collect::<Vec<_>>(),
    })
}

/// One item, or none where nobody asks for anything: as Prometheus' adapter answers.
fn values(metric: &str, desired: Option<u32>, now: &str) -> Value {
    let item = |desired: u32| {
        json!({
            "metricName": metric, "metricLabels": {}, "timestamp": now,
            "value": desired.to_string(),
        })
    };
    json!({
        "kind": "ExternalMetricValueList", "apiVersion": GROUP_VERSION, "metadata": {},
        "items": desired.map(item).into_iter().collect::<Vec<_>>(),
    })
}

fn failure(words: &str) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": words })
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &[&str] = &["wanted-replicas", "running-requests"];

    #[test]
    fn paths_are_told_apart() {
        let all = "/apis/external.metrics.k8s.io/v1beta1";
        assert_eq!(path_of(all, METRICS), MetricsPath::Resources);
        let one = format!("{all}/namespaces/ramp/wanted-replicas");
        assert_eq!(path_of(&one, METRICS), MetricsPath::Value("ramp", "wanted-replicas"));
        let other = format!("{all}/namespaces/ramp/other");
        assert_eq!(path_of(&other, METRICS), MetricsPath::Other);
        assert_eq!(path_of("/openapi/v2", METRICS), MetricsPath::Other);
    }

    #[test]
    fn a_value_is_a_quantity_in_text_and_no_number_is_no_item() {
        let items = |desired| values("wanted", desired, "2026-11-15T00:00:00Z")["items"].clone();
        assert_eq!(items(Some(5))[0]["value"], "5");
        assert_eq!(items(None), json!([]));
    }
}
