//! A real node: its own containerd, kubelet and kube-proxy inside one namespace pair and one cgroup root.

use super::certs::Certs;
use super::daemon::{Daemon, hierarchies, wait_for};
use super::layout::{CGROUP, DNS_ADDRESS, Layout, NODES, Node, POD_RANGE};
use super::parts::{IMAGES, Parts};
use super::space::Space;
use crate::{parallel, process};
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Starts containerd and loads the images; needs no API server.
pub(super) fn start_runtime(
    layout: &Layout,
    parts: &Parts,
    space: &Space,
    node: &Node,
) -> Result<()> {
    let folder = layout.node(node);
    std::fs::create_dir_all(folder.join("cni"))?;
    std::fs::write(folder.join("cni/10-flyball.conflist"), network_config(node))?;
    std::fs::write(folder.join("containerd.toml"), containerd_config(&folder))?;
    create_cgroups(node)?;
    Daemon {
        name: format!("{}-containerd", node.name),
        inside: space.enter(),
        program: "/usr/bin/containerd".into(),
        args: vec!["--config".into(), folder.join("containerd.toml").display().to_string()],
    }
    .start(layout)?;
    let socket = socket_of(&folder);
    wait_for(&format!("{} containerd", node.name), Duration::from_secs(20), || {
        ctr(&socket).args(["version"]).output().is_ok_and(|output| output.status.success())
    })?;
    for archive in parts.images()? {
        import(&socket, &archive)?;
    }
    Ok(())
}

/// Starts the kubelet and kube-proxy against a ready API server.
pub(super) fn start_agents(
    layout: &Layout,
    parts: &Parts,
    space: &Space,
    node: &Node,
    certs: &Certs,
) -> Result<()> {
    let folder = layout.node(node);
    std::fs::write(folder.join("resolv.conf"), "")?;
    let config = folder.join("kubelet.json");
    std::fs::write(&config, kubelet_config(&folder, node, certs).to_string())?;
    let state = layout.state();
    Daemon {
        name: format!("{}-kubelet", node.name),
        inside: space.enter(),
        program: parts.program("kubelet"),
        args: vec![
            format!("--config={}", config.display()),
            format!("--kubeconfig={}", state.join(format!("{}.kubeconfig", node.name)).display()),
            format!("--hostname-override={}", node.name),
            format!("--node-ip={}", node.address),
            format!("--root-dir={}", folder.join("kubelet").display()),
            format!("--cert-dir={}", folder.join("pki").display()),
            format!(
                "--node-labels=topology.kubernetes.io/zone={},flyball.dev/pool=test,\
                 nvidia.com/gpu.product=Fake-GPU",
                node.zone
            ),
        ],
    }
    .start(layout)?;
    Daemon {
        name: format!("{}-kube-proxy", node.name),
        inside: space.enter(),
        program: parts.program("kube-proxy"),
        args: vec![
            format!("--kubeconfig={}", state.join("proxy.kubeconfig").display()),
            format!("--hostname-override={}", node.name),
            "--proxy-mode=iptables".into(),
            format!("--cluster-cidr={POD_RANGE}"),
            // These would be written to sysctls that belong to the host.
            "--conntrack-max-per-core=0".into(),
            "--conntrack-tcp-timeout-established=0".into(),
            "--conntrack-tcp-timeout-close-wait=0".into(),
            "--iptables-min-sync-period=100ms".into(),
        ],
    }
    .start(layout)
    .map(drop)
}

/// Loads an image archive into the containerd of every running node, all nodes at once.
pub(super) fn load_everywhere(layout: &Layout, archive: &Path) -> Result<()> {
    parallel::for_each(&NODES, |node| import(&socket_of(&layout.node(node)), archive))
}

fn import(socket: &Path, archive: &Path) -> Result<()> {
    if !socket.exists() {
        bail!("the test cluster is not running\n\nhint: cargo xtask cluster up");
    }
    process::read(ctr(socket).args(["--namespace", "k8s.io", "images", "import"]).arg(archive))
        .map(drop)
        .with_context(|| format!("could not load {}", archive.display()))
}

fn ctr(socket: &Path) -> Command {
    let mut command = Command::new("ctr");
    command.arg("--address").arg(socket);
    command
}

fn socket_of(folder: &Path) -> PathBuf {
    folder.join("containerd.sock")
}

/// `ptp` and not `bridge`: on a bridge, the answer of a pod behind a ClusterIP to a neighbour
/// takes the short way and misses the address translation (br_netfilter is not to be counted on).
fn network_config(node: &Node) -> String {
    json!({
        "cniVersion": "0.4.0",
        "name": "flyball",
        "plugins": [{
            "type": "ptp",
            "ipMasq": false,
            "ipam": {
                "type": "host-local",
                "ranges": [[{ "subnet": node.pods }]],
                "routes": [{ "dst": "0.0.0.0/0" }],
            },
        }],
    })
    .to_string()
}

fn containerd_config(folder: &Path) -> String {
    let folder = folder.display();
    // restrict_oom_score_adj: without CAP_SYS_RESOURCE runc fails to lower a score below its own
    // ("can't get final child's PID from pipe: EOF").
    format!(
        r#"version = 2
root = "{folder}/containerd"
state = "{folder}/containerd-state"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing",
]
[grpc]
address = "{folder}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
path = "{folder}/opt"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{IMAGES}/pause:v1"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{folder}/cni"
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
"#
    )
}

fn kubelet_config(folder: &Path, node: &Node, certs: &Certs) -> serde_json::Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": true },
            "x509": { "clientCAFile": certs.authority },
        },
        "authorization": { "mode": "Webhook" },
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{CGROUP}/{}", node.name),
        "clusterDNS": [DNS_ADDRESS],
        "clusterDomain": "cluster.local",
        "containerRuntimeEndpoint": format!("unix://{}", socket_of(folder).display()),
        "failCgroupV1": false,
        "failSwapOn": false,
        "evictionHard": { "memory.available": "200Mi", "nodefs.available": "1%" },
        "imageGCHighThresholdPercent": 100,
        "resolvConf": folder.join("resolv.conf"),
        "podCIDR": node.pods,
        // Kueue and JobSet make their webhook certificates at start and wait until the kubelet
        // has refreshed the mounted secret: at the default of one minute they dominate `up`.
        "syncFrequency": "2s",
        "nodeStatusUpdateFrequency": "4s",
        "serializeImagePulls": false,
    })
}

/// The kubelet wants its cgroup root to be there in every hierarchy.
fn create_cgroups(node: &Node) -> Result<()> {
    for hierarchy in hierarchies()? {
        let mut group = hierarchy.clone();
        for name in [CGROUP, node.name] {
            let parent = group.clone();
            group = group.join(name);
            std::fs::create_dir_all(&group)
                .with_context(|| format!("could not create {}", group.display()))?;
            // A new cpuset is empty and takes no process until it is told its CPUs and memory.
            for file in ["cpuset.cpus", "cpuset.mems"] {
                if group.join(file).exists() {
                    let value = std::fs::read_to_string(parent.join(file))?;
                    std::fs::write(group.join(file), value.trim())?;
                }
            }
        }
    }
    Ok(())
}
