//! Limits and budgets as the official clients see them: a real API server, an operator and a gateway as processes, and an
//! emulated engine.

use super::callers;
use super::rig::{Setup, crds, operator};
use anyhow::{Context, Result, ensure};
use flyball_e2e::http::HttpAnswer;
use flyball_e2e::process::{RunningProgram, ServiceProcess, free};
use flyball_e2e::{Story, in_namespace, note, until};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use serde_json::json;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(120);

/// Keys, each of a Tenant of its own, with what that is held to. SHA-256 of the key stands for it.
const TENANTS: [(&str, &str, &str); 3] = [
    ("openai-budget", "openaibudg", BUDGET),
    ("anthropic-budget", "anthropicb", BUDGET),
    ("few-requests", "fewrequest", "limits: { requestsPerMinute: 10 }"),
];

const BUDGET: &str = "budgets: [{ name: all, tokens: 3000, period: None }]";

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn official_clients_understand_limits_and_budgets() -> Result<()> {
    in_namespace(&[], async |story| {
        crds(story)?;
        for (key, id, held_to) in TENANTS {
            let manifest = format!(
                "apiVersion: flyball.dev/v1alpha1\nkind: Tenant\nmetadata: {{ name: {key} }}\n\
                 spec:\n  models: ['*']\n  {held_to}\n  keys:\n  \
                 - {{ name: app, id: {id}, sha256: {} }}\n",
                super::tenants::sha256(key)?
            );
            story.apply(&manifest)?;
        }
        let engine = Engine::start(story)?;
        let (office, link) = operator(story, &Setup::default(), None)?;
        office.ready().await?;
        let (gateway, http) = gateway(story, engine.address, link)?;
        gateway.ready().await?;
        granted(http, &gateway).await?;
        let printed = official(http).await?;
        note(&printed);
        ensure!(printed.contains("5 passed, 0 failed"), "{printed}\n{}", office.log());
        Ok(())
    })
    .await
}

/// Waits until the operator has divided: a gateway that is new to it has a tenth of a limit, and nothing of a budget.
async fn granted(http: SocketAddr, gateway: &ServiceProcess) -> Result<()> {
    let body = json!({
        "model": "m", "max_tokens": 1, "messages": [{ "role": "user", "content": "Hello" }],
    });
    for key in ["openai-budget", "anthropic-budget"] {
        let headers = format!("authorization: Bearer {key}\r\n");
        let served = until("the first answer on a budget", LONG, async || {
            let path = "/v1/chat/completions";
            let answer = HttpAnswer::with(http, path, &headers, Some(&body)).await?;
            Ok((answer.whole().await?.0 == 200).then_some(()))
        });
        served.await.with_context(|| format!("the gateway's log:\n{}", gateway.log()))?;
    }
    Ok(())
}

fn gateway(
    story: &Story,
    engine: SocketAddr,
    operator: SocketAddr,
) -> Result<(ServiceProcess, SocketAddr)> {
    let (settings, http, admin) = settings(story, engine, operator)?;
    Ok((ServiceProcess::start(story, "gateway", &settings, admin)?, http))
}

/// A gateway, and a pod of its name that is never started: by it the operator knows whether one that is silent is gone.
pub(super) async fn gateway_with_pod(
    story: &Story,
    engine: SocketAddr,
    operator: SocketAddr,
) -> Result<(ServiceProcess, SocketAddr)> {
    let (settings, http, admin) = settings(story, engine, operator)?;
    let process = ServiceProcess::start_in_pod(story, "gateway", &settings, admin)?;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": process.name() },
        "spec": {
            "schedulingGates": [{ "name": "flyball.test/never" }],
            "securityContext": {
                "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" },
            },
            "containers": [{
                "name": "gateway", "image": story.cluster.image,
                "securityContext": {
                    "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] },
                },
            }],
        },
    });
    let pods: Api<Pod> = Api::namespaced(story.cluster.client.clone(), &story.namespace);
    pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    Ok((process, http))
}

/// The settings of a gateway that this operator divides limits for, and where it listens.
fn settings(
    story: &Story,
    engine: SocketAddr,
    operator: SocketAddr,
) -> Result<(String, SocketAddr, SocketAddr)> {
    let sections = format!(
        "\n[telemetry]\naccess_log = false\n\n[operator]\naddress = \"http://{operator}\"\n"
    );
    callers::settings(story, engine, &sections)
}

/// What the official clients found.
async fn official(gateway: SocketAddr) -> Result<String> {
    let python = std::env::var("FLYBALL_E2E_PYTHON");
    let python = python.context("FLYBALL_E2E_PYTHON is not set; run it with `cargo xtask e2e`")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cluster/engines/limits.py");
    let mut child = Command::new(python)
        .arg(script)
        .args([&format!("http://{gateway}"), "--model", "m"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("could not start the official clients")?;
    until("the end of the official clients", LONG, async || Ok(child.try_wait()?)).await?;
    let mut text = String::new();
    let mut out = child.stdout.take().context("no standard output")?;
    std::io::Read::read_to_string(&mut out, &mut text)?;
    Ok(text)
}

/// An emulated engine in a process of its own.
pub(super) struct Engine {
    _program: RunningProgram,
    pub(super) address: SocketAddr,
}

impl Engine {
    pub(super) fn start(story: &Story) -> Result<Self> {
        let address = free()?;
        let mut command = Command::new(&story.cluster.binary);
        command
            .args(["emulate", "--served-name", "m", "--port", &address.port().to_string()])
            .args(["--host", &address.ip().to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Ok(Self { _program: RunningProgram::start(&mut command)?, address })
    }
}
