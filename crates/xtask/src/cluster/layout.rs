//! Names, addresses and folders of the test cluster, stated once.

use crate::checkout;
use anyhow::Result;
use std::path::PathBuf;

/// The bridge that joins the three network namespaces; the host has an address on it too.
pub(super) const BRIDGE: &str = "flyball0";
pub(super) const HOST_ADDRESS: &str = "10.90.0.1";
pub(super) const CONTROL_ADDRESS: &str = "10.90.0.2";
pub(super) const POD_RANGE: &str = "10.91.0.0/16";
pub(super) const SERVICE_RANGE: &str = "10.92.0.0/16";
/// First address of the service range: what `kubernetes.default` resolves to.
pub(super) const API_SERVICE_ADDRESS: &str = "10.92.0.1";
pub(super) const DNS_ADDRESS: &str = "10.92.0.10";
/// Every process of the cluster is below this cgroup; `down` ends what it finds there.
pub(super) const CGROUP: &str = "flyball";

/// Compiled into the CNI plug-ins; each namespace pair mounts its own over it.
pub(super) const CNI_STATE: &str = "/var/lib/cni";

/// Where a kubelet listens for device plugins: compiled in, wherever its own folder is.
pub(super) const DEVICE_PLUGINS: &str = "/var/lib/kubelet/device-plugins";

/// One real node.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) name: &'static str,
    pub(super) link: &'static str,
    pub(super) address: &'static str,
    pub(super) pods: &'static str,
    pub(super) zone: &'static str,
}

pub(super) const NODES: [Node; 2] = [
    Node {
        name: "node-a",
        link: "flyball-a",
        address: "10.90.0.11",
        pods: "10.91.1.0/24",
        zone: "test-a",
    },
    Node {
        name: "node-b",
        link: "flyball-b",
        address: "10.90.0.12",
        pods: "10.91.2.0/24",
        zone: "test-b",
    },
];

/// Fake accelerators on each real node: two JobSets of 2 x 2 GPUs do not fit side by side in a
/// quota of 4, and the nodes themselves must not be what stops the second one.
pub(super) const GPUS_PER_NODE: u32 = 4;

/// Folders outside the checkout. Parts are kept under a key of their versions;
/// the running cluster's state is thrown away by `down`.
pub(crate) struct Layout {
    cache: PathBuf,
}

impl Layout {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { cache: checkout::cache()? })
    }

    pub(super) fn cache(&self) -> PathBuf {
        self.cache.clone()
    }

    pub(super) fn parts(&self, key: &str) -> PathBuf {
        self.cache.join("parts").join(key)
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.cache.join("cluster")
    }

    pub(super) fn logs(&self) -> PathBuf {
        self.cache.join("cluster-logs")
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.state().join("admin.kubeconfig")
    }

    /// What accounts of pods asked of the API server, a line each.
    pub(crate) fn audit_log(&self) -> PathBuf {
        self.state().join("audit.log")
    }

    /// Names the versions that the running cluster was started from.
    pub(super) fn running_key(&self) -> PathBuf {
        self.state().join("key")
    }

    pub(super) fn node(&self, node: &Node) -> PathBuf {
        self.state().join(node.name)
    }
}
