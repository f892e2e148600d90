//! Starts long-running programs: in a cgroup that `down` can find, inside a namespace pair
//! where asked, with output in a log file.

use super::layout::{CGROUP, Layout};
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The hierarchies of the host's cgroup v1, one mount per controller.
pub(super) fn hierarchies() -> Result<Vec<PathBuf>> {
    let top = Path::new("/sys/fs/cgroup");
    if top.join("cgroup.controllers").exists() {
        bail!(
            "this host has the unified cgroup hierarchy (v2), for which `cluster up` is not written yet\n\n\
             hint: create a cluster with kind and pass its kubeconfig: cargo xtask e2e --kubeconfig FILE"
        );
    }
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(top).context("could not list /sys/fs/cgroup")? {
        let path = entry?.path();
        if path.join("cgroup.procs").exists() && !path.join("cgroup.controllers").exists() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// A program to keep running.
pub(super) struct Daemon {
    pub(super) name: String,
    /// The words that put it inside a namespace pair; none for the host.
    pub(super) inside: Vec<String>,
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
}

impl Daemon {
    /// Starts it and returns its process id.
    pub(super) fn start(&self, layout: &Layout) -> Result<u32> {
        let log = layout.logs().join(format!("{}.log", self.name));
        let out = File::create(&log).with_context(|| format!("{}", log.display()))?;
        let join = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", daemons_cgroup()?.display());
        let mut command = Command::new("setsid");
        command.args(["sh", "-c", &join, "sh"]);
        command
            .args(&self.inside)
            .arg(&self.program)
            .args(&self.args)
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out);
        let child = command
            .spawn()
            .with_context(|| format!("could not start {}", self.program.display()))?;
        Ok(child.id())
    }
}

/// The process of this name among those that were started here. Names are told apart by their first
/// fifteen letters.
pub(super) fn pid(name: &str) -> Result<Option<u32>> {
    pid_of(name, "")
}

/// The same, of those that were started with this word.
pub(super) fn pid_of(name: &str, word: &str) -> Result<Option<u32>> {
    let all = std::fs::read_to_string(daemons_cgroup()?.join("cgroup.procs"))?;
    let mut pids = all.lines().filter_map(|line| line.parse::<u32>().ok());
    Ok(pids.find(|pid| {
        let of = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}"));
        of("comm").is_ok_and(|found| found.trim_end() == name)
            && of("cmdline").is_ok_and(|found| found.contains(word))
    }))
}

/// Asks `ready` every 50 ms until it says yes, or gives up and says what was awaited.
pub(super) fn wait_for(what: &str, limit: Duration, mut ready: impl FnMut() -> bool) -> Result<()> {
    let begin = Instant::now();
    while !ready() {
        if begin.elapsed() > limit {
            bail!("{what} did not come within {} s", limit.as_secs());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// One hierarchy, which is in every kernel that runs containers.
pub(super) const PIDS: &str = "/sys/fs/cgroup/pids";

/// The group of daemons in it.
fn daemons_cgroup() -> Result<PathBuf> {
    let group = Path::new(PIDS).join(CGROUP).join("daemons");
    std::fs::create_dir_all(&group)
        .with_context(|| format!("could not create {}\n\nhint: run as root", group.display()))?;
    Ok(group)
}
