//! Reads the nodes and keeps those with accelerators.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::Client;
use kube::api::ListParams;
use serde::Deserialize;

use crate::commands::check::facts::{AcceleratorNode, Fleet, Found};

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
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
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
        other => other.missed().unwrap_or(Found::NotAsked),
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
        let shares = shares(resource, labels);
        // Extended resources are whole numbers.
        let capacity = capacity.parse::<u32>().unwrap_or(0) / shares;
        if capacity == 0 {
            continue;
        }
        let allocatable = node.status.allocatable.get(resource);
        let allocatable = allocatable.and_then(|text| text.parse::<u32>().ok()).unwrap_or(0);
        found.push(AcceleratorNode {
            name: node.metadata.name.clone(),
            resource: resource.clone(),
            capacity,
            allocatable: allocatable / shares,
            model: label(MODEL_LABELS),
            pool: label(POOL_LABELS),
            ready,
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

/// A device shared in time by four is advertised as four, and is still one.
fn shares(resource: &str, labels: &BTreeMap<String, String>) -> u32 {
    if !resource.starts_with("nvidia.com/gpu") {
        return 1;
    }
    labels.get(SHARES_LABEL).and_then(|text| text.parse().ok()).unwrap_or(1).max(1)
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
        assert_eq!((node.capacity, node.allocatable, node.ready), (8, 7, true));
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
        assert_eq!(found[0].capacity, 2);
        // No Ready condition is not ready.
        assert!(!found[0].ready);
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
