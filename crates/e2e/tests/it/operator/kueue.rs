//! What the operator says to Kueue about training runs: whom a preemption should take, and who may not start yet.
//!
//! Runs are shell loops that write lines as people read them; their log is where progress is read.

use super::rig::{self, Setup};
use super::training::{condition, run, shell};
use anyhow::{Context, Result, ensure};
use flyball_e2e::process::ServiceProcess;
use flyball_e2e::{
    KUEUE, Story, add_queue, create, dynamic, in_namespace, note, remove_of_cluster, remove_queue,
    until,
};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use std::time::Duration;

/// Only so that it ends.
const LONG: Duration = Duration::from_secs(240);

const BOOST: &str = "kueue.x-k8s.io/priority-boost";

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn a_preemption_takes_the_run_that_has_just_saved_and_not_the_newest() -> Result<()> {
    in_namespace(&[], async |story| {
        rig::crds(story)?;
        let preempts = json!({ "preemption": { "withinClusterQueue": "LowerPriority" } });
        add_queue(story, "research", 4, &preempts).await?;
        let class = json!({ "metadata": { "name": story.namespace }, "value": 1_000 });
        create(story, KUEUE, "WorkloadPriorityClass", class).await?;
        let setup = Setup { kueue: Some("priority_boost = true"), ..Setup::default() };
        let played = Box::pin(preempted(story, &setup)).await;
        remove_queue(story).await?;
        remove_of_cluster(story, KUEUE, "WorkloadPriorityClass", &story.namespace).await?;
        played
    })
    .await
}

