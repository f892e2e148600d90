//! How far the cluster carries: many emulated nodes, and a 64-pod gang on them through Kueue.

use super::fleet::{self, Args};
use super::kubectl::Kubectl;
use crate::figures::{self, FigureTarget, Op};
use anyhow::{Result, bail};
use std::path::Path;
use std::time::{Duration, Instant};

const GANG: usize = 64;

/// Prints the seconds of both, and writes `kwok.nodes_ready` if asked.
pub(super) fn measure(root: &Path, kubectl: &Kubectl, nodes: u32, figure: bool) -> Result<()> {
    let args = Args {
        nodes,
        accelerator: "H100".into(),
        gpus: 8,
        zone: "test-1".into(),
        pool: "scale".into(),
        delete: false,
        kubeconfig: None,
    };
    remove(kubectl, &args.pool)?;
    let measured = run(root, kubectl, &args);
    // Left behind, a thousand nodes slow every later test.
    let removed = remove(kubectl, &args.pool);
    let ready = measured?;
    removed?;
    if figure {
        let target = FigureTarget { op: Op::AtLeast, value: 1000.0 };
        let command = format!("cargo xtask cluster scale --nodes {nodes} --figure");
        figures::write("kwok.nodes_ready", ready as f64, "nodes", target, &command)?;
    }
    Ok(())
}

fn run(root: &Path, kubectl: &Kubectl, args: &Args) -> Result<usize> {
    let ready = fleet::create(kubectl, args)?;
    let manifest = std::fs::read_to_string(root.join("cluster/manifests/gang-64.yaml"))?;
    let begin = Instant::now();
    kubectl.apply(&manifest)?;
    loop {
        let running = kubectl
            .read(&[
                "get",
                "pods",
                "--namespace=scale",
                "--field-selector=status.phase=Running",
                "--output=name",
            ])?
            .lines()
            .count();
        let seconds = begin.elapsed().as_secs_f64();
        if running >= GANG {
            println!(
                "a gang of {GANG} pods x 8 GPUs admitted by Kueue and running in {seconds:.1} s"
            );
            return Ok(ready);
        }
        if seconds > 180.0 {
            bail!("{running} of {GANG} pods of the gang run after {seconds:.0} s");
        }
        std::thread::sleep(Duration::from_millis(300));
    }
}

fn remove(kubectl: &Kubectl, pool: &str) -> Result<()> {
    let gone = ["--ignore-not-found", "--timeout=60s"];
    for object in ["namespace/scale", "clusterqueue/scale", "resourceflavor/scale"] {
        kubectl.read(&["delete", object, gone[0], gone[1]])?;
    }
    fleet::delete(kubectl, pool)
}
