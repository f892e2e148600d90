//! Where runs with PyTorch run: a volume that all nodes share, a Pool, and a queue in which somebody may be worth more.

use anyhow::{Context, Result};
use flyball_e2e::{KUEUE, Story, add_queue, create, kubectl, remove_of_cluster, remove_queue};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// The claim by which pods of the namespace have the volume, and where they see it.
pub(super) const CLAIM: &str = "shared";
pub(super) const SHARED: &str = "/shared";

/// The priority of who takes the machines of others.
pub(super) const VALUABLE: &str = "valuable";

/// What is of the cluster carries the namespace's name.
pub(super) struct Place {
    /// The folder of runs of this story, on this machine.
    pub(super) runs: PathBuf,
    name: String,
}

/// The folder of the volume, if there is a PyTorch.
pub(super) fn volume() -> Option<PathBuf> {
    std::env::var_os("FLYBALL_E2E_TRAINING").map(PathBuf::from)
}

pub(super) fn image() -> Result<String> {
    std::env::var("FLYBALL_E2E_PYTHON_IMAGE").context("FLYBALL_E2E_PYTHON_IMAGE is not set")
}

impl Place {
    /// With a queue of so many accelerators.
    pub(super) async fn new(story: &Story, volume: &std::path::Path, quota: u32) -> Result<Self> {
        let name = story.namespace.clone();
        let place = Self { runs: volume.join("runs").join(&name), name };
        std::fs::create_dir_all(&place.runs)?;
        std::fs::set_permissions(&place.runs, PermissionsExt::from_mode(0o777))?;
        let path = volume.to_str().context("a path that is no text")?;
        kubectl(&story.cluster, &["apply", "--filename", "-"], &place.disk(path).to_string())?;
        create(story, "flyball.dev/v1alpha1", "Pool", place.pool()).await?;
        let preempts = json!({ "preemption": { "withinClusterQueue": "LowerPriority" } });
        add_queue(story, "research", quota, &preempts).await?;
        let valuable = json!({
            "apiVersion": KUEUE, "kind": "WorkloadPriorityClass",
            "metadata": { "name": format!("{}-{VALUABLE}", place.name) }, "value": 1_000,
        });
        kubectl(&story.cluster, &["apply", "--filename", "-"], &valuable.to_string())?;
        Ok(place)
    }

    /// The folder of a run as its pods see it.
    pub(super) fn folder(&self, run: &str) -> String {
        format!("{SHARED}/runs/{}/{run}", self.name)
    }

    /// Takes away what does not go with the namespace.
    pub(super) async fn remove(&self, story: &Story) -> Result<()> {
        remove_queue(story).await?;
        let class = format!("{}-{VALUABLE}", self.name);
        remove_of_cluster(story, KUEUE, "WorkloadPriorityClass", &class).await?;
        for (version, kind) in [("flyball.dev/v1alpha1", "Pool"), ("v1", "PersistentVolume")] {
            remove_of_cluster(story, version, kind, &self.name).await?;
        }
        Ok(std::fs::remove_dir_all(&self.runs)?)
    }

    fn disk(&self, path: &str) -> Value {
        let size = json!({ "storage": "1Gi" });
        json!({ "apiVersion": "v1", "kind": "List", "items": [
            {
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": self.name },
                "spec": {
                    "capacity": size, "accessModes": ["ReadWriteMany"], "storageClassName": "",
                    "claimRef": { "namespace": self.name, "name": CLAIM },
                    "hostPath": { "path": path, "type": "Directory" },
                },
            },
            {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": { "namespace": self.name, "name": CLAIM },
                "spec": {
                    "accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": self.name,
                    "resources": { "requests": size },
                },
            },
        ] })
    }

    fn pool(&self) -> Value {
        json!({
            "metadata": { "name": self.name },
            "spec": {
                "accelerator": "h100-sxm-80gb", "nodeSelector": { "flyball.dev/pool": "test" },
                "prices": [
                    { "purchase": "OnDemand", "perGpuHour": "3.60" },
                    { "purchase": "Spot", "perGpuHour": "0.90" },
                ],
            },
        })
    }
}
