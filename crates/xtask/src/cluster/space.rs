//! Namespace pairs (network and mount) and the bridge between them.
//!
//! A pair has no name and no file: it lives as long as its processes do. Mounts that containerd
//! and the kubelet make inside never show on the host, so there is nothing to unmount later.

use super::daemon::{Daemon, wait_for};
use super::layout::{
    BRIDGE, CNI_STATE, CONTROL_ADDRESS, DEVICE_PLUGINS, HOST_ADDRESS, Layout, NODES, SERVICE_RANGE,
};
use crate::process;
use anyhow::{Context, Result};
use std::process::Command;
use std::time::Duration;

/// A running namespace pair, named by the process that holds it open.
pub(super) struct Space {
    holder: u32,
}

impl Space {
    /// Opens a pair. Inside, `/run`, `/var/lib/cni`, `/var/log` and the folder of device plugins are its own: the
    /// CNI plug-ins, containerd's shims and the kubelet have those places compiled in. Two kubelets that began at the
    /// same moment once both listened in one folder of device plugins, and one of them never became a node.
    fn open(layout: &Layout, name: &str) -> Result<Self> {
        std::fs::create_dir_all(CNI_STATE)?;
        std::fs::create_dir_all(DEVICE_PLUGINS)?;
        let ready = layout.state().join(format!("{name}.ready"));
        let script = format!(
            "mount --make-rshared / && mount -t tmpfs tmpfs /run && mkdir /run/netns && \
             mount -t tmpfs tmpfs {CNI_STATE} && mount -t tmpfs tmpfs /var/log && \
             mount -t tmpfs tmpfs {DEVICE_PLUGINS} && \
             ip link set lo up && echo 1 > /proc/sys/net/ipv4/ip_forward && \
             touch {} && exec sleep infinity",
            ready.display()
        );
        let args = ["--net", "--mount", "--propagation", "private", "--", "sh", "-c", &script];
        let holder = Daemon {
            name: format!("{name}-holder"),
            inside: Vec::new(),
            program: "unshare".into(),
            args: args.map(str::to_owned).to_vec(),
        }
        .start(layout)?;
        wait_for(&format!("namespace pair {name}"), Duration::from_secs(10), || ready.exists())
            .with_context(|| format!("see {}/{name}-holder.log", layout.logs().display()))?;
        Ok(Self { holder })
    }

    /// The words that put a command inside.
    pub(super) fn enter(&self) -> Vec<String> {
        ["nsenter", "--target", &self.holder.to_string(), "--net", "--mount", "--"]
            .map(str::to_owned)
            .to_vec()
    }

    /// A command that will run inside.
    fn command(&self, program: &str) -> Command {
        let words = self.enter();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(program);
        command
    }

    /// Gives it one leg on the bridge and routes to everything else.
    fn connect(&self, link: &str, address: &str) -> Result<()> {
        let peer = format!("{link}p");
        ip(&["link", "add", link, "type", "veth", "peer", "name", &peer])?;
        ip(&["link", "set", link, "master", BRIDGE, "up"])?;
        ip(&["link", "set", &peer, "netns", &self.holder.to_string(), "name", "eth0"])?;
        self.ip(&["addr", "add", &format!("{address}/24"), "dev", "eth0"])?;
        self.ip(&["link", "set", "eth0", "up"])?;
        for node in NODES.iter().filter(|node| node.address != address) {
            self.ip(&["route", "add", node.pods, "via", node.address])?;
        }
        // No default route: nothing inside has any business outside the cluster.
        Ok(())
    }

    fn ip(&self, args: &[&str]) -> Result<()> {
        process::read(self.command("ip").args(args)).map(drop)
    }
}

/// The three pairs of the cluster.
pub(super) struct Spaces {
    pub(super) control: Space,
    pub(super) nodes: Vec<Space>,
}

/// Opens all pairs and joins them and the host by one bridge. Routes on the host let tests reach
/// pods and services; they go with the bridge.
pub(super) fn open_all(layout: &Layout) -> Result<Spaces> {
    ip(&["link", "add", BRIDGE, "type", "bridge"])?;
    ip(&["addr", "add", &format!("{HOST_ADDRESS}/24"), "dev", BRIDGE])?;
    ip(&["link", "set", BRIDGE, "up"])?;
    let control = Space::open(layout, "control")?;
    control.connect("flyball-c", CONTROL_ADDRESS)?;
    let mut nodes = Vec::new();
    for node in &NODES {
        let space = Space::open(layout, node.name)?;
        space.connect(node.link, node.address)?;
        ip(&["route", "add", node.pods, "via", node.address])?;
        nodes.push(space);
    }
    // kube-proxy masquerades what comes from outside the pod range, so any node can be the door.
    ip(&["route", "add", SERVICE_RANGE, "via", NODES[0].address])?;
    control.ip(&["route", "add", SERVICE_RANGE, "via", NODES[0].address])?;
    Ok(Spaces { control, nodes })
}

/// Removes the bridge and its legs. The legs would go with their namespaces, but the kernel takes
/// those apart in the background and was seen to need more than 20 s; the next `up` wants the names.
pub(super) fn remove_links() -> Result<()> {
    for entry in std::fs::read_dir("/sys/class/net")?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("flyball") && ip(&["link", "del", &name]).is_err() {
            // Gone in the meantime is what was wanted; anything else is an error.
            anyhow::ensure!(!entry.path().exists(), "could not delete the link {name}");
        }
    }
    Ok(())
}

fn ip(args: &[&str]) -> Result<()> {
    process::read(Command::new("ip").args(args)).map(drop)
}
