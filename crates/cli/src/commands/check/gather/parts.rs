//! Finds Kueue, JobSet and the resource metrics: their APIs, and who answers for them.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

use super::{Questions, capped, when, within};
use crate::commands::check::codes::Code;
use crate::commands::check::facts::{Controller, Found, Metrics, Part};

const KUEUE: &str = "kueue.x-k8s.io";
const JOBSET: &str = "jobset.x-k8s.io";
const METRICS: &str = "metrics.k8s.io";

/// All that the API server says about an API it holds for unavailable. Something in front of it
/// would not say it in these letters alone.
const UNAVAILABLE: &str = "service unavailable";

type Groups = BTreeMap<String, Vec<String>>;

pub(super) async fn find(client: &Client, all: &Questions<'_>) -> (Part, Part, Metrics) {
    let runs = |code| all.selection.runs(code);
    let (kueue, jobset, metrics) =
        (runs(Code::Kueue), runs(Code::JobSet), runs(Code::ResourceMetrics));
    let groups = when(kueue || jobset || metrics, groups(client, all.limit));
    let (groups, kueue, jobset, metrics) = futures::join!(
        groups,
        when(kueue, capped(all.limit, controller(client, all.limit, "kueue"))),
        when(jobset, capped(all.limit, controller(client, all.limit, "jobset"))),
        when(metrics, metrics_answer(client, all.limit)),
    );
    (
        Part { served: served(&groups, KUEUE), controller: kueue },
        Part { served: served(&groups, JOBSET), controller: jobset },
        Metrics { served: served(&groups, METRICS), answers: metrics },
    )
}

async fn groups(client: &Client, limit: Duration) -> Found<Groups> {
    let list = within(limit, client.list_api_groups()).await;
    match list {
        Found::Known(list) => Found::Known(
            list.groups
                .into_iter()
                .map(|group| (group.name, group.versions.into_iter().map(|v| v.version).collect()))
                .collect(),
        ),
        other => other.missed().unwrap_or(Found::Skipped),
    }
}

fn served(groups: &Found<Groups>, name: &str) -> Found<Vec<String>> {
    match groups {
        Found::Known(groups) => groups.get(name).cloned().map_or(Found::Absent, Found::Known),
        other => other.missed().unwrap_or(Found::Skipped),
    }
}

/// The Deployment of a controller, in whatever namespace: by the name its own manifests give it,
/// else by the label its chart gives it. The server does the filtering.
async fn controller(client: &Client, limit: Duration, part: &str) -> Found<Controller> {
    let api: Api<Deployment> = Api::all(client.clone());
    let selections = [
        ListParams::default().fields(&format!("metadata.name={part}-controller-manager")).limit(10),
        ListParams::default().labels(&format!("app.kubernetes.io/name={part}")).limit(10),
    ];
    let mut first = None;
    for selection in selections {
        match within(limit, api.list(&selection)).await {
            Found::Known(list) => {
                let found = list.items.iter().filter(|item| is_controller(item));
                let found: Vec<Controller> = found.map(read_controller).collect();
                // Of several, the one that works is the one that counts.
                if let Some(works) = found.iter().find(|controller| controller.available) {
                    return Found::Known(works.clone());
                }
                first = first.or(found.into_iter().next());
            }
            Found::Denied(words) => return well_known(client, limit, part, words).await,
            other => return other.missed().unwrap_or(Found::Skipped),
        }
    }
    first.map_or(Found::Absent, Found::Known)
}

/// Who may not list everywhere may still be allowed to read the one place of the own manifests.
/// If it is not there, it may be elsewhere: that stays unknown, with the first refusal.
async fn well_known(
    client: &Client,
    limit: Duration,
    part: &str,
    words: String,
) -> Found<Controller> {
    let api: Api<Deployment> = Api::namespaced(client.clone(), &format!("{part}-system"));
    match within(limit, api.get(&format!("{part}-controller-manager"))).await {
        Found::Known(deployment) => Found::Known(read_controller(&deployment)),
        _ => Found::Denied(words),
    }
}

/// Charts label their dashboards and helpers alike; the controller says what it is in its name.
fn is_controller(deployment: &Deployment) -> bool {
    deployment.name_any().contains("controller")
}

fn read_controller(deployment: &Deployment) -> Controller {
    let namespace = deployment.namespace().unwrap_or_default();
    let conditions = deployment.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let is_available = conditions
        .filter(|condition| condition.type_ == "Available")
        .any(|condition| condition.status == "True");
    // A Deployment scaled to nothing calls itself available: all zero replicas are.
    let replicas = deployment.status.as_ref().and_then(|status| status.available_replicas);
    let available = is_available && replicas.is_some_and(|count| count > 0);
    Controller {
        place: format!("{namespace}/{}", deployment.name_any()),
        version: version(deployment),
        available,
    }
}

/// The image's tag, for it is what runs; the label is what somebody wrote.
fn version(deployment: &Deployment) -> Option<String> {
    let pod = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let containers = pod.map(|pod| pod.containers.as_slice()).unwrap_or_default();
    // Beside the manager there may be a proxy, with a version of its own.
    let manager = containers.iter().find(|container| container.name == "manager");
    let image = manager.or(containers.first()).and_then(|container| container.image.as_deref());
    let label = deployment.labels().get("app.kubernetes.io/version");
    image.and_then(tag).or(label.map(String::as_str)).map(str::to_owned)
}

/// `host:5000/kueue/kueue:v0.19.2@sha256:...` gives `v0.19.2`; a port is not a tag.
fn tag(image: &str) -> Option<&str> {
    let name = image.split('@').next().unwrap_or(image);
    let last = name.rsplit('/').next().unwrap_or(name);
    last.split_once(':').map(|(_, tag)| tag).filter(|tag| !tag.is_empty())
}

/// The API server passes this on to whoever registered for it, and says so if nobody is there.
async fn metrics_answer(client: &Client, limit: Duration) -> Found<Result<(), String>> {
    let question = client.list_api_group_resources("metrics.k8s.io/v1beta1");
    match tokio::time::timeout(limit, question).await {
        Ok(Ok(_)) => Found::Known(Ok(())),
        Ok(Err(kube::Error::Api(status)))
            if status.code == 404
                || super::no_one_there(status.code, &status.message)
                || (status.code == 503 && status.message == UNAVAILABLE) =>
        {
            Found::Known(Err(super::problem_text(status.code, &status.message)))
        }
        Ok(Err(error)) => super::missed(&error),
        Err(_) => Found::TimedOut(limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_read_from_any_image_name() {
        assert_eq!(tag("registry.example/kueue/kueue:v0.19.2"), Some("v0.19.2"));
        assert_eq!(tag("localhost:5000/kueue:v1@sha256:abc"), Some("v1"));
        assert_eq!(tag("localhost:5000/kueue@sha256:abc"), None);
        assert_eq!(tag("kueue"), None);
    }
}
