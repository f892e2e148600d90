//! An `InferencePool` and its pods to engines.

use super::pods::PodMember;
use super::selector;
use crate::fleet::FoundEngines;
use flyball_engines::Engine;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Ports of a pool that are looked at. The API allows 8.
const PORTS: usize = 8;

/// What is kept of an `InferencePool`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) labels: BTreeMap<String, String>,
    ports: Vec<u16>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    selector: Selector,
    target_ports: Vec<Target>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Selector {
    #[serde(default)]
    match_labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Target {
    number: u16,
}

/// The kind that is watched. Not a type of ours: two fields of it are read.
pub(super) fn resource() -> ApiResource {
    let kind = GroupVersionKind::gvk("inference.networking.k8s.io", "v1", "InferencePool");
    ApiResource::from_gvk_with_plural(&kind, "inferencepools")
}

/// What a pool says. A pool without labels chooses no pod rather than all of them.
pub(super) fn pool(from: &DynamicObject) -> Option<Chosen> {
    let spec = Spec::deserialize(from.data.get("spec")?).ok()?;
    let ports = spec.target_ports.iter().map(|port| port.number).take(PORTS).collect();
    Some(Chosen { labels: spec.selector.match_labels, ports })
}

/// The engines of a pool. Each port of a pod is an engine of its own (ranks of data parallelism);
/// its name says the port if there is more than one.
pub(super) fn found<'a>(
    pool: &Chosen,
    pods: impl Iterator<Item = &'a PodMember>,
    engine: Engine,
) -> Vec<FoundEngines> {
    let mine = pods.filter(|pod| pool.chooses(pod));
    let engines = mine.flat_map(|pod| {
        pool.ports.iter().map(move |&port| FoundEngines {
            name: match pool.ports.len() {
                1 => pod.name.clone(),
                _ => format!("{}:{port}", pod.name),
            },
            address: SocketAddr::new(pod.address, port),
            uid: pod.uid.clone(),
            draining: pod.draining,
            engine,
        })
    });
    let mut all: Vec<_> = engines.collect();
    all.sort();
    all
}

/// What all these pools have in common, as a selector for one watch of pods. Empty if nothing:
/// then all pods of the namespace are watched.
pub(super) fn shared_selector<'a>(pools: impl Iterator<Item = &'a Chosen>) -> Option<String> {
    let chosen = |pool: &Chosen| pool.labels.clone().into_iter().collect();
    let all: Vec<kube::core::Selector> = pools.map(chosen).collect();
    (!all.is_empty()).then(|| selector::shared(all.iter()))
}

/// Labels as the API server takes them.
pub(super) fn labels_text(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(label, value)| format!("{label}={value}")).collect::<Vec<_>>().join(",")
}

impl Chosen {
    fn chooses(&self, pod: &PodMember) -> bool {
        let same = |(label, value)| pod.labels.get(label) == Some(value);
        !self.labels.is_empty() && self.labels.iter().all(same)
    }
}
