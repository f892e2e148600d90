//! What does `down` leave? Takes stock of the host before and after, and prints the difference.

use super::layout::{CNI_STATE, DEVICE_PLUGINS, Layout};
use super::{lock, teardown, up};
use crate::figures::{self, FigureTarget, Op};
use crate::process;
use anyhow::{Result, ensure};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const LIMIT_SECONDS: f64 = 60.0;

/// Runs `up` and `down`, then kills an `up` half-way and runs `up` and `down` again.
pub(super) fn measure(root: &Path, layout: &Layout, figure: bool) -> Result<()> {
    teardown::remove(layout)?;
    // Building does not belong to the time of a warm `up`.
    super::parts::ensure(root, layout)?;
    let before = stock()?;
    let seconds = up::up(root, layout)?;
    let seen = traces(&before)?;
    // Guards the guard: a stock-taking that cannot see a running cluster proves nothing.
    for kind in ["process", "namespace", "link", "route", "cgroup"] {
        ensure!(
            seen.iter().any(|item| item.starts_with(kind)),
            "the stock-taking is blind: it sees no {kind} of a running cluster"
        );
    }
    teardown::remove(layout)?;
    let mut left = leftovers(&before)?;

    kill_an_up(&before)?;
    up::up(root, layout)?;
    teardown::remove(layout)?;
    left.extend(leftovers(&before)?);

    for item in &left {
        println!("left behind: {item}");
    }
    println!("{} traces while up, {} left after down (twice)", seen.len(), left.len());
    if figure {
        let command = "cargo xtask cluster leftovers --figure";
        let zero = FigureTarget { op: Op::AtMost, value: 0.0 };
        figures::write("cluster.leftovers", left.len() as f64, "items", zero, command)?;
        let limit = FigureTarget { op: Op::AtMost, value: LIMIT_SECONDS };
        figures::write("cluster.up_warm_seconds", seconds, "s", limit, command)?;
    }
    // A busy machine is slower, and no less right: the figure is what holds `up` to its time.
    if seconds > LIMIT_SECONDS {
        println!("`up` took {seconds:.0} s, over its {LIMIT_SECONDS} s");
    }
    ensure!(left.is_empty(), "`down` left {} items behind", left.len());
    Ok(())
}

/// Kills an `up` while it is at work, and makes sure that it was.
fn kill_an_up(before: &BTreeSet<String>) -> Result<()> {
    eprintln!("leftovers: killing an `up` after 4 s, then `up` and `down`");
    let mut child = Command::new(std::env::current_exe()?)
        .args(["cluster", "up"])
        .env(lock::HELD_BY_PARENT, "1")
        .stderr(Stdio::null())
        .spawn()?;
    std::thread::sleep(Duration::from_secs(4));
    ensure!(child.try_wait()?.is_none(), "the `up` to be killed had ended by itself");
    child.kill()?;
    child.wait()?;
    ensure!(!traces(before)?.is_empty(), "the killed `up` had not begun anything");
    Ok(())
}

/// What is there and was not before.
fn traces(before: &BTreeSet<String>) -> Result<BTreeSet<String>> {
    Ok(stock()?.difference(before).cloned().collect())
}

/// The kernel finishes some of it in the background, so a trace counts only if it stays.
fn leftovers(before: &BTreeSet<String>) -> Result<BTreeSet<String>> {
    let mut left = BTreeSet::new();
    for _ in 0..20 {
        left = traces(before)?;
        if left.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(250));
    }
    Ok(left)
}

/// Processes, mounts, network namespaces, links, routes, iptables rules, cgroups and one folder.
fn stock() -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut add = |kind: &str, items: Vec<String>| {
        found.extend(items.into_iter().map(|item| format!("{kind} {item}")));
    };
    add("process", processes()?);
    add("mount", mounts()?);
    add("namespace", namespaces()?);
    add("link", lines(Command::new("ip").args(["-brief", "link"]), first_word)?);
    let routes = ["route", "show", "table", "all"];
    add("route", lines(Command::new("ip").args(routes), str::to_owned)?);
    add("rule", lines(&mut Command::new("iptables-save"), without_counters)?);
    add("cgroup", cgroups());
    for folder in [CNI_STATE, DEVICE_PLUGINS] {
        if Path::new(folder).exists() {
            add("folder", vec![folder.to_owned()]);
        }
    }
    Ok(found)
}

/// Programs that `up` starts, directly or through containerd.
const PROGRAMS: [&str; 16] = [
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
    "pause",
    "prometheus",
    "targets",
];

/// By program, because a developer's machine starts other things meanwhile; a process that was
/// there before is told apart by its number.
fn processes() -> Result<Vec<String>> {
    let running = programs()?.into_iter();
    Ok(running
        .filter(|(_, name)| PROGRAMS.contains(&name.as_str()))
        .map(|(id, name)| format!("{id} {name}"))
        .collect())
}

/// Process numbers and the names of their programs; kernel threads have none.
fn programs() -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Ok(program) = std::fs::read_link(entry.path().join("exe")) else { continue };
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = name.trim_end_matches(" (deleted)").to_owned();
        found.push((entry.file_name().to_string_lossy().into_owned(), name));
    }
    Ok(found)
}

fn mounts() -> Result<Vec<String>> {
    let text = std::fs::read_to_string("/proc/self/mountinfo")?;
    Ok(text.lines().filter_map(|line| line.split(' ').nth(4)).map(str::to_owned).collect())
}

/// Network namespaces by inode, through our programs and the `sleep` that holds each pair open,
/// and by name.
fn namespaces() -> Result<Vec<String>> {
    let mut found = Vec::new();
    for (id, name) in programs()? {
        let ours = name == "sleep" || PROGRAMS.contains(&name.as_str());
        if ours && let Ok(link) = std::fs::read_link(format!("/proc/{id}/ns/net")) {
            found.push(link.display().to_string());
        }
    }
    for entry in std::fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        found.push(entry.path().display().to_string());
    }
    // Our own is there before and after, whether or not one of those programs runs in it.
    found.push(std::fs::read_link("/proc/self/ns/net")?.display().to_string());
    Ok(found)
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

fn lines(command: &mut Command, keep: impl Fn(&str) -> String) -> Result<Vec<String>> {
    let text = process::read(command)?;
    Ok(text.lines().filter(|line| !line.starts_with('#')).map(keep).collect())
}

fn first_word(line: &str) -> String {
    line.split_whitespace().next().unwrap_or_default().to_owned()
}

/// `:INPUT ACCEPT [12:3456]` counts packets; the rule is the same.
fn without_counters(line: &str) -> String {
    line.split(" [").next().unwrap_or_default().to_owned()
}
