//! Training runs on a real JobSet and a real Kueue: one that is adopted, and one that is made.
//!
//! A run is a shell loop that writes a heartbeat for each step; its log is where they are read.

use super::boards::{self, Prometheus};
use super::rig::{self, Setup};
use anyhow::{Context, Result, ensure};
use flyball_e2e::process::ServiceProcess;
use flyball_e2e::{
    Story, add_queue, create, dynamic, figure, in_namespace, kubectl, note, remove_of_cluster,
    remove_queue, until,
};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Only so that it ends.
const LONG: Duration = Duration::from_secs(180);

/// Steps of a run, of a second each, with a save every ten.
const STEPS: u64 = 40;

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn training_runs_are_adopted_by_six_lines_and_made_by_fifteen() -> Result<()> {
    in_namespace(&[], async |story| {
        rig::crds(story)?;
        places(story).await?;
        let told = tell(story).await;
        remove(story).await?;
        told
    })
    .await
}

async fn tell(story: &Story) -> Result<()> {
    let (operator, _) = rig::operator(story, &Setup::default(), None)?;
    operator.ready().await?;
    let prometheus = Prometheus::start(&[operator.admin])?;
    Box::pin(adopted(story, &operator)).await?;
    Box::pin(made(story, &operator, &prometheus)).await?;
    ensure!(operator.metric("flyball_training_runs").await? >= 2.0, "both are counted");
    Ok(())
}

/// Somebody's own JobSet, and the six lines of the guide.
async fn adopted(story: &Story, operator: &ServiceProcess) -> Result<()> {
    let page = page("adopt-run.yaml")?.replace("team-a", &story.namespace);
    kubectl(&story.cluster, &["apply", "--filename", "-"], &page)?;
    seen(story, operator, "ft-7b", "what it names to be missing", |status| {
        condition(status, "Stalled") == "TargetNotFound"
    })
    .await?;
    figure("training.adopt_yaml_lines", page.lines().count() as f64, "lines", "<=6")?;
    // A shell answers no requests; and stories beside this one have Pools of the same nodes.
    let more = format!("spec:\n  checkpoint: {{ heartbeat: Log }}\n  pool: {}\n", story.namespace);
    let logs = page.replace("spec:\n", &more);
    kubectl(&story.cluster, &["apply", "--filename", "-"], &logs)?;
    story.apply(&job_set(story).to_string())?;
    let status = seen(story, operator, "ft-7b", "steps, an end and a decision", |status| {
        status["progress"]["step"].as_u64() > Some(3)
            && status["placement"]["nodes"] == 2
            && status["cost"]["hourly"] == "7.2000"
            && status["expectedEnd"]["origin"] == "Measured"
            && status["decision"]["choice"] == "on-demand"
    })
    .await?;
    note(&format!("decided: {}", status["decision"]["message"]));
    note(&flyball(story, &["why", "run/ft-7b"])?.1);
    let (success, shown) = flyball(story, &["run", "ft-7b", "--wait", "10m"])?;
    ensure!(success, "it did not end well: {shown}");
    note(&shown);
    ended(&run(story, "ft-7b").await?)?;
    let set = dynamic(
        &story.cluster.client,
        Some(&story.namespace),
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
    );
    let managers = set.get("ft-7b").await?.metadata.managed_fields.unwrap_or_default();
    let ours = managers.iter().any(|one| one.manager.as_deref() == Some("flyball-operator"));
    ensure!(!ours, "Recommend has written to the JobSet");
    Ok(())
}

/// Fifteen lines in Act, with the image and the program of the story.
async fn made(story: &Story, operator: &ServiceProcess, prometheus: &Prometheus) -> Result<()> {
    let wanted = json!({
        "apiVersion": "flyball.dev/v1alpha1", "kind": "TrainingRun",
        "metadata": { "name": "made" },
        "spec": {
            "mode": "Act", "pool": story.namespace, "deadline": "2030-01-01T00:00:00Z",
            "steps": STEPS, "checkpoint": { "heartbeat": "Log" },
            "job": {
                "image": shell(), "command": ["/bin/sh", "-c", program()],
                "nodes": 2, "gpusPerNode": 1, "queue": "research", "runAsUser": 65_532,
            },
        },
    });
    story.apply(&wanted.to_string())?;
    let status = seen(story, operator, "made", "Kueue to admit it, and steps", |status| {
        status["placement"]["admitted"] == true && status["progress"]["step"].as_u64() > Some(1)
    })
    .await?;
    ensure!(status["placement"]["nodes"] == 2, "{status:#}");
    let mut panels = boards::queries("operator-training", &story.namespace)?;
    // This Pool lends nothing.
    panels.retain(|(_, query)| !query.contains("flyball_pool_"));
    prometheus.shows_all(&panels).await?;
    let (success, shown) = flyball(story, &["run", "made", "--wait", "10m"])?;
    ensure!(success, "it did not end well: {shown}");
    note(&shown);
    ended(&run(story, "made").await?)
}

