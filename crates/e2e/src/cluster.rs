//! The connection, and the parts under test as the environment names them.

use crate::until;
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, LogParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::{Client, Config};
use serde_json::json;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A cluster and what is tested on it.
pub struct Cluster {
    pub client: Client,
    pub kubeconfig: PathBuf,
    /// The image whose pods the stories run.
    pub image: String,
    /// The image with llama-server and its models.
    pub llama: String,
    /// Flyball's program, for use from outside.
    pub binary: PathBuf,
}

impl Cluster {
    /// Reads what `cargo xtask e2e` set.
    pub async fn connect() -> Result<Self> {
        let kubeconfig = PathBuf::from(variable("FLYBALL_E2E_KUBECONFIG")?);
        let file = Kubeconfig::read_from(&kubeconfig)?;
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        let client = Client::try_from(config)?;
        takes_work(&client).await?;
        Ok(Self {
            client,
            kubeconfig,
            image: variable("FLYBALL_E2E_IMAGE")?,
            llama: variable("FLYBALL_E2E_LLAMA")?,
            binary: PathBuf::from(variable("FLYBALL_E2E_BINARY")?),
        })
    }
}

/// Waits until a Deployment would be taken. A story before may have stopped the API server for so long
/// that Kueue, which is asked about every workload, lost its lease and ended: until it is back, none can be
/// made.
async fn takes_work(client: &Client) -> Result<()> {
    let labels = json!({ "app": "nobody" });
    let nobody: Deployment = serde_json::from_value(json!({
        "metadata": { "name": "nobody" },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "nobody", "image": "nobody" }] },
            },
        },
    }))?;
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let params = PostParams { dry_run: true, ..PostParams::default() };
    let mut refused = None;
    let taken = until("a Deployment to be taken", Duration::from_secs(180), async || {
        refused = deployments.create(&params, &nobody).await.err();
        Ok(refused.is_none().then_some(()))
    })
    .await;
    taken.with_context(|| refused.map_or_else(String::new, |error| error.to_string()))
}

fn variable(name: &str) -> Result<String> {
    std::env::var(name)
        .with_context(|| format!("{name} is not set; run the stories with `cargo xtask e2e`"))
}

/// A namespaced kind that has no Rust type here, such as a JobSet.
pub fn dynamic(
    client: &Client,
    namespace: Option<&str>,
    api_version: &str,
    kind: &str,
) -> Api<DynamicObject> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Runs kubectl with `input` on its standard input; an error carries what it complained about.
pub fn kubectl(cluster: &Cluster, args: &[&str], input: &str) -> Result<()> {
    kubectl_output(cluster, args, input).map(drop)
}

/// The same, and what it says.
pub fn kubectl_output(cluster: &Cluster, args: &[&str], input: &str) -> Result<String> {
    let program = std::env::var("FLYBALL_E2E_KUBECTL").unwrap_or_else(|_| "kubectl".into());
    let mut child = Command::new(program)
        .arg("--kubeconfig")
        .arg(&cluster.kubeconfig)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    child.stdin.take().context("no stdin")?.write_all(input.as_bytes())?;
    let output = child.wait_with_output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "kubectl {}: {stderr}", args.join(" "));
    Ok(String::from_utf8(output.stdout)?)
}

/// The whole log of the only container of a Job's only pod.
pub async fn pod_log(client: &Client, namespace: &str, job: &str) -> Result<String> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let found = pods.list(&ListParams::default().labels(&format!("job-name={job}"))).await?;
    let pod = found.items.first().with_context(|| format!("job {job} has no pod"))?;
    let name = pod.metadata.name.as_deref().context("a pod without a name")?;
    Ok(pods.logs(name, &LogParams::default()).await?)
}

/// The exit status of a Job's only pod, once it has ended.
pub async fn job_exit(client: &Client, namespace: &str, job: &str) -> Result<Option<i32>> {
    let jobs: Api<Job> = Api::namespaced(client.clone(), namespace);
    jobs.get(job).await?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let found = pods.list(&ListParams::default().labels(&format!("job-name={job}"))).await?;
    Ok(found.items.iter().find_map(|pod| {
        let status = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
        Some(status.state.as_ref()?.terminated.as_ref()?.exit_code)
    }))
}
