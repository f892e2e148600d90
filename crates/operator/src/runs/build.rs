//! The JobSet of a run: one pod per node, within the Pod Security Standards. Pure.
//!
//! Where it runs is said by node selectors, which are all of its pods that a suspended JobSet lets change.

use super::marks::{CAPACITY_TYPE, PLACED, SAVE_EVERY, ZONE};
use flyball_core::units::Micros;
use flyball_resources::training_run::RunJobSpec;
use flyball_resources::{TrainingRun, labels};
use flyball_training::TrainingChoice;
use kube::ResourceExt as _;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Kueue's label for the queue. That project's own.
const QUEUE: &str = "kueue.x-k8s.io/queue-name";

/// Where processes of a run meet.
const MASTER_PORT: u16 = 29_500;

/// A gang on spot machines is interrupted often, and JobSet counts; what ends a run is its deadline and its owner.
const MAX_RESTARTS: u32 = 1_000;

/// What a JobSet is made for.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobSetPlan<'a> {
    /// Where the run should be; anywhere if nothing was decided.
    pub(super) choice: Option<&'a TrainingChoice>,
    /// Whether nodes say how they are paid for: then those on demand are asked for by their label.
    pub(super) labelled: bool,
    /// Labels of the nodes that it may be on, where that is all that is decided.
    pub(super) nodes: Option<&'a BTreeMap<String, String>>,
    /// How nodes count its accelerators.
    pub(super) resource: &'a str,
    /// Time between saves that its processes are told. Of a JobSet that exists only the node selector may change.
    pub(super) save_every: Option<Micros>,
    /// Whether it stands still, for one that Kueue does not queue. `None` leaves that to Kueue.
    pub(super) suspend: Option<bool>,
}

/// The JobSet of a run with a `job`.
pub(super) fn job_set(run: &TrainingRun, job: &RunJobSpec, plan: &JobSetPlan<'_>) -> Value {
    let name = run.name_any();
    let mut marks = Map::from_iter([(labels::RUN.to_owned(), json!(name))]);
    if let Some(queue) = &job.queue {
        marks.insert(QUEUE.to_owned(), json!(queue));
    }
    let placed = plan.choice.map_or_else(|| "anywhere".to_owned(), ToString::to_string);
    let mut spec = json!({
        "failurePolicy": { "maxRestarts": MAX_RESTARTS },
        "replicatedJobs": [{
            "name": "workers",
            "replicas": 1,
            "template": { "spec": {
                "parallelism": job.nodes,
                "completions": job.nodes,
                "completionMode": "Indexed",
                "backoffLimit": 0,
                "template": pod(run, job, plan),
            } },
        }],
    });
    if let Some(suspend) = plan.suspend {
        spec["suspend"] = json!(suspend);
    }
    json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "name": name,
            "namespace": run.namespace(),
            "labels": marks,
            "annotations": { PLACED: placed },
            "ownerReferences": [{
                "apiVersion": "flyball.dev/v1alpha1",
                "kind": "TrainingRun",
                "name": name,
                "uid": run.uid(),
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": spec,
    })
}

fn pod(run: &TrainingRun, job: &RunJobSpec, plan: &JobSetPlan<'_>) -> Value {
    let mut container = json!({
        "name": "train",
        "image": job.image,
        "env": environment(run, job, plan.save_every),
        "ports": [{ "name": "heartbeat", "containerPort": run.spec.checkpoint.port }],
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": { "drop": ["ALL"] },
        },
    });
    if !job.command.is_empty() {
        container["command"] = json!(job.command);
    }
    if job.gpus_per_node > 0 {
        let limits = Map::from_iter([(plan.resource.to_owned(), json!(job.gpus_per_node))]);
        container["resources"] = json!({ "limits": limits });
    }
    let mut spec = json!({
        "restartPolicy": "Never",
        "automountServiceAccountToken": false,
        "securityContext": { "seccompProfile": { "type": "RuntimeDefault" } },
        "nodeSelector": selector(plan),
    });
    if let Some(user) = job.run_as_user {
        let context = &mut spec["securityContext"];
        context["runAsNonRoot"] = json!(true);
        // A volume is then written by the same group.
        for field in ["runAsUser", "runAsGroup", "fsGroup"] {
            context[field] = json!(user);
        }
    }
    if let Some(volume) = &job.checkpoints {
        container["volumeMounts"] =
            json!([{ "name": "checkpoints", "mountPath": volume.mount_path }]);
        spec["volumes"] = json!([{
            "name": "checkpoints", "persistentVolumeClaim": { "claimName": volume.claim },
        }]);
    }
    spec["containers"] = json!([container]);
    let marks = Map::from_iter([(labels::RUN.to_owned(), json!(run.name_any()))]);
    json!({ "metadata": { "labels": marks }, "spec": spec })
}

/// Which nodes may run it.
fn selector(plan: &JobSetPlan<'_>) -> Value {
    match plan.choice {
        Some(TrainingChoice::Spot(zone)) => {
            json!({ CAPACITY_TYPE: "spot", ZONE: zone.as_str() })
        }
        Some(TrainingChoice::OnDemand) if plan.labelled => json!({ CAPACITY_TYPE: "on-demand" }),
        _ => json!(plan.nodes.cloned().unwrap_or_default()),
    }
}

/// What `torchrun` reads, and what the run is told.
fn environment(run: &TrainingRun, job: &RunJobSpec, save_every: Option<Micros>) -> Value {
    let name = run.name_any();
    let place = "metadata.annotations['batch.kubernetes.io/job-completion-index']";
    let mut all = vec![
        json!({ "name": "PET_NNODES", "value": job.nodes.to_string() }),
        json!({ "name": "PET_NPROC_PER_NODE", "value": job.gpus_per_node.max(1).to_string() }),
        json!({ "name": "PET_NODE_RANK", "valueFrom": { "fieldRef": { "fieldPath": place } } }),
        json!({ "name": "PET_MASTER_ADDR", "value": format!("{name}-workers-0-0.{name}") }),
        json!({ "name": "PET_MASTER_PORT", "value": MASTER_PORT.to_string() }),
        json!({
            "name": "FLYBALL_HEARTBEAT_PORT", "value": run.spec.checkpoint.port.to_string(),
        }),
    ];
    if let Some(every) = save_every {
        let seconds = every.whole_seconds().max(1).to_string();
        all.push(json!({ "name": SAVE_EVERY, "value": seconds }));
    }
    Value::Array(all)
}
