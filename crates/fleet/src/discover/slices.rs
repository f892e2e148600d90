//! EndpointSlices to engines.

use super::place::Port;
use crate::fleet::FoundEngines;
use flyball_engines::Engine;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// The label that says whose slice it is.
pub(super) const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// What is kept of an EndpointSlice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) service: String,
    /// None means every port, by the API's own words.
    ports: Option<Vec<(String, u16)>>,
    members: Vec<Member>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Member {
    /// `namespace/pod`, where it is a pod.
    pod: Option<String>,
    uid: Option<String>,
    address: IpAddr,
    draining: bool,
}

/// What a slice says, if it belongs to a Service.
pub(super) fn slice(from: &EndpointSlice) -> Option<Slice> {
    let service = from.metadata.labels.as_ref()?.get(SERVICE_NAME)?.clone();
    let namespace = from.metadata.namespace.as_deref().unwrap_or_default();
    let ports = from.ports.as_ref().filter(|ports| !ports.is_empty()).map(|ports| {
        ports
            .iter()
            .filter(|port| port.protocol.as_deref().is_none_or(|protocol| protocol == "TCP"))
            .filter_map(|port| {
                let number = u16::try_from(port.port?).ok()?;
                Some((port.name.clone().unwrap_or_default(), number))
            })
            .collect()
    });
    let endpoints = from.endpoints.iter().flatten();
    let members = endpoints.filter_map(|endpoint| member(endpoint, namespace)).collect();
    Some(Slice { service, ports, members })
}

/// The engines of one Service. An engine in several slices (of two families of addresses, or while
/// the controller moves it from one slice to another) is one engine.
pub(super) fn found<'a>(
    slices: impl Iterator<Item = &'a Slice>,
    port: &Port,
    engine: Engine,
) -> Vec<FoundEngines> {
    let mut all: BTreeMap<String, FoundEngines> = BTreeMap::new();
    for slice in slices {
        let Some(number) = slice.port(port) else { continue };
        for member in &slice.members {
            let address = SocketAddr::new(member.address, number);
            let name = member.pod.clone().unwrap_or_else(|| address.to_string());
            let (uid, draining) = (member.uid.clone(), member.draining);
            let one = FoundEngines { name: name.clone(), address, uid, draining, engine };
            // Open before draining, IPv4 before IPv6: the same choice on every gateway.
            let rank = |found: &FoundEngines| (found.draining, found.address);
            match all.get(&name) {
                Some(other) if rank(other) <= rank(&one) => {}
                _ => drop(all.insert(name, one)),
            }
        }
    }
    all.into_values().collect()
}

impl Slice {
    fn port(&self, target: &Port) -> Option<u16> {
        match (target, &self.ports) {
            (Port::Number(number), None) => Some(*number),
            (Port::Name(_), None) => None,
            (Port::Number(number), Some(ports)) => {
                ports.iter().map(|(_, port)| *port).find(|port| port == number)
            }
            (Port::Name(name), Some(ports)) => {
                ports.iter().find(|(port, _)| port == name).map(|(_, number)| *number)
            }
        }
    }

    /// Its ports in words, for a person who asked for another one.
    pub(super) fn ports_in_words(&self) -> String {
        let ports = self.ports.iter().flatten().map(|(name, number)| format!("{number} {name:?}"));
        ports.collect::<Vec<_>>().join(", ")
    }

    /// Whether it has members but not on this port.
    pub(super) fn lacks(&self, target: &Port) -> bool {
        !self.members.is_empty() && self.port(target).is_none()
    }
}

/// Conditions that are not set mean ready, serving and not terminating; the API says so. What
/// serves while it terminates finishes what it has.
fn member(endpoint: &Endpoint, namespace: &str) -> Option<Member> {
    let conditions = endpoint.conditions.as_ref();
    let ready = conditions.and_then(|c| c.ready).unwrap_or(true);
    let serving = conditions.and_then(|c| c.serving).unwrap_or(ready);
    let draining = conditions.and_then(|c| c.terminating).unwrap_or(false);
    if !(if draining { serving } else { ready }) {
        return None;
    }
    // An FQDN is no address; the API gives such slices no meaning.
    let address = endpoint.addresses.first()?.parse().ok()?;
    let pod = endpoint.target_ref.as_ref().filter(|target| target.kind.as_deref() == Some("Pod"));
    let uid = pod.and_then(|target| target.uid.clone());
    let pod = pod.and_then(|target| {
        let namespace = target.namespace.as_deref().unwrap_or(namespace);
        Some(format!("{namespace}/{}", target.name.as_deref()?))
    });
    Some(Member { pod, uid, address, draining })
}
