//! A gateway dies with its node, its pod object stays, and the model sleeps: the next request wakes it.

use super::super::rig::{Rig, Setup};
use anyhow::{Context, Result, ensure};
use flyball_e2e::{Stopped, Story, figure, in_namespace, is_long, kubectl, note, until};
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use serde_json::json;
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::time::{Duration, Instant};

const POD: &str = "gateway-b";

/// From the request to the replica that is asked for.
const LIMIT: Duration = Duration::from_secs(5);

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn trust_a_gateway_that_died_with_its_node_does_not_keep_a_model_asleep() -> Result<()> {
    let (Ok(kubelet), Ok(host)) =
        (std::env::var("FLYBALL_E2E_KUBELET_PID"), std::env::var("FLYBALL_E2E_HOST"))
    else {
        note("left out: FLYBALL_E2E_KUBELET_PID is not set; only our own kubelet is stopped");
        return Ok(());
    };
    let (kubelet, host): (u32, IpAddr) = (kubelet.parse()?, host.parse()?);
    // By then what the dead gateway said last is old.
    let max_age = if is_long() { 60 } else { 12 };
    in_namespace(&[], async |story| {
        let setup = Setup {
            start_seconds: 2,
            scaling: json!({ "mode": "Act", "max": 4, "sleep": "WhenIdle" }),
            reached_at: Some(host),
            max_age: Some(max_age),
            ..Setup::default()
        };
        let rig = Box::pin(Rig::of(story, setup)).await?;
        second_gateway(story, rig.link)?;
        until("both gateways to be connected", Duration::from_secs(60), async || {
            Ok((rig.operator.metric("flyball_operator_gateways").await? >= 2.0).then_some(()))
        })
        .await
        .with_context(|| rig.operator.log())?;
        rig.pin(Some(0)).await?;
        rig.settled(0, Duration::from_secs(120)).await?;
        rig.pin(None).await?;
        let stopped = Stopped::new(kubelet, Duration::from_secs(u64::from(max_age) + 180))?;
        kill()?;
        tokio::time::sleep(Duration::from_secs(u64::from(max_age) + 3)).await;
        let pods: Api<Pod> = Api::namespaced(story.cluster.client.clone(), &story.namespace);
        ensure!(pods.get_opt(POD).await?.is_some(), "the pod object is gone: this shows nothing");
        let woken = async {
            let began = Instant::now();
            until("a replica to be asked for", Duration::from_secs(60), async || {
                Ok((rig.replicas().await? > 0).then(|| began.elapsed()))
            })
            .await
            .with_context(|| rig.operator.log())
        };
        let (answered, woken) = futures::future::join(rig.ask(1, 8), woken).await;
        stopped.go_on();
        let woken = woken?;
        answered?;
        note(&format!("woken {:.1} s after the request", woken.as_secs_f64()));
        figure("trust.wake_dead_gateway_s", woken.as_secs_f64(), "s", "<=5")?;
        ensure!(woken <= LIMIT, "woken only after {woken:?}");
        Ok(())
    })
    .await
}

/// A gateway in a pod of the second node, which asks the same operator.
fn second_gateway(story: &Story, link: SocketAddr) -> Result<()> {
    let namespace = &story.namespace;
    let settings = format!(
        "listen = \"0.0.0.0:8080\"\nadmin = \"0.0.0.0:9090\"\nopen = true\nthreads = 1\n\n[operator]\n\
         address = \"http://{link}\"\n\n[[models]]\nname = \"model\"\n\
         service = \"{namespace}/model:8000\"\nengine = \"vllm\"\n"
    );
    let subject = json!({ "kind": "ServiceAccount", "name": "gateway", "namespace": namespace });
    let group = "rbac.authorization.k8s.io";
    let slices = json!({
        "apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"],
    });
    let named = json!({ "name": "gateway" });
    let all = json!({ "apiVersion": "v1", "kind": "List", "items": [
        { "apiVersion": "v1", "kind": "ServiceAccount", "metadata": named },
        { "apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": named, "rules": [slices] },
        { "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": named,
          "roleRef": { "apiGroup": group, "kind": "Role", "name": "gateway" }, "subjects": [subject] },
        { "apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": { "gateway.toml": settings } },
        { "apiVersion": "v1", "kind": "Pod", "metadata": { "name": POD }, "spec": {
            "nodeName": "node-b",
            "serviceAccountName": "gateway",
            "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
            "containers": [{
                "name": "gateway",
                "image": story.cluster.image,
                "imagePullPolicy": "Never",
                "args": ["gateway", "--config", "/etc/flyball/gateway.toml"],
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "capabilities": { "drop": ["ALL"] },
                },
                "volumeMounts": [{ "name": "config", "mountPath": "/etc/flyball" }],
            }],
            "volumes": [{ "name": "config", "configMap": { "name": "gateway" } }],
        } },
    ] });
    let apply = ["--namespace", namespace, "apply", "--filename", "-"];
    kubectl(&story.cluster, &apply, &all.to_string())
}

/// Ends the gateway's process as a machine that dies does; its kubelet stands still and cannot tell.
fn kill() -> Result<()> {
    let host = format!("HOSTNAME={POD}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|one| one == host.as_bytes()) {
            found.push(pid.to_string());
        }
    }
    ensure!(!found.is_empty(), "no process of {POD}");
    let ended = Command::new("kill").arg("-KILL").args(&found).status()?;
    ensure!(ended.success(), "the gateway could not be ended");
    Ok(())
}