async fn preempted(story: &Story, setup: &Setup) -> Result<()> {
    let (operator, _) = rig::operator(story, setup, None)?;
    operator.ready().await?;
    // The older of the two saves every five steps, the newer never: by itself Kueue takes the newer.
    for (name, save_every) in [("saves", 5), ("forgets", 1_000)] {
        story.apply(&training_run(name, &json!({})).to_string())?;
        story.apply(&job_set(name, save_every, None).to_string())?;
        seen(story, &operator, name, "steps", |status| {
            status["progress"]["step"].as_u64() > Some(1)
        })
        .await?;
    }
    // A minute of two GPUs is what makes a difference.
    let status = seen(story, &operator, "forgets", "to go after the other", |status| {
        status["preemption"]["place"] == 2 && status["preemption"]["of"] == 2
    })
    .await?;
    note(&format!("forgets: {}", status["preemption"]));
    note(&format!("saves: {}", run(story, "saves").await?["preemption"]));
    until("Kueue to be told", LONG, async || {
        let marked = workload(story, "forgets").await?.annotations().get(BOOST).cloned();
        Ok((marked.as_deref() == Some("1")).then_some(()))
    })
    .await
    .with_context(|| operator.log())?;
    ensure!(workload(story, "saves").await?.annotations().get(BOOST).is_none(), "it goes first");

    story.apply(&job_set("valuable", 1_000, Some(&story.namespace)).to_string())?;
    until("the valuable one to run", LONG, async || {
        Ok((!pods(story, "valuable").await?.is_empty()).then_some(()))
    })
    .await?;
    let taken = workload(story, "saves").await?;
    ensure!(is_so(&taken, "Preempted"), "{:#}", taken.data["status"]);
    let spared = workload(story, "forgets").await?;
    ensure!(
        is_so(&spared, "Admitted") && !is_so(&spared, "Evicted"),
        "{:#}",
        spared.data["status"]
    );
    let status = run(story, "forgets").await?;
    ensure!(status["attemptCount"] == 1 && status["lost"].is_null(), "{status:#}");
    // What is not admitted has no mark, or it would come before others of its priority.
    until("the other to have no rank any more", LONG, async || {
        let status = run(story, "saves").await?;
        Ok((status["preemption"].is_null()).then_some(()))
    })
    .await?;
    ensure!(workload(story, "saves").await?.annotations().get(BOOST).is_none(), "it has a mark");
    Ok(())
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn an_adopted_run_that_is_to_wait_does_not_start_for_a_moment() -> Result<()> {
    in_namespace(&[], async |story| {
        rig::crds(story)?;
        let name = &story.namespace;
        let check = json!({
            "metadata": { "name": name }, "spec": { "controllerName": "flyball.dev/runs" },
        });
        create(story, KUEUE, "AdmissionCheck", check).await?;
        let asks = json!({ "admissionChecksStrategy": { "admissionChecks": [{ "name": name }] } });
        add_queue(story, "research", 4, &asks).await?;
        let setup = Setup { kueue: Some("admission_checks = true"), ..Setup::default() };
        let played = Box::pin(held(story, &setup)).await;
        remove_queue(story).await?;
        remove_of_cluster(story, KUEUE, "AdmissionCheck", name).await?;
        played
    })
    .await
}

async fn held(story: &Story, setup: &Setup) -> Result<()> {
    let (operator, _) = rig::operator(story, setup, None)?;
    operator.ready().await?;
    let checks = dynamic(&story.cluster.client, None, KUEUE, "AdmissionCheck");
    until("the operator to say that it answers", LONG, async || {
        Ok(is_so(&checks.get(&story.namespace).await?, "Active").then_some(()))
    })
    .await
    .with_context(|| operator.log())?;
    // Of the first no TrainingRun speaks; the second has nothing left to spend.
    story.apply(&job_set("others", 1_000, None).to_string())?;
    until("what is not ours to start", LONG, async || {
        Ok((!pods(story, "others").await?.is_empty()).then_some(()))
    })
    .await
    .with_context(|| operator.log())?;
    let nothing = json!({ "budget": { "amount": "0" } });
    story.apply(&training_run("broke", &nothing).to_string())?;
    seen(story, &operator, "broke", "its workload to be missing", |status| {
        condition(status, "Stalled") == "TargetNotFound"
    })
    .await?;
    story.apply(&job_set("broke", 1_000, None).to_string())?;
    until("it to be held back", LONG, async || {
        ensure!(pods(story, "broke").await?.is_empty(), "it has started");
        let workloads = workloads(story).await?;
        let Some(workload) = workloads.iter().find(|one| is_of(one, "broke")) else {
            return Ok(None);
        };
        ensure!(!is_so(workload, "Admitted"), "Kueue has admitted it");
        Ok(evicted_by_check(workload).then_some(()))
    })
    .await
    .with_context(|| operator.log())?;
    let status = run(story, "broke").await?;
    ensure!(condition(&status, "WithinBudget") == "RunBudgetSpent", "{status:#}");
    note(&format!("held back: {}", workload(story, "broke").await?.data["status"]["conditions"]));

    let (client, namespace) = (&story.cluster.client, Some(story.namespace.as_str()));
    let runs = dynamic(client, namespace, "flyball.dev/v1alpha1", "TrainingRun");
    let more = json!({ "spec": { "budget": { "amount": "100" } } });
    runs.patch("broke", &PatchParams::default(), &Patch::Merge(&more)).await?;
    until("it to start once there is money", LONG, async || {
        Ok((!pods(story, "broke").await?.is_empty()).then_some(()))
    })
    .await
    .with_context(|| operator.log())
}

/// A TrainingRun in Act of the JobSet of its name, with `more` in its spec.
fn training_run(name: &str, more: &Value) -> Value {
    let mut spec = json!({
        "mode": "Act",
        "workloadRef": { "kind": "JobSet", "name": name },
        "checkpoint": {
            "heartbeat": "Log", "restartSeconds": 1,
            "logPatterns": {
                "step": "^step (?P<step>[0-9]+)/(?P<total>[0-9]+) loss",
                "saved": "^checkpoint (?P<saved>[0-9]+) saved",
            },
        },
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "TrainingRun",
        "metadata": { "name": name }, "spec": spec,
    })
}

/// Somebody's own JobSet of one pod with two GPUs: steps of a second, with a save after so many.
fn job_set(name: &str, save_every: u32, class: Option<&str>) -> Value {
    let program = format!(
        "trap 'exit 143' TERM; i=0\n\
         while [ $i -lt 600 ]; do\n\
           sleep 1 & wait $!\n\
           i=$((i+1)); echo \"step $i/600 loss 2.1\"\n\
           if [ $((i % {save_every})) = 0 ]; then echo \"checkpoint $i saved\"; fi\n\
         done"
    );
    let mut labels = json!({ "kueue.x-k8s.io/queue-name": "research" });
    if let Some(class) = class {
        labels["kueue.x-k8s.io/priority-class"] = class.into();
    }
    json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": { "name": name, "labels": labels },
        "spec": { "replicatedJobs": [{ "name": "workers", "replicas": 1, "template": { "spec": {
            "parallelism": 1, "completions": 1, "completionMode": "Indexed", "backoffLimit": 0,
            "template": {
                "metadata": { "labels": { "gang": name } },
                "spec": {
                    "restartPolicy": "Never",
                    "securityContext": {
                        "runAsNonRoot": true, "runAsUser": 65_532,
                        "seccompProfile": { "type": "RuntimeDefault" },
                    },
                    "containers": [{
                        "name": "train", "image": shell(), "command": ["/bin/sh", "-c", program],
                        "resources": { "limits": { "nvidia.com/gpu": 2 } },
                        "securityContext": {
                            "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] },
                        },
                    }],
                },
            },
        } } }] },
    })
}

