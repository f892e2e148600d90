//! What the kernel knows of a process and its children: CPU time, memory.

use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;

/// CPU time of a tree of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cpu {
    /// Time on a CPU of all living threads, in nanoseconds, as the scheduler counts it.
    pub(crate) scheduler_nanos: u64,
    /// User and system time, threads that ended included, in ticks of 10 ms: the check.
    pub(crate) ticks: u64,
}

/// Linux counts `utime` and `stime` in hundredths of a second on every platform we build for.
pub(crate) const TICK_NANOS: u64 = 10_000_000;

/// The process and everything below it.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if let Some(parent) = stat(pid).and_then(|fields| fields.get(1)?.parse().ok()) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut all = vec![root];
    let mut next = 0;
    while let Some(pid) = all.get(next).copied() {
        all.extend(children.remove(&pid).unwrap_or_default());
        next += 1;
    }
    all
}

/// CPU time of the process and everything below it.
pub(crate) fn cpu(root: u32) -> Result<Cpu> {
    let mut sum = Cpu::default();
    for pid in tree(root) {
        // A child may end between listing and reading; the root may not.
        let Some(fields) = stat(pid) else {
            anyhow::ensure!(pid != root, "process {root} has ended");
            continue;
        };
        // After the name: state is 0, the parent 1, utime 11, stime 12.
        let field = |index: usize| fields.get(index).and_then(|text| text.parse::<u64>().ok());
        sum.ticks += field(11).unwrap_or(0) + field(12).unwrap_or(0);
        for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let text = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
            let nanos = text.split(' ').next().and_then(|text| text.parse::<u64>().ok());
            sum.scheduler_nanos += nanos.unwrap_or(0);
        }
    }
    Ok(sum)
}

/// The most memory that the process and everything below it held, in bytes.
pub(crate) fn peak_memory(root: u32) -> Result<u64> {
    memory(root, "VmHWM:")
}

/// The memory that the process and everything below it hold now, in bytes.
pub(crate) fn resident_memory(root: u32) -> Result<u64> {
    memory(root, "VmRSS:")
}

fn memory(root: u32, name: &str) -> Result<u64> {
    let mut sum = 0;
    for pid in tree(root) {
        let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        sum += kilobytes.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0) << 10;
    }
    anyhow::ensure!(sum > 0, "process {root} has ended");
    Ok(sum)
}

/// Files and sockets that a process has open.
pub(crate) fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().count()
}

/// Forgets the peak, so that the next one is of what comes.
pub(crate) fn reset_peak(root: u32) -> Result<()> {
    for pid in tree(root) {
        fs::write(format!("/proc/{pid}/clear_refs"), "5")
            .with_context(|| format!("resetting the peak of process {pid}"))?;
    }
    Ok(())
}

/// The fields of `/proc/PID/stat` after the name, which may itself hold blanks and brackets.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    Some(rest.split(' ').map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn work_shows_as_cpu_time_and_both_counts_agree() {
        // A process of its own: threads of other tests end, and their time with them.
        let mut child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let started = std::time::Instant::now();
        let spent = loop {
            let spent = cpu(child.id()).unwrap();
            if spent.scheduler_nanos > 300_000_000 || started.elapsed().as_secs() > 60 {
                break spent;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        };
        let memory = peak_memory(child.id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(spent.scheduler_nanos > 300_000_000, "the CPU time stands still: {spent:?}");
        let apart = spent.scheduler_nanos.abs_diff(spent.ticks * TICK_NANOS);
        assert!(apart <= 3 * TICK_NANOS, "{spent:?}");
        assert!(memory > 100 << 10, "{memory}");
    }

    #[test]
    fn children_belong_to_the_tree() {
        let mut child = Command::new("sleep").arg("30").spawn().unwrap();
        assert!(tree(std::process::id()).contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
