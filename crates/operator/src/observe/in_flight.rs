//! Requests inside pods, as gateways count them and as engines do.

use super::facts::PodFacts;
use flyball_core::units::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Requests inside pods, by address as gateways know them and by name as Prometheus does.
#[derive(Clone, Debug, Default)]
pub struct InFlight {
    by_address: BTreeMap<String, (f64, Timestamp)>,
    /// Addresses that some gateway would still send something new to.
    open: BTreeSet<String>,
    by_pod: BTreeMap<(String, String), (f64, Timestamp)>,
}

impl InFlight {
    /// All gateways together have so many at this address.
    pub fn at_address(&mut self, address: &str, count: f64, at: Timestamp) {
        let (sum, oldest) = self.by_address.entry(address.to_owned()).or_insert((0.0, at));
        *sum += count;
        *oldest = (*oldest).min(at);
    }

    /// A gateway would still send something new to this address.
    pub fn still_open(&mut self, address: &str) {
        self.open.insert(address.to_owned());
    }

    /// Whether some gateway would still send something new to this pod.
    pub(super) fn is_open(&self, pod: &PodFacts) -> bool {
        pod.ip.as_ref().is_some_and(|ip| self.open.contains(ip))
    }

    /// An engine says that it has so many.
    pub fn in_pod(&mut self, namespace: &str, pod: &str, count: f64, at: Timestamp) {
        self.by_pod.insert((namespace.to_owned(), pod.to_owned()), (count, at));
    }

    /// Whether gateways send requests to this pod.
    pub fn is_routed(&self, pod: &PodFacts) -> bool {
        pod.ip.as_ref().is_some_and(|ip| self.by_address.contains_key(ip))
    }

    /// Requests inside a pod; nothing while it drains and some gateway has not heard that.
    pub(super) fn closed(&self, namespace: &str, pod: &PodFacts) -> Option<(f64, Timestamp)> {
        self.of(namespace, pod).filter(|_| pod.draining.is_none() || !self.is_open(pod))
    }

    /// Requests inside a pod, and when that was so. Gateways say it second by second and are believed
    /// first; clients that go around them show only in the engine's own count.
    pub(super) fn of(&self, namespace: &str, pod: &PodFacts) -> Option<(f64, Timestamp)> {
        let routed = pod.ip.as_ref().and_then(|ip| self.by_address.get(ip));
        let own = self.by_pod.get(&(namespace.to_owned(), pod.name.clone()));
        match (routed, own) {
            // An older count of its own that is larger may be of clients that go around.
            (Some(routed), Some(own)) if own.1 >= routed.1 => Some((routed.0.max(own.0), own.1)),
            (Some(routed), _) => Some(*routed),
            (None, own) => own.copied(),
        }
    }
}