/// Waits until the status of a run is so.
async fn seen(
    story: &Story,
    operator: &ServiceProcess,
    name: &str,
    what: &str,
    is: impl Fn(&Value) -> bool,
) -> Result<Value> {
    let mut last = Value::Null;
    let found = until(what, LONG, async || {
        last = run(story, name).await?;
        Ok(is(&last).then(|| last.clone()))
    })
    .await;
    found.with_context(|| format!("{last:#}\nthe operator's log:\n{}", operator.log()))
}

/// The names of pods of a gang: it has some once it was admitted.
async fn pods(story: &Story, gang: &str) -> Result<Vec<String>> {
    let pods: Api<Pod> = Api::namespaced(story.cluster.client.clone(), &story.namespace);
    let of_gang = ListParams::default().labels(&format!("gang={gang}"));
    Ok(pods.list(&of_gang).await?.items.iter().map(Pod::name_any).collect())
}

async fn workloads(story: &Story) -> Result<Vec<DynamicObject>> {
    let namespace = Some(story.namespace.as_str());
    let api = dynamic(&story.cluster.client, namespace, KUEUE, "Workload");
    Ok(api.list(&ListParams::default()).await?.items)
}

/// Kueue's Workload of a JobSet.
async fn workload(story: &Story, name: &str) -> Result<DynamicObject> {
    let all = workloads(story).await?;
    all.into_iter().find(|one| is_of(one, name)).with_context(|| format!("no Workload of {name}"))
}

fn is_of(workload: &DynamicObject, name: &str) -> bool {
    workload.owner_references().iter().any(|owner| owner.kind == "JobSet" && owner.name == name)
}

/// Whether a condition is true.
fn is_so(object: &DynamicObject, kind: &str) -> bool {
    let all = object.data["status"]["conditions"].as_array();
    let mut all = all.into_iter().flatten();
    all.any(|one| one["type"] == kind && one["status"] == "True")
}

fn evicted_by_check(workload: &DynamicObject) -> bool {
    let all = workload.data["status"]["conditions"].as_array();
    let mut all = all.into_iter().flatten();
    all.any(|one| one["type"] == "Evicted" && one["reason"] == "AdmissionCheck")
}
