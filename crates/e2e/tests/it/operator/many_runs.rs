//! Many training runs on many emulated nodes: how long a round takes, and that nothing is written without change.

use super::rig::{self, Setup};
use anyhow::{Result, ensure};
use flyball_e2e::process::ServiceProcess;
use flyball_e2e::{Story, figure, in_namespace, is_long, kubectl, kubectl_output, note, until};
use serde_json::{Value, json};
use std::time::Duration;

/// Only so that it ends.
const LONG: Duration = Duration::from_secs(600);

/// Rounds come every five seconds, and numbers are written at most twice a minute.
const STILL: Duration = Duration::from_secs(45);

/// Two nodes for each run.
const RUNS: usize = 20;
const RUNS_LONG: usize = 500;

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn many_training_runs_are_written_only_when_something_changes() -> Result<()> {
    in_namespace(&[], async |story| {
        rig::crds(story)?;
        let runs = if is_long() { RUNS_LONG } else { RUNS };
        feed(story, &["create"], (0..2 * runs).map(|place| node(story, place)))?;
        let told = tell(story, runs).await;
        let ours = format!("flyball.dev/pool={}", story.namespace);
        kubectl(&story.cluster, &["delete", "nodes", "--selector", &ours, "--wait=false"], "")?;
        kubectl(&story.cluster, &["delete", "pool", &story.namespace], "")?;
        told
    })
    .await
}

async fn tell(story: &Story, runs: usize) -> Result<()> {
    story.apply(&pool(story).to_string())?;
    feed(story, &APPLY, (0..runs).map(|place| job(story, place)))?;
    feed(story, &APPLY, (0..runs).map(|place| run(story, place)))?;
    let (operator, _) = rig::operator(story, &Setup::default(), None)?;
    operator.ready().await?;
    let all = format!("{runs} runs that wait");
    until(&all, LONG, async || Ok((known(story, "RunWaiting")? == runs).then_some(()))).await?;
    let before = writes(&operator).await?;
    tokio::time::sleep(STILL).await;
    let without_change = writes(&operator).await? - before;
    note(&format!("{runs} runs wait: {without_change} writes in {STILL:?}"));
    ensure!(without_change < 0.5, "{without_change} writes, and nothing had changed");
    let started = |place| {
        let mut job = job(story, place);
        job["spec"]["suspend"] = false.into();
        job
    };
    feed(story, &APPLY, (0..runs).map(started))?;
    let all = format!("{runs} runs that have all their pods");
    until(&all, LONG, async || Ok((known(story, "RunProgressing")? == runs).then_some(()))).await?;
    let mut most = [0.0_f64; 3];
    for _ in 0..6 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        for (most, step) in most.iter_mut().zip(["observe", "decide", "write"]) {
            *most = most.max(took(&operator, step).await?);
        }
    }
    let [observe, decide, write] = most.map(|seconds| seconds * 1_000.0);
    note(&format!(
        "{runs} runs on {} nodes, longest of the rounds: observe {observe:.0} ms, decide {decide:.0} ms, \
         write {write:.0} ms; {:.0} MB",
        2 * runs,
        operator.resident()? as f64 / 1e6,
    ));
    figure("training.round_decide_ms", decide, "ms", "<=1000")?;
    figure("training.round_write_ms", write, "ms", "<=5000")?;
    figure("training.writes_without_change", without_change, "writes", "=0")
}

/// Runs whose condition Ready has this reason.
fn known(story: &Story, reason: &str) -> Result<usize> {
    let path =
        r#"jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].reason}{"\n"}{end}"#;
    let namespace = ["--namespace", &story.namespace];
    let args = ["get", "trainingruns", namespace[0], namespace[1], "--output", path];
    let text = kubectl_output(&story.cluster, &args, "")?;
    Ok(text.lines().filter(|line| *line == reason).count())
}

/// Statuses of runs and models. Those of Pools that stories beside this one have are none of them.
async fn writes(operator: &ServiceProcess) -> Result<f64> {
    operator.metric("flyball_operator_writes_total{kind=\"status\"}").await
}

async fn took(operator: &ServiceProcess, step: &str) -> Result<f64> {
    operator.metric(&format!("flyball_training_round_seconds{{step=\"{step}\"}}")).await
}

const APPLY: [&str; 3] = ["apply", "--server-side", "--force-conflicts"];

/// Gives many objects to one kubectl at a time.
fn feed(story: &Story, verb: &[&str], items: impl Iterator<Item = Value>) -> Result<()> {
    let items: Vec<Value> = items.collect();
    for part in items.chunks(250) {
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": part });
        kubectl(&story.cluster, &[verb, &["--filename", "-"]].concat(), &list.to_string())?;
    }
    Ok(())
}

fn pool(story: &Story) -> Value {
    json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "Pool",
        "metadata": { "name": story.namespace },
        "spec": {
            "accelerator": "h100-sxm-80gb", "nodeSelector": { "flyball.dev/pool": story.namespace },
            "prices": [
                { "purchase": "OnDemand", "perGpuHour": "3.60" },
                { "purchase": "Spot", "perGpuHour": "0.90" },
            ],
        },
    })
}

/// A node that only the API server knows; kwok says that its pods run.
fn node(story: &Story, place: usize) -> Value {
    let resources = json!({ "cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8" });
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": format!("{}-{place:04}", story.namespace),
            "annotations": { "kwok.x-k8s.io/node": "fake" },
            "labels": {
                "type": "kwok", "flyball.dev/pool": story.namespace,
                "topology.kubernetes.io/zone": format!("zone-{}", place % 3),
                "karpenter.sh/capacity-type": if place.is_multiple_of(2) { "spot" } else { "on-demand" },
            },
        },
        "spec": { "taints": [
            { "key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule" },
        ] },
        "status": { "capacity": resources, "allocatable": resources },
    })
}

/// A Job of two pods that never ends, suspended.
fn job(story: &Story, place: usize) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "name": format!("run-{place}"), "namespace": story.namespace },
        "spec": {
            "suspend": true, "parallelism": 2, "completions": 2, "completionMode": "Indexed",
            "template": { "spec": {
                "restartPolicy": "Never",
                "nodeSelector": { "flyball.dev/pool": story.namespace },
                "tolerations": [{ "key": "kwok.x-k8s.io/node", "operator": "Exists" }],
                "securityContext": {
                    "runAsNonRoot": true, "runAsUser": 65532,
                    "seccompProfile": { "type": "RuntimeDefault" },
                },
                "containers": [{
                    "name": "train", "image": "flyball.test/pause:v1",
                    "resources": { "limits": { "nvidia.com/gpu": 8 } },
                    "securityContext": {
                        "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] },
                    },
                }],
            } },
        },
    })
}

fn run(story: &Story, place: usize) -> Value {
    json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "TrainingRun",
        "metadata": { "name": format!("run-{place}"), "namespace": story.namespace },
        "spec": {
            "workloadRef": { "kind": "Job", "name": format!("run-{place}") },
            "pool": story.namespace, "deadline": "2030-01-01T00:00:00Z", "workSeconds": 86_400,
            "checkpoint": { "heartbeat": "None" },
        },
    })
}
