//! The cluster as the bench uses it: manifests in, looks at pods out, everything gone at the end.

use super::cluster::Cluster;
use super::series::ReplicaSample;
use crate::process;
use crate::programs;
use crate::programs::page::json;
use crate::programs::running::{Cores, Ports, Running, post};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Emulated accelerators on each of the two nodes: as many as all arms may have at once, which are 15 of at most 8
/// replicas or 16, of two each.
const GPUS_PER_NODE: u32 = 160;

/// The resource that stands for them. Not NVIDIA's name, which other tests count.
const RESOURCE: &str = "flyball.test~1h100";

/// A pod of an arm.
pub(super) struct Pod {
    pub(super) name: String,
    /// Whether its program runs.
    pub(super) runs: bool,
    /// Seconds since it was made.
    pub(super) age: f64,
    /// Seconds from then until it was ready first, in whole ones as the API server counts.
    pub(super) start: Option<f64>,
}

impl Pod {
    fn read(pod: &Value) -> Option<Self> {
        let time = |value: &Value| value.as_str()?.parse::<jiff::Timestamp>().ok();
        let made = time(&pod["metadata"]["creationTimestamp"])?;
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        let ready = conditions.into_iter().find(|c| c["type"] == "Ready" && c["status"] == "True");
        let ready = ready.and_then(|ready| time(&ready["lastTransitionTime"]));
        let since = |earlier: jiff::Timestamp, later: jiff::Timestamp| {
            (later.as_millisecond() - earlier.as_millisecond()) as f64 / 1e3
        };
        Some(Self {
            name: pod["metadata"]["name"].as_str()?.to_owned(),
            runs: pod["status"]["phase"] == "Running",
            age: since(made, jiff::Timestamp::now()),
            start: ready.map(|ready| since(made, ready)),
        })
    }
}

/// A cluster that is up, and a way to its API without certificates.
pub(super) struct Stage {
    cluster: Cluster,
    pub(super) folder: PathBuf,
    pub(super) ports: Ports,
    programs: PathBuf,
    /// The API server, as `kubectl proxy` offers it.
    pub(super) api: SocketAddr,
    pub(super) prometheus: SocketAddr,
    /// Whether nobody else plays: then the rival's API and the pool are made and removed too.
    alone: bool,
    /// What is made, and removed at the end.
    namespaces: Vec<String>,
    _proxy: Running,
}

