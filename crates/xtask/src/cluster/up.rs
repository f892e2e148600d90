//! `cluster up`: the order of events, and how long each took.

use super::kubectl::Kubectl;
use super::layout::{GPUS_PER_NODE, Layout, NODES};
use super::versions::Versions;
use super::{addons, certs, control, daemon, node, parts, space, teardown};
use anyhow::{Context, Result};
use std::path::Path;
use std::time::{Duration, Instant};

/// Starts everything anew and returns the seconds it took. What a killed `up` left is removed first.
pub(super) fn up(root: &Path, layout: &Layout) -> Result<f64> {
    daemon::hierarchies()?;
    let versions = Versions::read(root)?;
    versions.require_debian_programs()?;
    let parts = parts::ensure(root, layout)?;
    let mut clock = Clock::start();
    teardown::remove(layout)?;
    for folder in [layout.state(), layout.logs()] {
        std::fs::create_dir_all(folder)?;
    }
    let certs = certs::create(layout)?;
    let spaces = space::open_all(layout)?;
    clock.lap("namespaces and certificates");

    control::start_api(layout, &parts, &spaces.control, &certs)?;
    let kubectl = Kubectl::new(&parts, layout.kubeconfig());
    std::thread::scope(|scope| -> Result<()> {
        let runtimes: Vec<_> = NODES
            .iter()
            .zip(&spaces.nodes)
            .map(|(node, space)| {
                let parts = &parts;
                scope.spawn(move || node::start_runtime(layout, parts, space, node))
            })
            .collect();
        daemon::wait_for("the API server", Duration::from_secs(60), || {
            kubectl.read(&["get", "--raw", "/readyz"]).is_ok()
        })
        .with_context(|| format!("see {}/kube-apiserver.log", layout.logs().display()))?;
        clock.lap("API server ready");
        control::start_controllers(layout, &parts, &spaces.control, &certs)?;
        let applied = scope.spawn(|| addons::apply(root, &parts, &kubectl));
        for runtime in runtimes {
            runtime.join().map_err(|_| anyhow::anyhow!("a runtime panicked"))??;
        }
        clock.lap("containerd ready, images loaded");
        for (node, space) in NODES.iter().zip(&spaces.nodes) {
            node::start_agents(layout, &parts, space, node, &certs)?;
        }
        applied.join().map_err(|_| anyhow::anyhow!("an apply panicked"))??;
        clock.lap("manifests applied");
        Ok(())
    })?;
    control::start_kwok(layout, &parts, &spaces.control)?;
    for node in &NODES {
        let name = format!("node/{}", node.name);
        // A kubelet that has not come so far as to register is no error: on a busy machine it takes seconds.
        for what in ["create", "condition=Ready"] {
            kubectl.read(&["wait", &format!("--for={what}"), "--timeout=120s", &name])?;
        }
    }
    clock.lap("both nodes ready");
    addons::add_fake_gpus(&kubectl, NODES.iter().map(|node| node.name), GPUS_PER_NODE)?;
    addons::wait(&kubectl, &addons::NEEDED, 120)
        .with_context(|| format!("logs: {}", layout.logs().display()))?;
    clock.lap("CoreDNS, JobSet and Kueue available");

    std::fs::write(layout.running_key(), versions.key(root)?)?;
    let seconds = clock.begin.elapsed().as_secs_f64();
    eprintln!("cluster: {}", versions.in_words());
    eprintln!("cluster: up in {seconds:.1} s; kubeconfig {}", layout.kubeconfig().display());
    Ok(seconds)
}

/// Prints each step with its seconds as it ends, so that a slow start shows where it is.
struct Clock {
    begin: Instant,
    last: Instant,
}

impl Clock {
    fn start() -> Self {
        let now = Instant::now();
        Self { begin: now, last: now }
    }

    fn lap(&mut self, what: &str) {
        eprintln!("  {:5.1} s  {what}", self.last.elapsed().as_secs_f64());
        self.last = Instant::now();
    }
}
