//! What runs on the cluster before any test does: DNS, JobSet, Kueue, metrics-server,
//! Prometheus, and fake accelerators on the real nodes.

use super::Versions;
use super::kubectl::Kubectl;
use super::layout::{DNS_ADDRESS, GPUS_PER_NODE, NODES};
use super::parts::Parts;
use anyhow::{Context, Result};
use std::path::Path;

/// The Deployments that make the cluster usable; metrics-server follows when it has two samples.
pub(super) const NEEDED: [(&str, &str); 3] = [
    ("kube-system", "coredns"),
    ("jobset-system", "jobset-controller-manager"),
    ("kueue-system", "kueue-controller-manager"),
];

/// Applies everything, all manifests at once: most of the time is the API server's.
pub(super) fn apply(root: &Path, parts: &Parts, kubectl: &Kubectl) -> Result<()> {
    let versions = Versions::read(root)?;
    let own = |name: &str| -> Result<String> {
        let path = root.join("cluster/manifests").join(name);
        let text = std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
        Ok(text.replace("COREDNS_VERSION", &versions.coredns).replace("DNS_ADDRESS", DNS_ADDRESS))
    };
    let (dns, prometheus) = (own("coredns.yaml")?, own("prometheus.yaml")?);
    std::thread::scope(|scope| {
        let mut jobs = Vec::new();
        // The largest first: Kueue's definitions are most of the work.
        for name in ["kueue", "jobset", "metrics-server"] {
            let manifest = parts.manifest(&format!("{name}.yaml"));
            jobs.push(scope.spawn(move || kubectl.apply(&manifest)));
        }
        jobs.push(scope.spawn(|| kubectl.apply_text(&dns)));
        jobs.push(scope.spawn(|| kubectl.apply_text(&prometheus)));
        for job in jobs {
            job.join().map_err(|_| anyhow::anyhow!("an apply panicked"))??;
        }
        Ok(())
    })
}

/// Waits until the needed Deployments are available.
pub(super) fn wait(kubectl: &Kubectl, seconds: u64) -> Result<()> {
    std::thread::scope(|scope| {
        let waits = NEEDED.map(|(namespace, name)| {
            scope.spawn(move || {
                kubectl
                    .read(&[
                        "wait",
                        "--for=condition=Available",
                        &format!("--timeout={seconds}s"),
                        "--namespace",
                        namespace,
                        &format!("deployment/{name}"),
                    ])
                    .with_context(|| format!("{namespace}/{name} did not become available"))
            })
        });
        for wait in waits {
            wait.join().map_err(|_| anyhow::anyhow!("a wait panicked"))??;
        }
        Ok(())
    })
}

/// Extended resources that no device plug-in manages are left alone by the kubelet, so a patch
/// of the status is enough to make the scheduler and Kueue count GPUs that do not exist.
pub(super) fn add_fake_gpus(kubectl: &Kubectl) -> Result<()> {
    let count = format!("\"nvidia.com/gpu\":\"{GPUS_PER_NODE}\"");
    let patch = format!("{{\"status\":{{\"capacity\":{{{count}}},\"allocatable\":{{{count}}}}}}}");
    for node in &NODES {
        kubectl.read(&[
            "patch",
            "node",
            node.name,
            "--subresource=status",
            "--type=merge",
            "--patch",
            &patch,
        ])?;
    }
    Ok(())
}
