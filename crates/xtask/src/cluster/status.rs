//! Is it up, and what stands?

use super::addons::NEEDED;
use super::control;
use super::kubectl::Kubectl;
use super::layout::Layout;
use super::versions::Versions;
use anyhow::Result;
use std::path::Path;

/// True when a cluster of these versions and of today's audit policy answers and every needed Deployment is available.
pub(super) fn is_usable(root: &Path, layout: &Layout) -> bool {
    let Ok(key) = Versions::read(root).and_then(|versions| versions.key(root)) else {
        return false;
    };
    if std::fs::read_to_string(layout.running_key()).ok() != Some(key)
        || !control::is_current(layout)
    {
        return false;
    }
    let Ok(kubectl) = own(root, layout) else { return false };
    NEEDED.iter().all(|part| {
        kubectl
            .read(&[
                "--request-timeout=3s",
                "get",
                "deployment",
                part.deployment,
                "--namespace",
                part.namespace,
                "--output=jsonpath={.status.availableReplicas}",
            ])
            .is_ok_and(|count| count.trim() == "1")
    })
}

pub(super) fn print(root: &Path, layout: &Layout) -> Result<()> {
    if !layout.kubeconfig().exists() {
        println!("down");
        println!("hint: cargo xtask cluster up");
        return Ok(());
    }
    let kubectl = own(root, layout)?;
    for args in [
        &["--request-timeout=3s", "get", "nodes", "--selector=!type", "--output=wide"][..],
        &["--request-timeout=3s", "get", "deployments", "--all-namespaces"][..],
    ] {
        match kubectl.read(args) {
            Ok(text) => println!("{text}"),
            Err(error) => println!("unknown: {error:#}"),
        }
    }
    println!("kubeconfig  {}", layout.kubeconfig().display());
    println!("logs        {}", layout.logs().display());
    println!("{}", if is_usable(root, layout) { "up" } else { "started, not usable" });
    Ok(())
}

fn own(root: &Path, layout: &Layout) -> Result<Kubectl> {
    let parts = super::parts::cached(root, layout)?;
    Ok(Kubectl::new(&parts, layout.kubeconfig()))
}
