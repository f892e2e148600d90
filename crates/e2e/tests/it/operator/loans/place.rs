//! Where the stories about loans play: a Pool that lends, a queue, a volume, and runs.

use super::STEPS;
use anyhow::Result;
use flyball_e2e::{Story, add_queue, create, kubectl, remove_of_cluster, remove_queue};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// A run that Flyball makes, with this shape and so many steps.
pub(super) fn made(story: &Story, name: &str, (nodes, gpus): (u32, u32), steps: i64) -> Value {
    json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "TrainingRun",
        "metadata": { "name": name },
        "spec": {
            "mode": "Act", "borrow": true, "pool": story.namespace, "steps": steps,
            "checkpoint": { "heartbeat": "Log" },
            "job": {
                "image": shell(), "command": ["/bin/sh", "-c", program(name, steps)],
                "nodes": nodes, "gpusPerNode": gpus, "queue": "research", "runAsUser": 65_532,
                "checkpoints": { "claim": "checkpoints" },
            },
        },
    })
}

/// Somebody's own JobSet of one pod with two GPUs.
pub(super) fn job_set(story: &Story) -> Value {
    json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": {
            "name": "small", "namespace": story.namespace,
            "labels": { "kueue.x-k8s.io/queue-name": "research" },
        },
        "spec": { "replicatedJobs": [{ "name": "workers", "replicas": 1, "template": { "spec": {
            "parallelism": 1, "completions": 1, "completionMode": "Indexed", "backoffLimit": 0,
            "template": { "spec": {
                "restartPolicy": "Never",
                "nodeSelector": { "flyball.dev/pool": "test" },
                "securityContext": {
                    "runAsNonRoot": true, "runAsUser": 65_532,
                    "seccompProfile": { "type": "RuntimeDefault" },
                },
                "containers": [{
                    "name": "train", "image": shell(),
                    "command": ["/bin/sh", "-c", program("small", STEPS)],
                    "resources": { "limits": { "nvidia.com/gpu": 2 } },
                    "volumeMounts": [{ "name": "checkpoints", "mountPath": "/checkpoints" }],
                    "securityContext": {
                        "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] },
                    },
                }],
                "volumes": [{
                    "name": "checkpoints", "persistentVolumeClaim": { "claimName": "checkpoints" },
                }],
            } },
        } } }] },
    })
}

pub(super) fn adopted(story: &Story) -> Value {
    json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "TrainingRun",
        "metadata": { "name": "small" },
        "spec": {
            "mode": "Act", "borrow": true, "pool": story.namespace,
            "checkpoint": { "heartbeat": "Log" },
            "workloadRef": { "kind": "JobSet", "name": "small" },
        },
    })
}

/// Steps of a second from the saved one on; every fifth is saved.
fn program(name: &str, steps: i64) -> String {
    let beat = "{\\\"version\\\":1,\\\"step\\\":$i,\\\"savedStep\\\":$saved,\\\"totalSteps\\\":STEPS,\
                \\\"restoredStep\\\":$first,\\\"stepSeconds\\\":1.0,\\\"saveSeconds\\\":0.1,\
                \\\"attempt\\\":\\\"$start\\\",\\\"at\\\":\\\"$(date -u +%Y-%m-%dT%H:%M:%SZ)\\\"}";
    let all = format!(
        "trap 'exit 143' TERM; start=$(date +%s); file=/checkpoints/{name}\n\
         i=$(cat $file 2>/dev/null || echo 0); first=$i; saved=$i\n\
         while [ $i -lt STEPS ]; do\n\
           sleep 1 & wait $!\n\
           i=$((i+1))\n\
           if [ $((i % 5)) = 0 ]; then\n\
             saved=$i; [ \"${{JOB_COMPLETION_INDEX:-0}}\" != 0 ] || echo $i > $file\n\
           fi\n\
           echo \"flyball-heartbeat {beat}\"\n\
         done\n\
         sleep 8 & wait $!"
    );
    all.replace("STEPS", &steps.to_string())
}

/// The image with a shell; on other clusters any that has one may be named.
fn shell() -> String {
    std::env::var("FLYBALL_E2E_SHELL").unwrap_or_else(|_| "busybox".into())
}

/// A Pool that lends, a queue, and a volume. What is of the cluster carries the namespace's name.
pub(super) struct Place {
    folder: PathBuf,
}

impl Place {
    pub(super) async fn new(story: &Story) -> Result<Self> {
        let name = &story.namespace;
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder)?;
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777))?;
        let pool = json!({
            "metadata": { "name": name },
            "spec": {
                "accelerator": "h100-sxm-80gb", "nodeSelector": { "flyball.dev/pool": "test" },
                "prices": [{ "purchase": "OnDemand", "perGpuHour": "3.60" }],
                "lending": { "keepFree": 1, "settleSeconds": 15 },
            },
        });
        create(story, "flyball.dev/v1alpha1", "Pool", pool).await?;
        add_queue(story, "research", 8, &json!({})).await?;
        let size = json!({ "storage": "1Mi" });
        let volume = json!({
            "metadata": { "name": name },
            "spec": {
                "capacity": size, "accessModes": ["ReadWriteMany"], "storageClassName": "",
                "claimRef": { "namespace": name, "name": "checkpoints" },
                "hostPath": { "path": folder, "type": "Directory" },
            },
        });
        create(story, "v1", "PersistentVolume", volume).await?;
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": { "name": "checkpoints" },
            "spec": {
                "accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": name,
                "resources": { "requests": size },
            },
        });
        kubectl(
            &story.cluster,
            &["--namespace", name, "apply", "--filename", "-"],
            &claim.to_string(),
        )?;
        Ok(Self { folder })
    }

    pub(super) async fn remove(self, story: &Story) -> Result<()> {
        remove_queue(story).await?;
        for (version, kind) in [("flyball.dev/v1alpha1", "Pool"), ("v1", "PersistentVolume")] {
            remove_of_cluster(story, version, kind, &story.namespace).await?;
        }
        Ok(std::fs::remove_dir_all(&self.folder)?)
    }
}
