//! The account of a failed story: pods, events and logs of its namespace.

use anyhow::Result;
use k8s_openapi::api::core::v1::{ContainerStatus, Event, Pod};
use kube::api::{Api, ListParams, LogParams};
use kube::{Client, ResourceExt};

/// More than any story's pods write, and small enough to hold.
const LOG_BYTES: i64 = 10_000_000;

/// Prints everything a reader needs to find the cause; whatever cannot be read is said so.
#[expect(clippy::print_stderr, reason = "the account of a failed test is for the terminal")]
pub(crate) async fn print(client: &Client, namespace: &str) {
    eprintln!("---- account of namespace {namespace}");
    match pods(client, namespace).await {
        Ok(pods) => {
            for pod in &pods {
                eprintln!("pod {}", describe(pod));
            }
        }
        Err(error) => eprintln!("pods unknown: {error:#}"),
    }
    match events(client, namespace).await {
        Ok(lines) => lines.iter().for_each(|line| eprintln!("event {line}")),
        Err(error) => eprintln!("events unknown: {error:#}"),
    }
    match log_lines(client, namespace).await {
        Ok(lines) => lines.iter().for_each(|line| eprintln!("log {line}")),
        Err(error) => eprintln!("logs unknown: {error:#}"),
    }
    eprintln!("---- end of account");
}

/// The log of every container of the namespace, each line with its pod's name.
pub(crate) async fn log_lines(client: &Client, namespace: &str) -> Result<Vec<String>> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let mut lines = Vec::new();
    for pod in pods(client, namespace).await? {
        let name = pod.name_any();
        for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
            let params = LogParams {
                container: Some(container.name.clone()),
                limit_bytes: Some(LOG_BYTES),
                ..LogParams::default()
            };
            match api.logs(&name, &params).await {
                Ok(text) => lines.extend(text.lines().map(|line| format!("{name}: {line}"))),
                Err(kube::Error::Api(answer)) => {
                    lines.push(format!("{name}: no log: {}", answer.message));
                }
                Err(error) => lines.push(format!("{name}: no log: {error}")),
            }
        }
    }
    Ok(lines)
}

async fn pods(client: &Client, namespace: &str) -> Result<Vec<Pod>> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    Ok(api.list(&ListParams::default()).await?.items)
}

async fn events(client: &Client, namespace: &str) -> Result<Vec<String>> {
    let api: Api<Event> = Api::namespaced(client.clone(), namespace);
    let events = api.list(&ListParams::default()).await?.items;
    Ok(events
        .iter()
        .map(|event| {
            format!(
                "{} {}/{}: {}",
                event.reason.as_deref().unwrap_or("–"),
                event.involved_object.kind.as_deref().unwrap_or("–"),
                event.involved_object.name.as_deref().unwrap_or("–"),
                event.message.as_deref().unwrap_or("–"),
            )
        })
        .collect())
}

fn describe(pod: &Pod) -> String {
    let status = pod.status.as_ref();
    let phase = status.and_then(|s| s.phase.as_deref()).unwrap_or("unknown");
    let node = pod.spec.as_ref().and_then(|s| s.node_name.as_deref()).unwrap_or("no node");
    let containers: Vec<String> = status
        .and_then(|s| s.container_statuses.as_ref())
        .into_iter()
        .flatten()
        .map(container)
        .collect();
    format!("{} {phase} on {node} {}", pod.name_any(), containers.join(", "))
}

fn container(status: &ContainerStatus) -> String {
    let state = status.state.as_ref();
    let waiting = state.and_then(|s| s.waiting.as_ref()).and_then(|w| w.reason.clone());
    let ended = state
        .and_then(|s| s.terminated.as_ref())
        .map(|t| format!("ended {} {}", t.exit_code, t.reason.clone().unwrap_or_default()));
    format!("{}: {}", status.name, waiting.or(ended).unwrap_or_else(|| "running".into()))
}
