//! Reads the nodes and keeps those with accelerators.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::Client;
use kube::api::ListParams;
use serde::Deserialize;

use crate::commands::check::facts::{AcceleratorNode, Devices, Fleet, Found};

/// Extended resources that are accelerators. A `*` stands for the rest of the name.
/// Only one name per vendor is counted where a device has several (Neuron: device and cores).
const RESOURCES: &[&str] = &[
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
    "nvidia.com/mig-*",
    "amd.com/gpu",
    "google.com/tpu",
    "habana.ai/gaudi",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
    "aws.amazon.com/neuron",
    "huawei.com/Ascend*",
    "cambricon.com/mlu",
];

/// Labels that name the model, the most exact first.
const MODEL_LABELS: &[&str] = &[
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "beta.amd.com/gpu.product-name",
    "gpu.intel.com/product",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu-accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "karpenter.k8s.aws/instance-accelerator-name",
    "eks.amazonaws.com/instance-gpu-name",
    "karpenter.azure.com/sku-gpu-name",
    "accelerator",
];

/// Labels that name the pool. Ours wins: somebody set it on purpose.
const POOL_LABELS: &[&str] = &[
    "flyball.dev/pool",
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "agentpool",
];

/// Into how many shares the NVIDIA device plugin cuts one device in time.
const SHARES_LABEL: &str = "nvidia.com/gpu.replicas";

/// A node without the long lists (images, volumes) that nobody looks at here.
#[derive(Deserialize)]
struct Node {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
struct Spec {
    #[serde(default)]
    unschedulable: bool,
}

#[derive(Default, Deserialize)]
struct Status {
    #[serde(default)]
    capacity: BTreeMap<String, String>,
    #[serde(default)]
    allocatable: BTreeMap<String, String>,
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

pub(super) async fn list(client: &Client, limit: Duration) -> Found<Fleet> {
    let mut fleet = Fleet::default();
    let read = super::pages(client, limit, "/api/v1/nodes", ListParams::default(), |page| {
        fleet.nodes_total += page.len();
        fleet.nodes.extend(page.iter().flat_map(accelerators));
    });
    match read.await {
        Found::Known(()) => Found::Known(fleet),
        // Half a fleet is not a fleet.
        other => other.missed().unwrap_or(Found::Skipped),
    }
}

/// One entry for each accelerator resource of the node.
fn accelerators(node: &Node) -> Vec<AcceleratorNode> {
    let labels = &node.metadata.labels;
    let label = |names: &[&str]| {
        names.iter().find_map(|name| labels.get(*name).filter(|value| !value.is_empty())).cloned()
    };
    let ready = node
        .status
        .conditions
        .iter()
        .any(|condition| condition.kind == "Ready" && condition.status == "True");
    let mut found = Vec::new();
    for (resource, capacity) in &node.status.capacity {
        if !RESOURCES.iter().any(|known| matches(known, resource)) {
            continue;
        }
        // What the node does not list it does not give away.
        let allocatable = node.status.allocatable.get(resource).map_or("0", String::as_str);
        let devices = devices(capacity, allocatable, shares(resource, labels));
        if devices.is_some_and(|devices| devices.capacity == 0) {
            continue;
        }
        found.push(AcceleratorNode {
            name: node.metadata.name.clone(),
            resource: resource.clone(),
            devices,
            model: label(MODEL_LABELS),
            pool: label(POOL_LABELS),
            ready,
            cordoned: node.spec.unschedulable,
        });
    }
    found
}

fn matches(known: &str, resource: &str) -> bool {
    match known.strip_suffix('*') {
        Some(prefix) => resource.starts_with(prefix),
        None => known == resource,
    }
}

/// Extended resources are whole numbers. What is not one is not known, and above all not 0.
fn devices(capacity: &str, allocatable: &str, shares: Option<u32>) -> Option<Devices> {
    let shares = shares?;
    let count = |text: &str| text.parse::<u32>().ok().map(|count| count / shares);
    Some(Devices { capacity: count(capacity)?, allocatable: count(allocatable)? })
}

/// A device shared in time by four is advertised as four, and is still one.
fn shares(resource: &str, labels: &BTreeMap<String, String>) -> Option<u32> {
    match labels.get(SHARES_LABEL) {
        Some(text) if resource.starts_with("nvidia.com/gpu") => {
            text.parse::<u32>().ok().map(|shares| shares.max(1))
        }
        _ => Some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: serde_json::Value) -> Vec<AcceleratorNode> {
        accelerators(&serde_json::from_value(json).unwrap())
    }

    #[test]
    fn known_resources_and_labels_are_read() {
        let found = read(serde_json::json!({
            "metadata": {"name": "a", "labels": {
                "cloud.google.com/gke-accelerator": "nvidia-h100-80gb",
                "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                "karpenter.sh/nodepool": "spot",
            }},
            "status": {
                "capacity": {"cpu": "64", "nvidia.com/gpu": "8", "example.com/foo": "3"},
                "allocatable": {"cpu": "63", "nvidia.com/gpu": "7"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }));
        let [node] = &found[..] else { panic!("{found:?}") };
        assert_eq!(node.devices, Some(Devices { capacity: 8, allocatable: 7 }));
        assert!(node.ready && !node.cordoned);
        assert_eq!(node.model.as_deref(), Some("NVIDIA-H100-80GB-HBM3"));
        assert_eq!(node.pool.as_deref(), Some("spot"));
    }

    #[test]
    fn shares_of_one_device_are_one_device() {
        let found = read(serde_json::json!({
            "metadata": {"name": "a", "labels": {"nvidia.com/gpu.replicas": "4"}},
            "status": {
                "capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": "8"},
            },
        }));
        assert_eq!(found[0].devices, Some(Devices { capacity: 2, allocatable: 2 }));
        // No Ready condition is not ready.
        assert!(!found[0].ready);
    }

    #[test]
    fn what_cannot_be_read_is_not_none() {
        let devices = |capacity: &str, allocatable: &str, shares: &str| {
            let found = read(serde_json::json!({
                "metadata": {"name": "a", "labels": {"nvidia.com/gpu.replicas": shares}},
                "spec": {"unschedulable": true},
                "status": {
                    "capacity": {"nvidia.com/gpu": capacity},
                    "allocatable": {"nvidia.com/gpu": allocatable},
                },
            }));
            assert!(found[0].cordoned);
            found[0].devices
        };
        assert_eq!(devices("8", "8", "1"), Some(Devices { capacity: 8, allocatable: 8 }));
        assert_eq!(devices("eight", "8", "1"), None);
        assert_eq!(devices("8", "", "1"), None);
        assert_eq!(devices("8", "8", "some"), None);
    }

    #[test]
    fn a_node_that_advertises_none_is_left_out() {
        let found = read(serde_json::json!({
            "metadata": {"name": "a"},
            "status": {"capacity": {"nvidia.com/gpu": "0"}},
        }));
        assert!(found.is_empty());
    }
}
