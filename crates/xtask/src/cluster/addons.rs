//! What runs on the cluster before any test does: DNS, JobSet, Kueue, metrics-server,
//! Prometheus, and fake accelerators on the real nodes.

use super::kubectl::{FIELD_MANAGER, Kubectl};
use super::layout::DNS_ADDRESS;
use super::parts::Parts;
use super::versions::Versions;
use crate::parallel;
use anyhow::{Context, Result};
use std::path::Path;

/// A Deployment that makes the cluster what it is.
pub(super) struct Part {
    pub(super) namespace: &'static str,
    pub(super) deployment: &'static str,
}

const DNS: Part = Part { namespace: "kube-system", deployment: "coredns" };
const JOBSET: Part = Part { namespace: "jobset-system", deployment: "jobset-controller-manager" };
const KUEUE: Part = Part { namespace: "kueue-system", deployment: "kueue-controller-manager" };
const METRICS: Part = Part { namespace: "kube-system", deployment: "metrics-server" };

/// What must be available before the cluster is usable; metrics-server follows when it has two
/// samples.
pub(super) const NEEDED: [Part; 3] = [DNS, JOBSET, KUEUE];

/// The manifests that come with the modules. The largest first: Kueue's definitions are most of the
/// work.
const RENDERED: [(&str, Part); 3] =
    [(KUEUE_MANIFEST, KUEUE), ("jobset.yaml", JOBSET), ("metrics-server.yaml", METRICS)];

const KUEUE_MANIFEST: &str = "kueue.yaml";

/// Alpha in Kueue 0.19.
const KUEUE_GATES: &str = "PriorityBoost=true";

const PROMETHEUS: &str = "prometheus.yaml";

/// Applies everything to our own cluster.
pub(super) fn apply(root: &Path, parts: &Parts, kubectl: &Kubectl) -> Result<()> {
    let versions = Versions::read(root)?;
    let dns = own_manifest(root, "coredns.yaml")?
        .replace("COREDNS_VERSION", &versions.coredns)
        .replace("DNS_ADDRESS", DNS_ADDRESS);
    let mut manifests = Vec::new();
    for (name, _) in RENDERED {
        manifests.push((name, rendered(parts, name)?));
    }
    manifests.push(("coredns.yaml", dns));
    manifests.push((PROMETHEUS, own_manifest(root, PROMETHEUS)?));
    apply_all(kubectl, &manifests)
}

/// Installs on a cluster that somebody else made; DNS is there already.
pub(super) fn install_elsewhere(
    root: &Path,
    parts: &Parts,
    kubectl: &Kubectl,
    fake_gpus: Option<u32>,
) -> Result<()> {
    println!("the cluster's nodes must hold these images:");
    for archive in parts.images()? {
        println!("  {}", archive.display());
    }
    let mut manifests = vec![(PROMETHEUS, own_manifest(root, PROMETHEUS)?)];
    for (name, part) in RENDERED {
        if is_somebody_elses(kubectl, &part)? {
            println!("{}/{} is there and not ours: left as it is", part.namespace, part.deployment);
        } else {
            manifests.push((name, rendered(parts, name)?));
        }
    }
    apply_all(kubectl, &manifests)?;
    if let Some(count) = fake_gpus {
        let names =
            kubectl.read(&["get", "nodes", "--output=jsonpath={.items[*].metadata.name}"])?;
        add_fake_gpus(kubectl, names.split_whitespace(), count)?;
    }
    wait(kubectl, &[JOBSET, KUEUE], 180)?;
    println!("JobSet and Kueue are available");
    Ok(())
}

/// Waits until these Deployments are available.
pub(super) fn wait(kubectl: &Kubectl, needed: &[Part], seconds: u64) -> Result<()> {
    for Part { namespace, deployment } in needed {
        kubectl
            .read(&[
                "wait",
                "--for=condition=Available",
                &format!("--timeout={seconds}s"),
                "--namespace",
                namespace,
                &format!("deployment/{deployment}"),
            ])
            .with_context(|| format!("{namespace}/{deployment} did not become available"))?;
    }
    Ok(())
}

/// Extended resources that no device plug-in manages are left alone by the kubelet, so a patch
/// of the status is enough to make the scheduler and Kueue count GPUs that do not exist.
pub(super) fn add_fake_gpus<'a>(
    kubectl: &Kubectl,
    nodes: impl Iterator<Item = &'a str>,
    count: u32,
) -> Result<()> {
    let count = format!("\"nvidia.com/gpu\":\"{count}\"");
    let patch = format!("{{\"status\":{{\"capacity\":{{{count}}},\"allocatable\":{{{count}}}}}}}");
    for node in nodes {
        kubectl.read(&[
            "patch",
            "node",
            node,
            "--subresource=status",
            "--type=merge",
            "--patch",
            &patch,
        ])?;
    }
    Ok(())
}

/// True for a Deployment that exists and that we did not apply.
fn is_somebody_elses(kubectl: &Kubectl, part: &Part) -> Result<bool> {
    let managers = kubectl.read(&[
        "get",
        "deployment",
        part.deployment,
        "--namespace",
        part.namespace,
        "--ignore-not-found",
        "--show-managed-fields",
        "--output=jsonpath={.metadata.managedFields[*].manager}",
    ])?;
    Ok(!managers.trim().is_empty() && !managers.contains(FIELD_MANAGER))
}

fn rendered(parts: &Parts, name: &str) -> Result<String> {
    let manifest = read(&parts.manifest(name))?;
    Ok(if name == KUEUE_MANIFEST { with_gates(&manifest) } else { manifest })
}

/// Turns on what of Kueue is off by default and stories need: a number by which an outside controller says whom a preemption
/// takes.
fn with_gates(manifest: &str) -> String {
    let config = "- --config=/controller_manager_config.yaml";
    let mut with = String::with_capacity(manifest.len());
    for line in manifest.lines() {
        with.push_str(line);
        with.push('\n');
        if line.trim() == config {
            let indent = &line[..line.len() - line.trim_start().len()];
            with.push_str(&format!("{indent}- --feature-gates={KUEUE_GATES}\n"));
        }
    }
    with
}

fn own_manifest(root: &Path, name: &str) -> Result<String> {
    read(&root.join("cluster/manifests").join(name))
}

fn read(manifest: &Path) -> Result<String> {
    std::fs::read_to_string(manifest).with_context(|| format!("{}", manifest.display()))
}

/// All manifests at once: most of the time is the API server's.
fn apply_all(kubectl: &Kubectl, manifests: &[(&str, String)]) -> Result<()> {
    parallel::for_each(manifests, |(name, text)| {
        kubectl.apply(text).with_context(|| format!("could not apply {name}"))
    })
}

#[cfg(test)]
mod tests {
    use super::with_gates;

    #[test]
    fn the_manager_gets_gates_beside_its_settings_and_nobody_else() {
        let kueue =
            "  args:\n  - --config=/controller_manager_config.yaml\n  - --zap-log-level=2\n";
        let with = "  args:\n  - --config=/controller_manager_config.yaml\n  \
                    - --feature-gates=PriorityBoost=true\n  - --zap-log-level=2\n";
        assert_eq!(with_gates(kueue), with);
        let other = "  args:\n  - --config=/other.yaml\n";
        assert_eq!(with_gates(other), other);
    }
}
