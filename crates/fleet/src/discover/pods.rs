//! Pods to engines: those of a ModelService's variants, and what is kept of a pod at all. Pure.

use super::place::PodsPlace;
use crate::fleet::FoundEngines;
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube::core::SelectorExt as _;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// What is kept of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodMember {
    pub(super) name: String,
    pub(super) uid: Option<String>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) address: IpAddr,
    pub(super) draining: bool,
    /// The port that it declares under the name `http`.
    pub(super) http: Option<u16>,
}

/// What a pod says, if it is there for requests: ready, or still serving while it is deleted.
pub(super) fn member(from: &Pod) -> Option<PodMember> {
    let meta = &from.metadata;
    let status = from.status.as_ref()?;
    let ready =
        status.conditions.iter().flatten().any(|c| c.type_ == "Ready" && c.status == "True");
    if !ready {
        return None;
    }
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    Some(PodMember {
        name: format!("{namespace}/{}", meta.name.as_deref()?),
        uid: meta.uid.clone(),
        labels: meta.labels.clone().unwrap_or_default(),
        address: status.pod_ip.as_deref()?.parse().ok()?,
        draining: meta.deletion_timestamp.is_some(),
        http: from.spec.as_ref().and_then(http),
    })
}

/// What a Service with the target port `http` would choose.
fn http(spec: &PodSpec) -> Option<u16> {
    let mut ports = spec.containers.iter().flat_map(|container| container.ports.iter().flatten());
    let port = ports.find(|port| port.name.as_deref() == Some("http"))?;
    u16::try_from(port.container_port).ok()
}

/// The engines of a ModelService. A pod that two variants choose is one of the first.
pub(super) fn found<'a>(
    place: &PodsPlace,
    pods: impl Iterator<Item = &'a PodMember>,
) -> Vec<FoundEngines> {
    let engine = |pod: &PodMember| {
        let variant = place.variants.iter().find(|one| one.selector.matches(&pod.labels))?;
        let port = pod.http.filter(|_| variant.named_port).unwrap_or(variant.port);
        Some(FoundEngines {
            name: pod.name.clone(),
            address: SocketAddr::new(pod.address, port),
            uid: pod.uid.clone(),
            draining: pod.draining,
            engine: variant.engine,
        })
    };
    let mut all: Vec<_> = pods.filter_map(engine).collect();
    all.sort();
    all
}
