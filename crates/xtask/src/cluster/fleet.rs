//! Fleets of emulated nodes (kwok): real API objects, real scheduling, no kubelet behind them.

use super::kubectl::Kubectl;
use crate::{parallel, process};
use anyhow::{Result, bail};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What the emulated nodes look like.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long, default_value_t = 100)]
    pub(crate) nodes: u32,
    /// Value of the product label, as the vendor's feature discovery would set it
    #[arg(long, default_value = "H100")]
    pub(crate) accelerator: String,
    /// Accelerators per node
    #[arg(long, default_value_t = 8)]
    pub(crate) gpus: u32,
    #[arg(long, default_value = "test-1")]
    pub(crate) zone: String,
    /// Pool label and prefix of the node names
    #[arg(long, default_value = "fleet")]
    pub(crate) pool: String,
    /// Remove the pool's nodes instead
    #[arg(long)]
    pub(crate) delete: bool,
    /// Another cluster than our own; kwok must run there
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
}

pub(super) fn run(kubectl: &Kubectl, args: &Args) -> Result<()> {
    delete(kubectl, &args.pool)?;
    if args.delete {
        println!("nodes of pool {} deleted", args.pool);
        return Ok(());
    }
    create(kubectl, args).map(drop)
}

/// Creates the nodes, waits until all are ready, and returns how many are.
pub(super) fn create(kubectl: &Kubectl, args: &Args) -> Result<usize> {
    let begin = Instant::now();
    // Several kubectls: one alone is held back by its own client-side rate limit.
    parallel::for_each(0..4, |part| {
        let items: Vec<Value> = (part..args.nodes).step_by(4).map(|i| node(args, i)).collect();
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
        let mut create = kubectl.command();
        create.args(["create", "--filename", "-"]);
        process::feed(&mut create, &list.to_string()).map(drop)
    })?;
    let ready = wait_ready(kubectl, &selector(&args.pool), args.nodes as usize)?;
    println!("{ready} nodes of pool {} ready in {:.1} s", args.pool, begin.elapsed().as_secs_f64());
    Ok(ready)
}

/// Deletes the emulated nodes of a pool, if there are any. Nothing holds a node back, so it is gone
/// when the server has answered; waiting would watch each of a thousand, one after the other.
pub(super) fn delete(kubectl: &Kubectl, pool: &str) -> Result<()> {
    kubectl.read(&["delete", "nodes", "--selector", &selector(pool), "--wait=false"]).map(drop)
}

fn selector(pool: &str) -> String {
    format!("flyball.dev/pool={pool},type=kwok")
}

fn node(args: &Args, index: u32) -> Value {
    let name = format!("{}-{index:04}", args.pool);
    let resources = json!({
        "cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": args.gpus.to_string(),
    });
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": { "kwok.x-k8s.io/node": "fake" },
            "labels": {
                "type": "kwok",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/zone": args.zone,
                "nvidia.com/gpu.product": args.accelerator,
                "flyball.dev/pool": args.pool,
            },
        },
        // Keeps ordinary test pods off nodes that cannot run them.
        "spec": { "taints": [{ "key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule" }] },
        "status": { "capacity": resources, "allocatable": resources },
    })
}

fn wait_ready(kubectl: &Kubectl, selector: &str, expected: usize) -> Result<usize> {
    let begin = Instant::now();
    let ready =
        r#"jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}"#;
    loop {
        let text = kubectl.read(&[
            "get",
            "nodes",
            "--selector",
            selector,
            &format!("--output={ready}"),
        ])?;
        let count = text.lines().filter(|line| *line == "True").count();
        if count >= expected {
            return Ok(count);
        }
        if begin.elapsed() > Duration::from_secs(300) {
            bail!("{count} of {expected} emulated nodes are ready after 300 s");
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}
