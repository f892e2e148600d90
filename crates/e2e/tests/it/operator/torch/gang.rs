//! A JobSet of two processes of `python/examples/ddp.py`, one on each node.

use super::place::{CLAIM, Place, SHARED, VALUABLE, image};
use anyhow::{Context, Result, ensure};
use flyball_e2e::{Story, dynamic};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

/// Steps between two checkpoints.
pub(super) const SAVE_EVERY: u64 = 50;

/// A run as it is asked for.
pub(super) struct Gang {
    pub(super) name: &'static str,
    pub(super) steps: u64,
    /// That a step takes at least.
    pub(super) step_seconds: f64,
}

impl Gang {
    /// Its JobSet.
    pub(super) fn job_set(&self, place: &Place) -> Result<Value> {
        let Self { name, steps, step_seconds } = self;
        let index = "metadata.annotations['batch.kubernetes.io/job-completion-index']";
        let container = json!({
            "name": "train", "image": image()?,
            "command": [
                format!("{SHARED}/venv/bin/python"), format!("{SHARED}/ddp.py"),
                "--folder", place.folder(name), "--steps", steps.to_string(),
                "--save-every", SAVE_EVERY.to_string(), "--step-seconds", step_seconds.to_string(),
                // The heartbeat of each step is in its file before the next begins.
                "--write-every-seconds", "0",
            ],
            "env": [
                { "name": "RANK", "valueFrom": { "fieldRef": { "fieldPath": index } } },
                { "name": "WORLD_SIZE", "value": "2" },
                { "name": "MASTER_ADDR", "value": format!("{name}-workers-0-0.{name}") },
                { "name": "MASTER_PORT", "value": "29500" },
                { "name": "PYTHONUNBUFFERED", "value": "1" },
            ],
            "volumeMounts": [{ "name": "shared", "mountPath": SHARED }],
            "resources": { "limits": { "nvidia.com/gpu": 1 } },
            "securityContext": {
                "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] },
            },
        });
        let apart = json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [{
            "labelSelector": { "matchLabels": { "gang": name } },
            "topologyKey": "kubernetes.io/hostname",
        }] } });
        let pod = json!({
            "metadata": { "labels": { "gang": name } },
            "spec": {
                "restartPolicy": "Never", "affinity": apart, "containers": [container],
                "securityContext": {
                    "runAsNonRoot": true, "runAsUser": 65_532,
                    "seccompProfile": { "type": "RuntimeDefault" },
                },
                "volumes": [
                    { "name": "shared", "persistentVolumeClaim": { "claimName": CLAIM } },
                ],
            },
        });
        Ok(job_set(name, 2, pod, &json!({ "kueue.x-k8s.io/queue-name": "research" })))
    }

    /// A TrainingRun that adopts it.
    pub(super) fn training_run(&self, story: &Story) -> Value {
        json!({
            "apiVersion": "flyball.dev/v1alpha1", "kind": "TrainingRun",
            "metadata": { "name": self.name },
            "spec": {
                "workloadRef": { "kind": "JobSet", "name": self.name }, "mode": "Act",
                "pool": story.namespace, "deadline": "2030-01-01T00:00:00Z",
            },
        })
    }

    /// Its pods that run.
    pub(super) async fn pods(&self, story: &Story) -> Result<Vec<Pod>> {
        pods(story, self.name).await
    }
}

/// Whoever takes the machines of the run, for a second.
pub(super) fn valuable(story: &Story, name: &str) -> Value {
    let pod = json!({
        "metadata": { "labels": { "gang": name } },
        "spec": {
            "restartPolicy": "Never",
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": 65_532,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            "containers": [{
                "name": "worker", "image": "flyball.test/pause:v1", "args": ["2"],
                "resources": { "limits": { "nvidia.com/gpu": 2 } },
                "securityContext": {
                    "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] },
                },
            }],
        },
    });
    let labels = json!({
        "kueue.x-k8s.io/queue-name": "research",
        "kueue.x-k8s.io/priority-class": format!("{}-{VALUABLE}", story.namespace),
    });
    job_set(name, 1, pod, &labels)
}

fn job_set(name: &str, pods: u32, template: Value, labels: &Value) -> Value {
    json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": { "name": name, "labels": labels },
        "spec": {
            "failurePolicy": { "maxRestarts": 1_000 },
            "replicatedJobs": [{ "name": "workers", "replicas": 1, "template": { "spec": {
                "parallelism": pods, "completions": pods, "completionMode": "Indexed",
                "backoffLimit": 0, "template": template,
            } } }],
        },
    })
}

/// The pods of a gang that run.
pub(super) async fn pods(story: &Story, gang: &str) -> Result<Vec<Pod>> {
    let pods: Api<Pod> = Api::namespaced(story.cluster.client.clone(), &story.namespace);
    let running =
        ListParams::default().labels(&format!("gang={gang}")).fields("status.phase=Running");
    let mut found = pods.list(&running).await?.items;
    found.retain(|pod| pod.metadata.deletion_timestamp.is_none());
    Ok(found)
}

/// How a JobSet has ended, if it has.
pub(super) async fn ended(story: &Story, name: &str) -> Result<bool> {
    let (client, namespace) = (&story.cluster.client, Some(story.namespace.as_str()));
    let sets = dynamic(client, namespace, "jobset.x-k8s.io/v1alpha2", "JobSet");
    let status = sets.get(name).await.context("the JobSet")?.data["status"].clone();
    ensure!(status["terminalState"] != "Failed", "{name} has failed: {status}");
    Ok(status["terminalState"] == "Completed")
}