impl Stage {
    /// A stage for arms in these namespaces.
    pub(super) fn new(
        root: &Path,
        cluster: Cluster,
        programs: PathBuf,
        namespaces: Vec<String>,
        alone: bool,
    ) -> Result<Self> {
        let folder = programs::scratch("live")?;
        let mut ports = Ports::new();
        let api = ports.next()?;
        let mut proxy = cluster.kubectl();
        proxy.args(["proxy", "--address=127.0.0.1", &format!("--port={}", api.port())]);
        let mut running = Running::start("proxy", &proxy, Cores::All, &folder)?;
        running.ready(api, "/healthz", Duration::from_secs(30))?;
        let prometheus = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut stage = Self {
            cluster,
            folder,
            ports,
            programs,
            api,
            prometheus,
            alone,
            namespaces,
            _proxy: running,
        };
        stage.clear();
        stage.prometheus = stage.service("monitoring", "prometheus")?;
        let charts = root.join("charts/flyball-crds/templates");
        let charts = charts.to_str().context("a path that is no text")?;
        stage.kubectl(&["apply", "--server-side", "--force-conflicts", "--filename", charts])?;
        for node in ["node-a", "node-b"] {
            let path = format!("/status/capacity/{RESOURCE}");
            let patch = format!(r#"[{{"op":"add","path":"{path}","value":"{GPUS_PER_NODE}"}}]"#);
            let how = ["--subresource=status", "--type=json", "--patch", &patch];
            stage.kubectl(&[&["patch", "node", node], &how[..]].concat())?;
        }
        Ok(stage)
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// What the operator is pointed at.
    pub(super) fn kubeconfig(&self) -> &Path {
        &self.cluster.kubeconfig
    }

    /// This machine's address, as pods and the API server reach it.
    pub(super) fn host(&self) -> &str {
        &self.cluster.host
    }

    /// Runs kubectl and returns what it prints.
    pub(super) fn kubectl(&self, args: &[&str]) -> Result<String> {
        process::read(self.cluster.kubectl().args(args))
    }

    pub(super) fn apply(&self, manifest: &str) -> Result<()> {
        let mut apply = self.cluster.kubectl();
        apply.args(["apply", "--server-side", "--force-conflicts", "--filename", "-"]);
        process::feed(&mut apply, manifest).map(drop)
    }

    /// The address of a Service, which this machine reaches.
    pub(super) fn service(&self, namespace: &str, name: &str) -> Result<SocketAddr> {
        let of = "jsonpath={.spec.clusterIP}:{.spec.ports[0].port}";
        let text =
            self.kubectl(&["--namespace", namespace, "get", "service", name, "--output", of])?;
        text.trim().parse().with_context(|| format!("service {namespace}/{name} at {text:?}"))
    }

    /// Whether all pods of a Deployment are ready.
    pub(super) fn is_rolled_out(&self, namespace: &str, name: &str) -> Result<bool> {
        let of = "jsonpath={.status.readyReplicas}/{.spec.replicas}";
        let text =
            self.kubectl(&["--namespace", namespace, "get", "deployment", name, "--output", of])?;
        Ok(text.trim().split_once('/').is_some_and(|(ready, all)| ready == all))
    }

    /// The pods of an arm, `begun` being when its first request was sent.
    pub(super) fn sample(
        &self,
        namespace: &str,
        begun: Instant,
    ) -> Result<(ReplicaSample, Vec<Pod>)> {
        let path = format!("/api/v1/namespaces/{namespace}/pods?labelSelector=app%3Dmodel");
        let pods = json(self.api, &path)?;
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/model");
        let replicas = json(self.api, &path)?["status"]["replicas"].as_u64().unwrap_or(0) as u32;
        let at = begun.elapsed().as_secs_f64();
        let mut sample = ReplicaSample { at, replicas, ..ReplicaSample::default() };
        let mut seen = Vec::new();
        for pod in pods["items"].as_array().into_iter().flatten() {
            let leaves = !pod["metadata"]["deletionTimestamp"].is_null()
                || !pod["metadata"]["annotations"]["flyball.dev/draining-since"].is_null();
            let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
            let ready =
                conditions.into_iter().any(|c| c["type"] == "Ready" && c["status"] == "True");
            match (leaves, ready) {
                (true, _) => sample.draining += 1,
                (false, true) => sample.ready += 1,
                (false, false) => sample.starting += 1,
            }
            seen.extend(Pod::read(pod));
        }
        Ok((sample, seen))
    }

    /// Sets what is wrong with an engine.
    pub(super) fn set_engine_faults(&self, namespace: &str, pod: &str, faults: &str) -> Result<()> {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}:8000/proxy/emulator/faults");
        let answer = post(self.api, &path, faults)?;
        ensure!(
            answer.starts_with("HTTP/1.1 200"),
            "{namespace}/{pod} was not told: {answer:.300}"
        );
        Ok(())
    }

    /// Starts a program that ends with the bench.
    pub(super) fn start(&self, name: &str, command: &Command) -> Result<Running> {
        Running::start(name, command, Cores::All, &self.folder)
    }

    /// Removes what a run makes, of this one or of one that was cut short.
    fn clear(&self) {
        let mut gone: Vec<Vec<&str>> = Vec::new();
        if self.alone {
            // First the API that nobody serves any more: namespaces cannot go while it is asked in vain.
            gone.push(vec!["delete", "apiservice", "v1beta1.external.metrics.k8s.io"]);
            gone.push(vec!["delete", "pool", "live"]);
        }
        let names = self.namespaces.iter().map(String::as_str);
        gone.push(["delete", "namespace"].into_iter().chain(names).collect());
        for mut args in gone {
            args.push("--ignore-not-found");
            if let Err(error) = self.kubectl(&args) {
                eprintln!("live: {error:#}");
            }
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.clear();
    }
}
