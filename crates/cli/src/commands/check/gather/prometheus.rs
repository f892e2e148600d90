//! Finds Prometheus and asks it whether it is ready.
//!
//! In the cluster it is reached through the API server's service proxy, so the same check works
//! from a laptop and from a pod.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Service, ServicePort};
use kube::api::{Api, ListParams, PartialObjectMeta};
use kube::{Client, ResourceExt};
use serde::Deserialize;

use super::{Questions, said, within};
use crate::cluster;
use crate::commands::check::facts::{Found, Prometheus};

/// What charts put beside Prometheus under names that start alike.
const NOT_PROMETHEUS: &[&str] = &[
    "node-exporter",
    "alertmanager",
    "pushgateway",
    "kube-state-metrics",
    "operator",
    "adapter",
    "blackbox",
    "webhook",
];

/// Several may be there (one per shard, headless and not). More than this are not asked.
const ASKED_AT_MOST: usize = 3;

pub(super) async fn find(client: &Client, all: &Questions<'_>) -> Found<Prometheus> {
    if let Some(url) = all.prometheus {
        let place = url.to_string().trim_end_matches('/').to_owned();
        return match cluster::anonymous(url.clone(), all.limit).await {
            Ok(plain) => {
                let ready = ready(&plain, all.limit, "").await;
                Found::Known(Prometheus { place, ready })
            }
            Err(failure) => Found::Failed(failure.why.unwrap_or(failure.what)),
        };
    }
    let services = match services(client, all.limit).await {
        Found::Known(services) => services,
        other => return other.missed().unwrap_or(Found::NotAsked),
    };
    let mut first = None;
    for service in services.iter().take(ASKED_AT_MOST) {
        let (namespace, name) = (service.namespace().unwrap_or_default(), service.name_any());
        let port = port(service);
        let proxy = format!("/api/v1/namespaces/{namespace}/services/http:{name}:{port}/proxy");
        let place = format!("{namespace}/{name}");
        let found = Prometheus { place, ready: ready(client, all.limit, &proxy).await };
        if matches!(found.ready, Found::Known(Ok(_))) {
            return Found::Known(found);
        }
        first.get_or_insert(found);
    }
    first.map_or(Found::Absent, Found::Known)
}

/// By label first; by name if nobody has the label.
async fn services(client: &Client, limit: Duration) -> Found<Vec<Service>> {
    let api: Api<Service> = Api::all(client.clone());
    let labelled = ListParams::default().labels("app.kubernetes.io/name=prometheus").limit(50);
    match within(limit, api.list(&labelled)).await {
        Found::Known(list) if !list.items.is_empty() => return Found::Known(list.items),
        Found::Known(_) => {}
        other => return other.missed().unwrap_or(Found::NotAsked),
    }
    let mut named = Vec::new();
    let mut page = ListParams::default().limit(super::PAGE);
    loop {
        let list = match within(limit, api.list_metadata(&page)).await {
            Found::Known(list) => list,
            other => return other.missed().unwrap_or(Found::NotAsked),
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
    for item in named.iter().take(ASKED_AT_MOST) {
        let api: Api<Service> =
            Api::namespaced(client.clone(), &item.namespace().unwrap_or_default());
        match within(limit, api.get(&item.name_any())).await {
            Found::Known(service) => services.push(service),
            Found::Absent => {}
            other => return other.missed().unwrap_or(Found::NotAsked),
        }
    }
    Found::Known(services)
}

fn is_prometheus(name: &str) -> bool {
    name.starts_with("prometheus") && !NOT_PROMETHEUS.iter().any(|other| name.contains(other))
}

/// The port people browse: by its usual names, by its usual number, else the first.
fn port(service: &Service) -> i32 {
    let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_deref()).unwrap_or_default();
    let named = |port: &&ServicePort| {
        matches!(port.name.as_deref(), Some("http-web" | "web" | "http")) || port.port == 9090
    };
    ports.iter().find(named).or(ports.first()).map_or(9090, |port| port.port)
}

async fn ready(
    client: &Client,
    limit: Duration,
    base: &str,
) -> Found<Result<Option<String>, String>> {
    let get = |path: &str| http::Request::get(format!("{base}{path}")).body(Vec::new());
    let Ok(request) = get("/-/ready") else {
        return Found::Failed("its address makes no sense".to_owned());
    };
    match tokio::time::timeout(limit, client.request_text(request)).await {
        Ok(Ok(_)) => {}
        Ok(Err(kube::Error::Api(status))) if ![401, 403].contains(&status.code) => {
            return Found::Known(Err(said(status.code, &status.message)));
        }
        Ok(Err(error)) => return super::missed(&error),
        Err(_) => return Found::TimedOut(limit),
    }
    // Ready is the answer; the version is a courtesy.
    let Ok(request) = get("/api/v1/status/buildinfo") else {
        return Found::Known(Ok(None));
    };
    let info = within(limit, client.request::<BuildInfo>(request)).await;
    Found::Known(Ok(info.known().map(|info| info.data.version.clone())))
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
        for name in ["prometheus-node-exporter", "prometheus-alertmanager", "grafana"] {
            assert!(!is_prometheus(name), "{name}");
        }
    }
}
