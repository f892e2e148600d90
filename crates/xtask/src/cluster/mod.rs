//! A real Kubernetes on this machine, for tests.
//!
//! Three pairs of a network and a mount namespace: `control` (etcd, API server, controller
//! manager, scheduler, kwok), `node-a` and `node-b` (each with its own containerd,
//! kubelet, kube-proxy and cgroup root), joined by one bridge. Nothing listens on the host's own
//! addresses and no rule is written into the host's iptables, so `down` has little to undo:
//! it ends every process below one cgroup and the rest goes with them.
//!
//! Read in this order: `layout` (names, addresses, folders), `parts` (what is built and cached),
//! `up` (the order of events), then `control`, `node`, `addons`. `teardown` is `down`,
//! `residue` proves that it leaves nothing.

mod addons;
mod certs;
mod control;
mod daemon;
mod fleet;
mod kubectl;
mod layout;
mod lock;
mod node;
mod parts;
mod residue;
mod scale;
mod space;
mod status;
mod teardown;
mod up;
mod versions;

use kubectl::Kubectl;
pub(crate) use layout::Layout;
use layout::NODES;

use anyhow::Result;
use std::path::{Path, PathBuf};

/// What `cargo xtask cluster` can do.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Build what is missing, start everything, wait until it is usable
    Up,
    /// End every process and remove every trace
    Down,
    /// Nodes, parts and where the logs are
    Status,
    /// Print the path of the kubeconfig
    Kubeconfig,
    /// Print the path of kubectl
    Kubectl,
    /// Print this machine's address, as pods and the API server reach it
    Host,
    /// Build and cache the parts, start nothing
    Parts,
    /// Install JobSet, Kueue, metrics-server and Prometheus on another cluster
    Addons {
        #[arg(long, value_name = "FILE")]
        kubeconfig: PathBuf,
        /// Patch this many fake GPUs onto every node, for clusters that have none
        #[arg(long)]
        fake_gpus: Option<u32>,
    },
    /// Add emulated nodes with accelerators (kwok)
    Fleet(fleet::Args),
    /// Load an image archive into every real node
    Load { archive: PathBuf },
    /// Up and down, once cleanly and once after a killed `up`: how long, and what is left behind?
    Leftovers {
        /// Write `cluster.up_warm_seconds` and `cluster.leftovers`
        #[arg(long)]
        figure: bool,
    },
    /// Many emulated nodes and a 64-pod gang: how long until both stand?
    Scale {
        #[arg(long, default_value_t = 1000)]
        nodes: u32,
        /// Write `kwok.nodes_ready`
        #[arg(long)]
        figure: bool,
    },
}

pub(crate) fn main(root: &Path, command: Command) -> Result<()> {
    let layout = Layout::new()?;
    match command {
        Command::Up => ensure_up(root).map(drop),
        Command::Down => {
            let _lock = lock::take(&layout)?;
            teardown::down(&layout)
        }
        Command::Status => status::print(root, &layout),
        Command::Kubeconfig => {
            println!("{}", layout.kubeconfig().display());
            Ok(())
        }
        Command::Kubectl => {
            println!("{}", Kubectl::for_tests(root, &layout, None)?.program().display());
            Ok(())
        }
        Command::Host => {
            println!("{HOST}");
            Ok(())
        }
        Command::Parts => build_parts(root),
        Command::Addons { kubeconfig, fake_gpus } => {
            build_parts(root)?;
            let kubectl = Kubectl::for_tests(root, &layout, Some(kubeconfig))?;
            addons::install_elsewhere(root, &parts::cached(root, &layout)?, &kubectl, fake_gpus)
        }
        Command::Fleet(args) => {
            let kubectl = Kubectl::for_tests(root, &layout, args.kubeconfig.clone())?;
            fleet::run(&kubectl, &args)
        }
        Command::Load { archive } => node::load_everywhere(&layout, &archive),
        Command::Leftovers { figure } => {
            let _lock = lock::take(&layout)?;
            residue::measure(root, &layout, figure)
        }
        Command::Scale { nodes, figure } => {
            scale::measure(root, &Kubectl::for_tests(root, &layout, None)?, nodes, figure)
        }
    }
}

/// Brings the cluster up if it is not.
pub(crate) fn ensure_up(root: &Path) -> Result<Layout> {
    let layout = Layout::new()?;
    let _lock = lock::take(&layout)?;
    if status::is_usable(root, &layout) {
        eprintln!("cluster: already up; kubeconfig {}", layout.kubeconfig().display());
    } else {
        up::up(root, &layout)?;
    }
    Ok(layout)
}

pub(crate) fn load_image(layout: &Layout, archive: &Path) -> Result<()> {
    node::load_everywhere(layout, archive)
}

/// This machine's address, as pods and the API server reach it.
pub(crate) const HOST: &str = layout::HOST_ADDRESS;

/// kubectl and the manifest that Kueue was installed from.
pub(crate) fn kueue_installer(root: &Path, layout: &Layout) -> Result<(PathBuf, PathBuf)> {
    let parts = parts::cached(root, layout)?;
    Ok((parts.program("kubectl"), parts.manifest("kueue.yaml")))
}

/// The process of the API server, if it runs.
pub(crate) fn api_server_pid() -> Result<Option<u32>> {
    daemon::pid("kube-apiserver")
}

/// The kubelet of the second node, which a story stops for a while.
pub(crate) fn second_kubelet_pid() -> Result<Option<u32>> {
    daemon::pid_of("kubelet", NODES[1].name)
}

/// The node and the process of each kubelet: stories that lose a node stop them.
pub(crate) fn kubelets() -> Result<Vec<(&'static str, u32)>> {
    let mut found = Vec::new();
    for node in NODES {
        found.extend(daemon::pid_of("kubelet", node.name)?.map(|pid| (node.name, pid)));
    }
    Ok(found)
}

/// The cgroup below which all processes of pods are.
pub(crate) fn cgroup() -> PathBuf {
    Path::new(daemon::PIDS).join(layout::CGROUP)
}

/// Builds and caches the parts, if they are not.
pub(crate) fn build_parts(root: &Path) -> Result<()> {
    let layout = Layout::new()?;
    let _lock = lock::take(&layout)?;
    parts::ensure(root, &layout).map(drop)
}

/// True when the parts of these versions were built before.
pub(crate) fn parts_are_cached(root: &Path) -> Result<bool> {
    Ok(parts::cached(root, &Layout::new()?).is_ok())
}
