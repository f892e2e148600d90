//! `flyball check` from outside and inside, with everything there and with Kueue taken away.

use anyhow::{Context, Result, ensure};
use flyball_e2e::{Cluster, Story, in_namespace, job_exit, kubectl, pod_log, until};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::Api;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const KUEUE: &str = "FLY-301";
const JOBSET: &str = "FLY-302";
const PROMETHEUS: &str = "FLY-303";
const ACCELERATORS: &str = "FLY-401";

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn check_from_outside_finds_everything() -> Result<()> {
    in_namespace(&[], async |story| {
        let (exit, answer) = check(&story.cluster, &["--wait", "60s"])?;
        ensure!(exit == 0, "exit {exit}: {answer:#}");
        for code in [KUEUE, JOBSET, PROMETHEUS, ACCELERATORS] {
            ensure!(status(&answer, code)? == "ok", "{code} is not ok: {answer:#}");
        }
        // The same answer for people, with the same exit status and a verdict last.
        let table = flyball(&story.cluster, &["check"])?;
        ensure!(table.status.code() == Some(0));
        let text = String::from_utf8(table.stdout)?;
        ensure!(
            text.trim_end().lines().last().is_some_and(|l| l.starts_with("check passed")),
            "{text}"
        );
        Ok(())
    })
    .await
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn check_runs_as_the_job_of_the_guide() -> Result<()> {
    in_namespace(&[], async |story| {
        let manifest = manifest_of_the_guide(story)?;
        kubectl(&story.cluster, &["apply", "--filename", "-"], &manifest)?;
        let outcome = wait_for_job(story).await;
        // Two of its objects are cluster-wide and do not go with the namespace.
        kubectl(&story.cluster, &["delete", "--wait=false", "--filename", "-"], &manifest)?;
        outcome
    })
    .await
}

async fn wait_for_job(story: &Story) -> Result<()> {
    let (client, namespace) = (&story.cluster.client, &story.namespace);
    let exit = until("the end of the job", Duration::from_secs(60), async || {
        job_exit(client, namespace, namespace).await
    })
    .await?;
    let log = pod_log(client, namespace, namespace).await?;
    ensure!(exit == 0, "exit {exit}:\n{log}");
    // The job has the right to read and no more, and the check must notice.
    ensure!(log.contains("FLY-211"), "no warning about the missing right to scale:\n{log}");
    ensure!(log.contains("check passed"), "no verdict:\n{log}");
    Ok(())
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn check_says_that_kueue_is_missing_and_finds_it_again() -> Result<()> {
    in_namespace(&[], async |story| {
        let manifest = std::env::var("FLYBALL_E2E_KUEUE").context("FLYBALL_E2E_KUEUE")?;
        let removed =
            kubectl(&story.cluster, &["delete", "--filename", &manifest, "--timeout=90s"], "");
        let without = check(&story.cluster, &[]);
        // Put back before anything is judged: later stories need it, whatever this one finds.
        let apply =
            ["apply", "--server-side", "--force-conflicts", "--field-manager=flyball-xtask"];
        kubectl(&story.cluster, &[&apply[..], &["--filename", &manifest]].concat(), "")?;
        wait_for_kueue(&story.cluster).await?;

        removed?;
        let (exit, answer) = without?;
        ensure!(exit == 0, "a missing Kueue is a warning, yet exit {exit}: {answer:#}");
        ensure!(status(&answer, KUEUE)? == "warn", "{answer:#}");
        ensure!(status(&answer, JOBSET)? == "ok", "{answer:#}");
        let (exit, answer) = check(&story.cluster, &["--wait", "60s", "--fail-on", "warning"])?;
        ensure!(exit == 0 && status(&answer, KUEUE)? == "ok", "{answer:#}");
        Ok(())
    })
    .await
}

async fn wait_for_kueue(cluster: &Cluster) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), "kueue-system");
    until("Kueue to be back", Duration::from_secs(120), async || {
        let found = deployments.get_opt("kueue-controller-manager").await?;
        let available = found.and_then(|d| d.status).and_then(|s| s.available_replicas);
        Ok((available == Some(1)).then_some(()))
    })
    .await
}

/// Runs `flyball check -o json` from outside and returns its exit status and answer.
fn check(cluster: &Cluster, args: &[&str]) -> Result<(i32, Value)> {
    let mut words = vec!["check", "-o", "json"];
    words.extend(args);
    let output = flyball(cluster, &words)?;
    let exit = output.status.code().context("ended by a signal")?;
    let answer = serde_json::from_slice(&output.stdout).with_context(|| {
        format!("not JSON, and on stderr: {}", String::from_utf8_lossy(&output.stderr))
    })?;
    Ok((exit, answer))
}

fn flyball(cluster: &Cluster, args: &[&str]) -> Result<std::process::Output> {
    let mut command = Command::new(&cluster.binary);
    command.args(args).arg("--kubeconfig").arg(&cluster.kubeconfig);
    command.output().with_context(|| format!("could not run {}", cluster.binary.display()))
}

fn status<'a>(answer: &'a Value, code: &str) -> Result<&'a str> {
    let sections = answer["sections"].as_array().context("an answer without sections")?;
    sections
        .iter()
        .filter_map(|section| section["checks"].as_array())
        .flatten()
        .find(|check| check["code"] == code)
        .and_then(|check| check["status"].as_str())
        .with_context(|| format!("the answer has no {code}"))
}

/// The YAML block of docs/guides/check.md, as a reader would copy it, in the story's namespace.
fn manifest_of_the_guide(story: &Story) -> Result<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/check.md");
    let text = std::fs::read_to_string(page)?;
    let block = text.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next());
    let block = block.context("docs/guides/check.md has no YAML block")?;
    Ok(block
        .replace("namespace: default", &format!("namespace: {}", story.namespace))
        .replace("flyball-check", &story.namespace)
        .replace("flyball.test/flyball:dev", &story.cluster.image))
}
