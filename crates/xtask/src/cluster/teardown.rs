//! `cluster down`: ends every process below our cgroup, then removes what cannot outlive them.

use super::daemon::wait_for;
use super::layout::{CGROUP, CNI_STATE, DEVICE_PLUGINS, Layout};
use super::space;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

pub(super) fn down(layout: &Layout) -> Result<()> {
    remove(layout)?;
    eprintln!("cluster: down; logs of the last run are in {}", layout.logs().display());
    Ok(())
}

/// Also the first step of `up`: whatever a killed `up` left is found the same way.
pub(super) fn remove(layout: &Layout) -> Result<()> {
    end_processes()?;
    space::remove_links()?;
    for hierarchy in all_hierarchies() {
        remove_cgroups(&hierarchy.join(CGROUP))?;
    }
    // Made by `up` as places to mount on; whoever else uses them has files in them.
    for folder in [Path::new(CNI_STATE), Path::new(DEVICE_PLUGINS)] {
        let _ = std::fs::remove_dir(folder);
    }
    let _ = Path::new(DEVICE_PLUGINS).parent().map(std::fs::remove_dir);
    let state = layout.state();
    if state.exists() {
        std::fs::remove_dir_all(&state)
            .with_context(|| format!("could not remove {}", state.display()))?;
    }
    Ok(())
}

/// Processes come and go while we look (a shim may just start a container), so repeat until none is left.
fn end_processes() -> Result<()> {
    wait_for("the end of the cluster's processes", Duration::from_secs(30), || {
        let mut found = Vec::new();
        for hierarchy in all_hierarchies() {
            collect_processes(&hierarchy.join(CGROUP), &mut found);
        }
        if found.is_empty() {
            return true;
        }
        let _ = Command::new("kill").arg("-KILL").args(&found).stderr(Stdio::null()).status();
        false
    })
}

fn collect_processes(group: &Path, found: &mut Vec<String>) {
    if let Ok(text) = std::fs::read_to_string(group.join("cgroup.procs")) {
        found.extend(text.lines().map(str::to_owned));
    }
    for child in children(group) {
        collect_processes(&child, found);
    }
}

fn remove_cgroups(group: &Path) -> Result<()> {
    for child in children(group) {
        remove_cgroups(&child)?;
    }
    if !group.exists() {
        return Ok(());
    }
    // Busy for a moment after its last process died.
    wait_for(&format!("the end of {}", group.display()), Duration::from_secs(10), || {
        std::fs::remove_dir(group).is_ok() || !group.exists()
    })
}

fn children(group: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(group) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// Every mounted hierarchy, v1 controllers and the unified one alike.
fn all_hierarchies() -> Vec<PathBuf> {
    let top = PathBuf::from("/sys/fs/cgroup");
    let mut found = children(&top);
    found.push(top);
    found
}
