//! Finds Prometheus and asks it for its version.
//!
//! In the cluster it is reached through the API server's service proxy, so the same check works
//! from a laptop and from a pod.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Service, ServicePort};
use kube::api::{Api, ListParams, PartialObjectMeta};
use kube::client::Body;
use kube::{Client, ResourceExt};
use serde::Deserialize;
use tokio::time::Instant;

use super::{Questions, problem_text, within};
use crate::cluster;
use crate::commands::check::facts::{Found, Prometheus, Reply};

/// What charts put beside Prometheus under names that start alike.
const NOT_PROMETHEUS: &[&str] = &[
    "adapter",
    "alertmanager",
    "blackbox",
    "exporter",
    "grafana",
    "kube-state-metrics",
    "operator",
    "pushgateway",
    "thanos",
    "webhook",
];

/// Several may be there (one per shard, headless and not). More than this are not asked.
const MAX_QUERIED: usize = 3;

pub(super) async fn find(client: &Client, all: &Questions<'_>) -> Found<Prometheus> {
    let deadline = Instant::now() + all.limit;
    let left = || deadline.saturating_duration_since(Instant::now());
    if let Some(url) = all.prometheus {
        let place = url.to_string().trim_end_matches('/').to_owned();
        return match cluster::anonymous(url.clone(), all.limit).await {
            Ok(plain) => {
                let reply = in_time(ask(&plain, ""), left(), all.limit).await;
                Found::Known(Prometheus { place, reply })
            }
            Err(failure) => Found::Failed(failure.why.unwrap_or(failure.what)),
        };
    }
    let services = match super::capped(all.limit, services(client, all.limit)).await {
        Found::Known(services) => services,
        other => return other.missed().unwrap_or(Found::Skipped),
    };
    // All at once: a silent one does not use up the time of the others.
    let queries = services.iter().take(MAX_QUERIED).map(|service| async {
        let place = format!("{}/{}", service.namespace().unwrap_or_default(), service.name_any());
        let reply = in_time(ask(client, &proxy(service)), left(), all.limit).await;
        Prometheus { place, reply }
    });
    let found = futures::future::join_all(queries).await;
    found
        .into_iter()
        .min_by_key(|candidate| rank(&candidate.reply))
        .map_or(Found::Absent, Found::Known)
}

/// Which of several answers counts: the one that is ready, else one that might be for all we know.
/// Among equals the first.
fn rank(reply: &Found<Reply>) -> u8 {
    match reply {
        Found::Known(Reply::Ready(_)) => 0,
        Found::Known(Reply::NoOne(_)) => 2,
        Found::Known(Reply::Other) => 3,
        _ => 1,
    }
}

/// By label first; by name if nobody has the label.
async fn services(client: &Client, limit: Duration) -> Found<Vec<Service>> {
    let api: Api<Service> = Api::all(client.clone());
    let labelled = ListParams::default().labels("app.kubernetes.io/name=prometheus").limit(50);
    match within(limit, api.list(&labelled)).await {
        Found::Known(mut list) if !list.items.is_empty() => {
            // The label is a promise; still, what is named as a neighbour is asked last.
            list.items.sort_by_key(|service| is_neighbour(&service.name_any()));
            return Found::Known(list.items);
        }
        Found::Known(_) => {}
        other => return other.missed().unwrap_or(Found::Skipped),
    }
    let mut named = Vec::new();
    let mut page = ListParams::default().limit(super::PAGE);
    loop {
        let list = match within(limit, api.list_metadata(&page)).await {
            Found::Known(list) => list,
            other => return other.missed().unwrap_or(Found::Skipped),
        };
        named.extend(list.items.iter().filter(|item| is_prometheus(&item.name_any())).cloned());
        match list.metadata.continue_ {
            Some(token) if !token.is_empty() => page = page.continue_token(&token),
            _ => break,
        }
    }
    whole(client, limit, &named).await
}

/// Names are listed without the rest; the few that matter are read whole for their port.
async fn whole(
    client: &Client,
    limit: Duration,
    named: &[PartialObjectMeta<Service>],
) -> Found<Vec<Service>> {
    let mut services = Vec::new();
    for item in named.iter().take(MAX_QUERIED) {
        let api: Api<Service> =
            Api::namespaced(client.clone(), &item.namespace().unwrap_or_default());
        match within(limit, api.get(&item.name_any())).await {
            Found::Known(service) => services.push(service),
            Found::Absent => {}
            other => return other.missed().unwrap_or(Found::Skipped),
        }
    }
    Found::Known(services)
}

fn is_prometheus(name: &str) -> bool {
    name.starts_with("prometheus") && !is_neighbour(name)
}

fn is_neighbour(name: &str) -> bool {
    NOT_PROMETHEUS.iter().any(|other| name.contains(other))
}

/// The way to the service through the API server.
fn proxy(service: &Service) -> String {
    let (namespace, name) = (service.namespace().unwrap_or_default(), service.name_any());
    let port = port(service);
    let number = port.map_or(9090, |port| port.port);
    let scheme = if port.is_some_and(is_encrypted) { "https" } else { "http" };
    format!("/api/v1/namespaces/{namespace}/services/{scheme}:{name}:{number}/proxy")
}

/// The port people browse: by its usual names, by its usual number, else the first.
fn port(service: &Service) -> Option<&ServicePort> {
    let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_deref()).unwrap_or_default();
    let usual = ["http-web", "web", "http", "https-web", "https"];
    let named = |port: &&ServicePort| {
        port.name.as_deref().is_some_and(|name| usual.contains(&name)) || port.port == 9090
    };
    ports.iter().find(named).or(ports.first())
}

