//! Kubernetes' own autoscaler follows the guide's manifest, to the last replica, and holds still when
//! nobody recommends anything any more.

use super::super::rig::{Rig, Setup};
use anyhow::{Context, Result, ensure};
use flyball_e2e::process::free;
use flyball_e2e::{Story, dynamic, in_namespace, kubectl, note, until};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// One more than this is within the tenth that an HPA ignores by default.
const FIRST: i32 = 11;

/// The controller looks every 15 s, so that this is two looks and more.
const TICKS: Duration = Duration::from_secs(35);

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn trust_an_autoscaler_follows_every_step_and_holds_still_without_an_operator() -> Result<()>
{
    let Ok(host) = std::env::var("FLYBALL_E2E_HOST") else {
        note("left out: FLYBALL_E2E_HOST is not set; only our own API server reaches this machine");
        return Ok(());
    };
    in_namespace(&[], async |story| {
        let scaling = |min: i32| json!({ "mode": "Recommend", "min": min, "max": 20 });
        let setup = Setup { scaling: scaling(FIRST), ..Setup::default() };
        let mut rig = Box::pin(Rig::of(story, setup)).await?;
        let _adapter = Adapter::start(story, &rig, &host)?;
        kubectl(&story.cluster, &["apply", "--filename", "-"], &manifest(&story.namespace)?)?;
        follows(&rig, FIRST).await.with_context(|| autoscaler_text(story))?;
        rig.change(&json!({ "spec": { "scaling": scaling(FIRST + 1) } })).await?;
        follows(&rig, FIRST + 1).await.with_context(|| autoscaler_text(story))?;
        rig.operator.kill()?;
        until("the autoscaler to miss its metric", Duration::from_secs(60), async || {
            Ok(active(story).await?["status"].eq("False").then_some(()))
        })
        .await?;
        tokio::time::sleep(TICKS).await;
        let left = rig.replicas().await?;
        ensure!(
            left == FIRST + 1,
            "{left} replicas without an operator: {}",
            autoscaler_text(story)
        );
        note("11, then 12 replicas by the guide's HPA; 12 without an operator");
        Ok(())
    })
    .await
}

/// The guide's manifest, for the story's model.
fn manifest(namespace: &str) -> Result<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/operator/hpa.yaml");
    let text = std::fs::read_to_string(page)?;
    Ok(text.replace("team-a", namespace).replace("qwen", "model"))
}

async fn follows(rig: &Rig<'_>, replicas: i32) -> Result<()> {
    let what = format!("the autoscaler to follow to {replicas}");
    until(&what, Duration::from_secs(120), async || {
        Ok((rig.replicas().await? == replicas).then_some(()))
    })
    .await
}

/// The autoscaler's condition that it has a number to act on.
async fn active(story: &Story) -> Result<Value> {
    let all = dynamic(
        &story.cluster.client,
        Some(&story.namespace),
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
    );
    let status = all.get("model").await?.data["status"].clone();
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    Ok(conditions.into_iter().find(|one| one["type"] == "ScalingActive").unwrap_or_default())
}

fn autoscaler_text(story: &Story) -> String {
    let program = std::env::var("FLYBALL_E2E_KUBECTL").unwrap_or_else(|_| "kubectl".into());
    let described = Command::new(program)
        .arg("--kubeconfig")
        .arg(&story.cluster.kubeconfig)
        .args(["--namespace", &story.namespace, "describe", "hpa", "model"])
        .output();
    described.map_or_else(
        |error| error.to_string(),
        |output| String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}

/// Hands the operator's number on, as Prometheus and its adapter would. The API that it serves belongs to no
/// namespace, so it is removed by hand.
struct Adapter<'a> {
    program: Child,
    story: &'a Story,
}

const API: &str = "v1beta1.external.metrics.k8s.io";

impl<'a> Adapter<'a> {
    fn start(story: &'a Story, rig: &Rig<'_>, host: &str) -> Result<Self> {
        let port = free()?.port();
        let program = Command::new(story.cluster.binary.with_file_name("proving-external"))
            .args(["--listen", &format!("{host}:{port}"), "recommended"])
            .args(["--operator", &rig.operator.admin.to_string()])
            .stdin(Stdio::null())
            .spawn()
            .context("could not start proving-external")?;
        let adapter = Self { program, story };
        let named = json!({ "name": "external", "namespace": story.namespace });
        let slice = json!({
            "name": "external", "namespace": story.namespace,
            "labels": { "kubernetes.io/service-name": "external" },
        });
        let front = json!([{ "name": "https", "port": 443, "targetPort": port }]);
        let back = json!([{ "name": "https", "port": port, "protocol": "TCP" }]);
        let all = json!({ "apiVersion": "v1", "kind": "List", "items": [
            { "apiVersion": "v1", "kind": "Service", "metadata": named,
              "spec": { "ports": front } },
            { "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": slice,
              "addressType": "IPv4", "ports": back,
              "endpoints": [{ "addresses": [host], "conditions": { "ready": true } }] },
            { "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
              "metadata": { "name": API },
              "spec": {
                "group": "external.metrics.k8s.io", "version": "v1beta1",
                "groupPriorityMinimum": 100, "versionPriority": 100,
                "insecureSkipTLSVerify": true,
                "service": { "name": "external", "namespace": story.namespace, "port": 443 },
              } },
        ] });
        kubectl(&story.cluster, &["apply", "--filename", "-"], &all.to_string())?;
        Ok(adapter)
    }
}

impl Drop for Adapter<'_> {
    fn drop(&mut self) {
        // Before the namespace goes: it cannot while an API is asked in vain.
        let gone = ["delete", "apiservice", API, "--ignore-not-found"];
        if let Err(error) = kubectl(&self.story.cluster, &gone, "") {
            note(&format!("{error:#}"));
        }
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
