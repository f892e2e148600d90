//! What does `down` leave? Takes stock of the host before and after, and prints the difference.

use super::{Layout, teardown, up};
use crate::figures::{self, Op, Target};
use crate::process;
use anyhow::{Result, bail};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Runs `up` and `down`, then kills an `up` half-way and runs `up` and `down` again.
pub(super) fn measure(root: &Path, layout: &Layout) -> Result<()> {
    teardown::remove(layout)?;
    let before = stock()?;
    up::up(root, layout, true)?;
    let during = stock()?;
    // Guards the guard: a stock-taking that cannot see a running cluster proves nothing.
    let seen: Vec<_> = during.difference(&before).collect();
    for kind in ["process", "namespace", "link", "route", "cgroup"] {
        if !seen.iter().any(|item| item.starts_with(kind)) {
            bail!("the stock-taking is blind: it sees no {kind} of a running cluster");
        }
    }
    teardown::remove(layout)?;
    let mut left = leftovers(&before)?;

    eprintln!("leftovers: killing an `up` after 4 s, then `up` and `down`");
    let mut child = Command::new(std::env::current_exe()?)
        .args(["cluster", "up"])
        .stderr(Stdio::null())
        .spawn()?;
    std::thread::sleep(Duration::from_secs(4));
    child.kill()?;
    child.wait()?;
    up::up(root, layout, false)?;
    teardown::remove(layout)?;
    left.extend(leftovers(&before)?);

    for item in &left {
        println!("left behind: {item}");
    }
    println!("{} traces while up, {} left after down (twice)", seen.len(), left.len());
    figures::write(
        "cluster.leftovers",
        left.len() as f64,
        "items",
        Target { op: Op::AtMost, value: 0.0 },
        "cargo xtask cluster leftovers",
    )?;
    if left.is_empty() { Ok(()) } else { bail!("`down` left {} items behind", left.len()) }
}

/// The kernel finishes some of it in the background, so a difference counts only if it stays.
fn leftovers(before: &BTreeSet<String>) -> Result<BTreeSet<String>> {
    let mut left = BTreeSet::new();
    for _ in 0..20 {
        left = stock()?.difference(before).cloned().collect();
        if left.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(250));
    }
    Ok(left)
}

/// Processes, mounts, network namespaces, links, routes, iptables rules and cgroups of the host.
fn stock() -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut add = |kind: &str, items: Vec<String>| {
        found.extend(items.into_iter().map(|item| format!("{kind} {item}")));
    };
    add("process", processes()?);
    add("mount", mounts()?);
    add("namespace", namespaces());
    add("link", lines(Command::new("ip").args(["-brief", "link"]), first_word));
    add("route", lines(Command::new("ip").args(["route", "show", "table", "all"]), str::to_owned));
    add("rule", lines(&mut Command::new("iptables-save"), without_counters));
    add("cgroup", cgroups());
    Ok(found)
}

/// Programs that `up` starts, directly or through containerd.
const PROGRAMS: [&str; 18] = [
    "containerd",
    "containerd-shim-runc-v2",
    "coredns",
    "etcd",
    "flyball",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubelet",
    "kwok",
    "manager",
    "metrics-server",
    "nsenter",
    "pause",
    "prometheus",
    "sleep",
    "targets",
];

/// By program, because a developer's machine starts other things meanwhile; a process that was
/// there before is told apart by its number.
fn processes() -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Ok(program) = std::fs::read_link(entry.path().join("exe")) else { continue };
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        if PROGRAMS.contains(&name.trim_end_matches(" (deleted)")) {
            found.push(format!("{} {}", entry.file_name().display(), program.display()));
        }
    }
    Ok(found)
}

fn mounts() -> Result<Vec<String>> {
    let text = std::fs::read_to_string("/proc/self/mountinfo")?;
    Ok(text.lines().filter_map(|line| line.split(' ').nth(4)).map(str::to_owned).collect())
}

/// Network namespaces by inode, as seen through every process and every named file.
fn namespaces() -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        if let Ok(link) = std::fs::read_link(entry.path().join("ns/net")) {
            found.push(link.display().to_string());
        }
    }
    for entry in std::fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        found.push(entry.path().display().to_string());
    }
    found
}

fn cgroups() -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                found.push(entry.path().display().to_string());
                open.push(entry.path());
            }
        }
    }
    found
}

fn lines(command: &mut Command, keep: impl Fn(&str) -> String) -> Vec<String> {
    let text = process::read(command).unwrap_or_default();
    text.lines().filter(|line| !line.starts_with('#')).map(keep).collect()
}

fn first_word(line: &str) -> String {
    line.split_whitespace().next().unwrap_or_default().to_owned()
}

/// `:INPUT ACCEPT [12:3456]` counts packets; the rule is the same.
fn without_counters(line: &str) -> String {
    line.split(" [").next().unwrap_or_default().to_owned()
}