fn is_encrypted(port: &ServicePort) -> bool {
    let mentions =
        |text: &Option<String>| text.as_deref().is_some_and(|text| text.contains("https"));
    mentions(&port.name) || mentions(&port.app_protocol)
}

/// One question is enough: Prometheus answers its API only when it is ready to serve queries, and
/// nothing else answers this one with a version. A login page or a dashboard would also answer
/// `/-/ready` with something.
async fn ask(client: &Client, base: &str) -> Found<Reply> {
    let request = http::Request::get(format!("{base}/api/v1/status/buildinfo"));
    let Ok(request) = request.body(Body::empty()) else {
        return Found::Failed("its address makes no sense".to_owned());
    };
    let response = match client.send(request).await {
        Ok(response) => response,
        Err(error) => return super::missed(&error),
    };
    let code = response.status().as_u16();
    match response.into_body().collect_bytes().await {
        Ok(body) => read(code, &body),
        Err(error) => super::missed(&error),
    }
}

async fn in_time(
    question: impl Future<Output = Found<Reply>>,
    left: Duration,
    limit: Duration,
) -> Found<Reply> {
    tokio::time::timeout(left, question).await.unwrap_or(Found::TimedOut(limit))
}

fn read(code: u16, body: &[u8]) -> Found<Reply> {
    let version = || {
        let info: BuildInfo = serde_json::from_slice(body).ok()?;
        Some(info.data.version).filter(|version| !version.is_empty())
    };
    let words = words(body);
    match code {
        200 => Found::Known(version().map_or(Reply::Other, Reply::Ready)),
        // It has no such page, so it is something else.
        404 => Found::Known(Reply::Other),
        // It may be behind a login, and then nobody knows.
        300..=399 => Found::Failed(format!("it sends us elsewhere (HTTP {code})")),
        401 => Found::Failed("it requires credentials (HTTP 401)".to_owned()),
        403 => Found::Denied(super::refusal(&words)),
        _ if super::no_one_there(code, &words) => {
            Found::Known(Reply::NoOne(problem_text(code, &words)))
        }
        _ => Found::Failed(problem_text(code, &words)),
    }
}

/// The API server wraps its words in a Status; Prometheus and proxies just say them. A page of
/// HTML has none that help.
fn words(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    match serde_json::from_slice::<Refusal>(body) {
        Ok(status) => status.message,
        Err(_) if text.trim_start().starts_with('<') => String::new(),
        Err(_) => text.into_owned(),
    }
}

#[derive(Deserialize)]
struct Refusal {
    message: String,
}

#[derive(Deserialize)]
struct BuildInfo {
    data: BuildData,
}

#[derive(Deserialize)]
struct BuildData {
    version: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_prometheus_are_told_apart() {
        for name in ["prometheus", "prometheus-server", "prometheus-operated", "prometheus-k8s"] {
            assert!(is_prometheus(name), "{name}");
        }
        for name in [
            "grafana",
            "prometheus-adapter",
            "prometheus-alertmanager",
            "prometheus-blackbox-exporter",
            "prometheus-grafana",
            "prometheus-kube-state-metrics",
            "prometheus-node-exporter",
            "prometheus-operator",
            "prometheus-pushgateway",
            "prometheus-thanos-query",
        ] {
            assert!(!is_prometheus(name), "{name}");
        }
    }

    #[test]
    fn only_a_version_is_prometheus() {
        let info = br#"{"status":"success","data":{"version":"3.5.0"}}"#;
        assert_eq!(read(200, info), Found::Known(Reply::Ready("3.5.0".to_owned())));
        for other in [&b"<html>Grafana</html>"[..], b"{}", b"", br#"{"data":{"version":""}}"#] {
            assert_eq!(read(200, other), Found::Known(Reply::Other));
        }
        assert_eq!(read(404, b"404 page not found"), Found::Known(Reply::Other));
        // A redirect with a page of its own is still no answer.
        for code in [302, 400, 401, 403, 429, 500, 502, 503, 504] {
            assert!(read(code, info).known().is_none(), "{code}");
            assert!(read(code, b"<html>").known().is_none(), "{code}");
        }
        let nobody = br#"{"kind":"Status","message":"no endpoints available for service \"p\""}"#;
        assert!(matches!(read(503, nobody), Found::Known(Reply::NoOne(_))));
        assert_eq!(read(500, b"<html>"), Found::Failed("HTTP 500".to_owned()));
    }

    #[test]
    fn what_might_be_ready_goes_before_what_is_not() {
        let no_one = Found::Known(Reply::NoOne(String::new()));
        let silent = Found::TimedOut(Duration::from_secs(5));
        let ready = Found::Known(Reply::Ready("3".to_owned()));
        assert!(rank(&ready) < rank(&silent));
        assert!(rank(&silent) < rank(&no_one));
        assert!(rank(&no_one) < rank(&Found::Known(Reply::Other)));
    }

    #[test]
    fn the_way_there_follows_the_port() {
        let way = |ports: serde_json::Value| {
            let service = serde_json::json!({
                "metadata": {"namespace": "m", "name": "p"}, "spec": {"ports": ports},
            });
            let way = proxy(&serde_json::from_value(service).unwrap());
            way.trim_start_matches("/api/v1/namespaces/m/services/").replace("/proxy", "")
        };
        assert_eq!(way(serde_json::json!([])), "http:p:9090");
        let two = serde_json::json!([{"name": "grpc", "port": 1}, {"name": "web", "port": 80}]);
        assert_eq!(way(two), "http:p:80");
        assert_eq!(way(serde_json::json!([{"name": "https", "port": 443}])), "https:p:443");
        let declared = serde_json::json!([{"name": "web", "port": 443, "appProtocol": "https"}]);
        assert_eq!(way(declared), "https:p:443");
    }
}
