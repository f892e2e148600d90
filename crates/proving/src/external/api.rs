//! What the API server asks, and the answers.

use super::{Plan, signal};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use serde_json::{Value, json};
use std::convert::Infallible;

const GROUP_VERSION: &str = "external.metrics.k8s.io/v1beta1";

/// The metric's name, as an HPA asks for it.
const METRIC: &str = "wanted-replicas";

/// Answers one request.
pub(super) async fn answer(
    plan: &Plan,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, body) = match asked(request.uri().path()) {
        Asked::Resources => (StatusCode::OK, resources()),
        Asked::Value(namespace) => match signal::wanted(plan, namespace).await {
            Ok(wanted) => (StatusCode::OK, values(wanted, &jiff::Timestamp::now().to_string())),
            // The controller shows it in the HPA's conditions, and changes nothing.
            Err(error) => (StatusCode::SERVICE_UNAVAILABLE, failure(&format!("{error:#}"))),
        },
        Asked::Other => (StatusCode::NOT_FOUND, failure("there is nothing here")),
    };
    let body = Full::new(Bytes::from(body.to_string()));
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    Ok(response)
}

#[derive(Debug, PartialEq, Eq)]
enum Asked<'a> {
    Resources,
    /// The metric, of a namespace.
    Value(&'a str),
    Other,
}

fn asked(path: &str) -> Asked<'_> {
    let rest = path.strip_prefix("/apis/").and_then(|rest| rest.strip_prefix(GROUP_VERSION));
    let Some(rest) = rest else { return Asked::Other };
    let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    match parts[..] {
        [] => Asked::Resources,
        ["namespaces", namespace, METRIC] => Asked::Value(namespace),
        _ => Asked::Other,
    }
}

fn resources() -> Value {
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": GROUP_VERSION,
        "resources": [{
            "name": METRIC, "singularName": "", "namespaced": true,
            "kind": "ExternalMetricValueList", "verbs": ["get"],
        }],
    })
}

fn values(wanted: u32, now: &str) -> Value {
    json!({
        "kind": "ExternalMetricValueList", "apiVersion": GROUP_VERSION, "metadata": {},
        "items": [{
            "metricName": METRIC, "metricLabels": {}, "timestamp": now,
            "value": wanted.to_string(),
        }],
    })
}

fn failure(words: &str) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": words })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_apart() {
        let all = "/apis/external.metrics.k8s.io/v1beta1";
        assert_eq!(asked(all), Asked::Resources);
        let one = format!("{all}/namespaces/ramp/wanted-replicas");
        assert_eq!(asked(&one), Asked::Value("ramp"));
        assert_eq!(asked(&format!("{all}/namespaces/ramp/other")), Asked::Other);
        assert_eq!(asked("/openapi/v2"), Asked::Other);
    }

    #[test]
    fn a_value_is_a_quantity_in_text() {
        assert_eq!(values(5, "2026-11-15T00:00:00Z")["items"][0]["value"], "5");
    }
}
