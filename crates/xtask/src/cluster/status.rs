//! Is it up, and what stands?

use super::Layout;
use super::addons::NEEDED;
use super::kubectl::Kubectl;
use anyhow::Result;

/// True when the API server answers and every needed Deployment is available.
pub(super) fn is_usable(layout: &Layout) -> bool {
    if !layout.kubeconfig().exists() {
        return false;
    }
    let Ok(kubectl) = own(layout) else { return false };
    NEEDED.iter().all(|(namespace, name)| {
        kubectl
            .read(&[
                "--request-timeout=3s",
                "get",
                "deployment",
                name,
                "--namespace",
                namespace,
                "--output=jsonpath={.status.availableReplicas}",
            ])
            .is_ok_and(|count| count.trim() == "1")
    })
}

pub(super) fn print(layout: &Layout) -> Result<()> {
    if !layout.kubeconfig().exists() {
        println!("down");
        println!("hint: cargo xtask cluster up");
        return Ok(());
    }
    let kubectl = own(layout)?;
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
    println!("{}", if is_usable(layout) { "up" } else { "started, not usable" });
    Ok(())
}

fn own(layout: &Layout) -> Result<Kubectl> {
    let parts = super::parts::cached(&crate::commands::root()?, layout)?;
    Ok(Kubectl::new(&parts, layout.kubeconfig()))
}