/// What the status of a run that has ended must have.
fn ended(status: &Value) -> Result<()> {
    ensure!(condition(status, "Complete") == "RunComplete", "{status:#}");
    ensure!(condition(status, "DeadlineMet") == "RunComplete", "{status:#}");
    ensure!(status["progress"]["step"] == STEPS, "{status:#}");
    ensure!(status["progress"]["savedStep"] == STEPS, "{status:#}");
    let spent: f64 = status["cost"]["spent"].as_str().unwrap_or_default().parse()?;
    ensure!(spent > 0.0 && status["cost"]["expected"] == status["cost"]["spent"], "{status:#}");
    ensure!(status["attemptCount"] == 1 && status["lost"].is_null(), "{status:#}");
    Ok(())
}

/// Steps of a second; every tenth is saved. The last words are its last step.
fn program() -> String {
    let beat = "{\\\"version\\\":1,\\\"step\\\":$i,\\\"savedStep\\\":$((i/10*10)),\\\"totalSteps\\\":STEPS,\
                \\\"stepSeconds\\\":1.0,\\\"saveSeconds\\\":0.1,\\\"attempt\\\":\\\"$start\\\",\\\"at\\\":\\\"$(date -u +%Y-%m-%dT%H:%M:%SZ)\\\"}";
    let all = format!(
        "start=$(date +%s); i=0; while [ $i -lt STEPS ]; do i=$((i+1)); sleep 1; \
         echo \"flyball-heartbeat {beat}\"; done; sleep 8"
    );
    all.replace("STEPS", &STEPS.to_string())
}

/// The image with a shell; on other clusters any that has one may be named.
pub(super) fn shell() -> String {
    std::env::var("FLYBALL_E2E_SHELL").unwrap_or_else(|_| "busybox".into())
}

/// A JobSet as somebody has it: one Job of two pods.
fn job_set(story: &Story) -> Value {
    json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": {
            "name": "ft-7b", "namespace": story.namespace,
            "labels": { "kueue.x-k8s.io/queue-name": "research" },
        },
        "spec": { "replicatedJobs": [{ "name": "workers", "replicas": 1, "template": { "spec": {
            "parallelism": 2, "completions": 2, "completionMode": "Indexed", "backoffLimit": 0,
            "template": { "spec": {
                "restartPolicy": "Never",
                "securityContext": {
                    "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" },
                },
                "containers": [{
                    "name": "train", "image": shell(), "command": ["/bin/sh", "-c", program()],
                    "resources": { "limits": { "nvidia.com/gpu": 1 } },
                    "securityContext": {
                        "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] },
                    },
                }],
            } },
        } } }] },
    })
}

/// A Pool with prices, and a queue. What is of the cluster carries the namespace's name.
async fn places(story: &Story) -> Result<()> {
    let name = &story.namespace;
    let pool = json!({
        "metadata": { "name": name },
        "spec": {
            "accelerator": "h100-sxm-80gb", "nodeSelector": { "flyball.dev/pool": "test" },
            "prices": [
                { "purchase": "OnDemand", "perGpuHour": "3.60" },
                { "purchase": "Spot", "perGpuHour": "0.90" },
            ],
        },
    });
    create(story, "flyball.dev/v1alpha1", "Pool", pool).await?;
    add_queue(story, "research", 4, &json!({})).await
}

async fn remove(story: &Story) -> Result<()> {
    remove_queue(story).await?;
    remove_of_cluster(story, "flyball.dev/v1alpha1", "Pool", &story.namespace).await
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

/// The status of a run.
pub(super) async fn run(story: &Story, name: &str) -> Result<Value> {
    let (client, namespace) = (&story.cluster.client, Some(story.namespace.as_str()));
    let runs = dynamic(client, namespace, "flyball.dev/v1alpha1", "TrainingRun");
    Ok(runs.get(name).await?.data["status"].clone())
}

/// The reason of a condition; nothing where it is not there.
pub(super) fn condition<'a>(status: &'a Value, kind: &str) -> &'a str {
    let all = status["conditions"].as_array();
    let one = all.and_then(|all| all.iter().find(|one| one["type"] == kind));
    one.and_then(|one| one["reason"].as_str()).unwrap_or_default()
}

/// Whether a command says yes, and what it says.
pub(super) fn flyball(story: &Story, args: &[&str]) -> Result<(bool, String)> {
    let output = Command::new(&story.cluster.binary)
        .args(args)
        .args(["--namespace", &story.namespace])
        .env("KUBECONFIG", &story.cluster.kubeconfig)
        .env("NO_COLOR", "1")
        .output()?;
    let said = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
}

fn page(name: &str) -> Result<String> {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/operator");
    Ok(std::fs::read_to_string(pages.join(name))?)
}
