//! The nodes of the test cluster as a provider has them: it says that one will be taken, and takes it.

use anyhow::{Context, Result, bail, ensure};
use flyball_e2e::{Cluster, Stopped, kubectl};
use k8s_openapi::api::core::v1::Pod;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What AWS' termination handler puts on a spot machine two minutes before it goes.
const NOTICE: &str = "aws-node-termination-handler/spot-itn";

/// What a cloud's controller puts on a machine that is off.
const OFF: &str = "node.cloudprovider.kubernetes.io/shutdown";

/// Only so that a kubelet goes on in any case.
const LONG: Duration = Duration::from_secs(120);

/// The nodes, each with the process of its kubelet.
pub(super) struct Machines {
    kubelets: BTreeMap<String, u32>,
    cgroup: PathBuf,
}

impl Machines {
    /// Those of our own cluster; `None` on any other.
    pub(super) fn of_environment() -> Result<Option<Self>> {
        let read = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
        let (Some(kubelets), Some(cgroup)) =
            (read("FLYBALL_E2E_KUBELETS"), read("FLYBALL_E2E_CGROUP"))
        else {
            return Ok(None);
        };
        let one = |text: &str| {
            let (node, pid) = text.split_once('=').context("FLYBALL_E2E_KUBELETS")?;
            Ok((node.to_owned(), pid.parse()?))
        };
        let kubelets = kubelets.split(',').map(one).collect::<Result<_>>()?;
        Ok(Some(Self { kubelets, cgroup: cgroup.into() }))
    }

    /// All of them are spot machines now, and none goes.
    pub(super) fn are_spot(&self, cluster: &Cluster) -> Result<()> {
        // A story before may have been ended while one went.
        self.are_as_before(cluster)?;
        self.label(cluster, "karpenter.sh/capacity-type=spot")
    }

    /// They are as they were.
    pub(super) fn are_as_before(&self, cluster: &Cluster) -> Result<()> {
        for node in self.kubelets.keys() {
            taint(cluster, node, NOTICE, false)?;
            taint(cluster, node, OFF, false)?;
        }
        self.label(cluster, "karpenter.sh/capacity-type-")
    }

    fn label(&self, cluster: &Cluster, label: &str) -> Result<()> {
        for node in self.kubelets.keys() {
            kubectl(cluster, &["label", "node", node, label, "--overwrite"], "")?;
        }
        Ok(())
    }

    /// The provider says that it takes the node of this pod, or that there is another.
    pub(super) fn notice(&self, cluster: &Cluster, pod: &Pod, given: bool) -> Result<()> {
        taint(cluster, node(pod)?, NOTICE, given)
    }

    /// The node of this pod dies: its kubelet says nothing more, and every process of the pod is gone. After `length`
    /// another takes its place, and what was on the first is deleted, as a cloud's controller does.
    pub(super) async fn die(&self, cluster: &Cluster, pod: &Pod, length: Duration) -> Result<()> {
        let node = node(pod)?;
        let kubelet = *self.kubelets.get(node).with_context(|| format!("no kubelet of {node}"))?;
        let stopped = Stopped::new(kubelet, length + LONG)?;
        self.kill(pod)?;
        taint(cluster, node, OFF, true)?;
        tokio::time::sleep(length).await;
        let meta = &pod.metadata;
        let (name, namespace) = (meta.name.as_deref(), meta.namespace.as_deref());
        let (name, namespace) = name.zip(namespace).context("a pod without a name")?;
        let gone = ["--force", "--grace-period=0", "--ignore-not-found", "--wait=false"];
        let delete = ["delete", "pod", name, "--namespace", namespace];
        let deleted = kubectl(cluster, &[&delete[..], &gone[..]].concat(), "");
        taint(cluster, node, OFF, false)?;
        stopped.go_on();
        deleted
    }

    /// Every process of a pod is gone, that which holds its network too.
    pub(super) fn kill(&self, pod: &Pod) -> Result<()> {
        let uid = pod.metadata.uid.as_deref().context("a pod without a uid")?;
        let mut groups = Vec::new();
        find(&self.cgroup.join(node(pod)?), uid, false, &mut groups)?;
        let mut pids = Vec::new();
        for group in groups {
            // A group that is gone meanwhile has no processes.
            let text = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
            pids.extend(text.lines().map(str::to_owned));
        }
        ensure!(!pids.is_empty(), "no process of pod {uid} below {}", self.cgroup.display());
        // One that has ended by itself is what is wanted.
        Command::new("kill").arg("-KILL").args(&pids).status()?;
        Ok(())
    }
}

/// Groups of the pod and all below them.
fn find(group: &Path, uid: &str, within: bool, found: &mut Vec<PathBuf>) -> Result<()> {
    let Ok(entries) = std::fs::read_dir(group) else { return Ok(()) };
    for entry in entries.flatten().filter(|entry| entry.path().is_dir()) {
        let of_pod = within || entry.file_name().to_string_lossy().contains(uid);
        if of_pod {
            found.push(entry.path());
        }
        find(&entry.path(), uid, of_pod, found)?;
    }
    Ok(())
}

/// Where a pod runs.
pub(super) fn node(pod: &Pod) -> Result<&str> {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    node.context("a pod without a node")
}

fn taint(cluster: &Cluster, node: &str, key: &str, there: bool) -> Result<()> {
    let end = if there { "=:NoSchedule" } else { ":NoSchedule-" };
    let outcome = kubectl(cluster, &["taint", "node", node, &format!("{key}{end}")], "");
    match outcome {
        Err(error) if !there && format!("{error:#}").contains("not found") => Ok(()),
        Err(error) => bail!("{node}: {error:#}"),
        Ok(()) => Ok(()),
    }
}
