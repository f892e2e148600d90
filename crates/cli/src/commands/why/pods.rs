//! The replicas that do not serve: which, since when, and what the cluster says about them.

use std::time::Duration;

use flyball_core::units::Timestamp;
use flyball_operator::observe::PodFacts;
use flyball_resources::model_service::{TargetKind, VariantSpec};
use flyball_resources::{ModelService, labels, rfc3339};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::{Api, ListParams};
use kube::core::Selector;
use kube::{Client, ResourceExt as _};

use super::answer::Waiting;
use crate::cluster::innermost;

/// Pods of one variant that are read: more than that are counted by the status alone.
const MOST: u32 = 500;

/// Replicas of a model that wait, start or drain; or why that is unknown.
pub(super) async fn waiting(
    client: &Client,
    model: &ModelService,
    limit: Duration,
) -> Result<Vec<Waiting>, String> {
    let late = |_| format!("no answer within {}", crate::output::duration(limit));
    let mut all = Vec::new();
    for variant in &model.spec.variants {
        let pods = tokio::time::timeout(limit, pods(client, model, variant)).await.map_err(late)?;
        all.extend(pods?.iter().filter_map(state));
    }
    Ok(all)
}

async fn pods(
    client: &Client,
    model: &ModelService,
    variant: &VariantSpec,
) -> Result<Vec<Pod>, String> {
    let namespace = model.namespace().unwrap_or_default();
    let failure = |error: kube::Error| match error {
        kube::Error::Api(status) => status.message.clone(),
        other => innermost(&other),
    };
    let selector = match &variant.target_ref {
        None => {
            format!("{}={},{}={}", labels::MODEL, model.name_any(), labels::VARIANT, variant.name)
        }
        Some(to) => {
            let selector = match to.kind {
                TargetKind::Deployment => {
                    let api: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
                    api.get(&to.name).await.map_err(failure)?.spec.map(|spec| spec.selector)
                }
                TargetKind::StatefulSet => {
                    let api: Api<StatefulSet> = Api::namespaced(client.clone(), &namespace);
                    api.get(&to.name).await.map_err(failure)?.spec.map(|spec| spec.selector)
                }
                TargetKind::LeaderWorkerSet => {
                    let label = "leaderworkerset.sigs.k8s.io/name".to_owned();
                    let labels = [(label, to.name.clone())].into();
                    Some(LabelSelector { match_labels: Some(labels), match_expressions: None })
                }
            };
            let selector = Selector::try_from(selector.unwrap_or_default());
            selector.map_err(|error| error.to_string())?.to_string()
        }
    };
    let api: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let list = api.list(&ListParams::default().labels(&selector).limit(MOST)).await;
    Ok(list.map_err(failure)?.items)
}

/// A pod that does not serve.
fn state(pod: &Pod) -> Option<Waiting> {
    let facts = PodFacts::of(pod);
    let (state, since): (_, Timestamp) = match &facts {
        facts if facts.over => return None,
        PodFacts { draining: Some(since), .. } | PodFacts { ending: Some(since), .. } => {
            ("Draining", *since)
        }
        facts if facts.ready.is_some() => return None,
        PodFacts { node: Some(_), scheduled, created, .. } => {
            ("Starting", scheduled.unwrap_or(*created))
        }
        facts => ("Pending", facts.created),
    };
    let restarted = || match facts.restarts {
        0 => None,
        1 => Some("its container restarted once".to_owned()),
        times => Some(format!("its containers restarted {times} times")),
    };
    let why = if state == "Draining" { None } else { why(pod).or_else(restarted) };
    Some(Waiting { pod: facts.name, state: state.to_owned(), since: rfc3339(since), why })
}

/// Why it has no node, or what its container waits for.
fn why(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let unplaced =
        conditions.iter().find(|one| one.type_ == "PodScheduled" && one.status == "False");
    let containers = status.container_statuses.as_deref().unwrap_or_default().iter();
    let held = containers.filter_map(|one| one.state.as_ref()?.waiting.as_ref()?.reason.clone());
    let words = unplaced.and_then(|one| one.message.clone()).or_else(|| held.into_iter().next())?;
    // The scheduler goes on at length about preemption; the first sentence has the cause.
    Some(words.split(". ").next().unwrap_or(&words).trim_end_matches('.').to_owned())
}
