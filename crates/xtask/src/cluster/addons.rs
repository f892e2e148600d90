//! What runs on the cluster before any test does: DNS, JobSet, Kueue, metrics-server,
//! Prometheus, and fake accelerators on the real nodes.

use super::kubectl::{FIELD_MANAGER, Kubectl};
use super::layout::DNS_ADDRESS;
use super::parts::Parts;
use super::versions::Versions;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// The Deployments that make the cluster usable; metrics-server follows when it has two samples.
pub(super) const NEEDED: [(&str, &str); 3] = [
    ("kube-system", "coredns"),
    ("jobset-system", "jobset-controller-manager"),
    ("kueue-system", "kueue-controller-manager"),
];

/// Applies everything to our own cluster.
pub(super) fn apply(root: &Path, parts: &Parts, kubectl: &Kubectl) -> Result<()> {
    let versions = Versions::read(root)?;
    let dns = own_manifest(root, "coredns.yaml")?
        .replace("COREDNS_VERSION", &versions.coredns)
        .replace("DNS_ADDRESS", DNS_ADDRESS);
    // The largest first: Kueue's definitions are most of the work.
    let manifests =
        ["kueue", "jobset", "metrics-server"].map(|name| parts.manifest(&format!("{name}.yaml")));
    apply_all(kubectl, &manifests, &[&dns, &own_manifest(root, "prometheus.yaml")?])
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
    let mut manifests = Vec::new();
    for (namespace, deployment, name) in [
        ("kueue-system", "kueue-controller-manager", "kueue"),
        ("jobset-system", "jobset-controller-manager", "jobset"),
        ("kube-system", "metrics-server", "metrics-server"),
    ] {
        if is_somebody_elses(kubectl, namespace, deployment)? {
            println!("{namespace}/{deployment} is there and not ours: left as it is");
        } else {
            manifests.push(parts.manifest(&format!("{name}.yaml")));
        }
    }
    apply_all(kubectl, &manifests, &[&own_manifest(root, "prometheus.yaml")?])?;
    if let Some(count) = fake_gpus {
        let names =
            kubectl.read(&["get", "nodes", "--output=jsonpath={.items[*].metadata.name}"])?;
        add_fake_gpus(kubectl, names.split_whitespace(), count)?;
    }
    wait(kubectl, &NEEDED[1..], 180)?;
    println!("JobSet and Kueue are available");
    Ok(())
}

/// Waits until these Deployments are available.
pub(super) fn wait(kubectl: &Kubectl, needed: &[(&str, &str)], seconds: u64) -> Result<()> {
    for (namespace, name) in needed {
        kubectl
            .read(&[
                "wait",
                "--for=condition=Available",
                &format!("--timeout={seconds}s"),
                "--namespace",
                namespace,
                &format!("deployment/{name}"),
            ])
            .with_context(|| format!("{namespace}/{name} did not become available"))?;
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
fn is_somebody_elses(kubectl: &Kubectl, namespace: &str, name: &str) -> Result<bool> {
    let managers = kubectl.read(&[
        "get",
        "deployment",
        name,
        "--namespace",
        namespace,
        "--ignore-not-found",
        "--show-managed-fields",
        "--output=jsonpath={.metadata.managedFields[*].manager}",
    ])?;
    Ok(!managers.trim().is_empty() && !managers.contains(FIELD_MANAGER))
}

fn own_manifest(root: &Path, name: &str) -> Result<String> {
    let path = root.join("cluster/manifests").join(name);
    std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))
}

/// All manifests at once: most of the time is the API server's.
fn apply_all(kubectl: &Kubectl, manifests: &[PathBuf], own: &[&str]) -> Result<()> {
    std::thread::scope(|scope| {
        let mut jobs = Vec::new();
        for manifest in manifests {
            jobs.push(scope.spawn(move || kubectl.apply(manifest)));
        }
        for manifest in own {
            jobs.push(scope.spawn(|| kubectl.apply_text(manifest)));
        }
        for job in jobs {
            job.join().map_err(|_| anyhow::anyhow!("an apply panicked"))??;
        }
        Ok(())
    })
}
