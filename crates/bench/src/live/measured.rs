//! What was measured of the cluster itself while arms ran, and is given to the simulator: how long pods take to start
//! beyond their warm-up, when the operator looked, and how busy the machine was. From time stamps, and from nothing that is
//! judged.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The file in the folder of kept series.
const FILE: &str = "cluster.json";

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Measured {
    /// Seconds from a pod being made to its readiness beyond its warm-up: the middle of all starts of all arms.
    pub(super) start_seconds: f64,
    /// How many starts that was.
    pub(super) starts: usize,
    /// By arm: seconds from its first request to the next look of its operator.
    pub(super) first_look_seconds: BTreeMap<String, f64>,
    /// Seconds between gateways' reports and looks, and between scrapes of engines and looks: means over all looks.
    pub(super) report_age_seconds: f64,
    pub(super) scrape_age_seconds: f64,
    /// The part of prompt tokens that gateways told no cache to have: over all looks.
    pub(super) uncached_share: Option<f64>,
    /// Share of the machine's time in which nothing ran, in percent: over all, and in the busiest minute.
    pub(super) idle_percent: f64,
    pub(super) least_idle_percent: f64,
    /// Milliseconds that timers were late in the worst minute, in its mean.
    #[serde(default)]
    pub(super) most_late_ms: f64,
}

impl Measured {
    /// Written for each of these arms: what the simulator is told of the cluster must be of the run that the arm was in.
    pub(super) fn keep(&self, folder: &Path, arms: &[&str]) -> Result<()> {
        let path = folder.join(FILE);
        let mut by_arm = if path.exists() { read(&path)? } else { BTreeMap::new() };
        by_arm.extend(arms.iter().map(|arm| ((*arm).to_owned(), self.clone())));
        std::fs::write(path, serde_json::to_string_pretty(&by_arm)? + "\n")?;
        Ok(())
    }

    /// As it was when this arm ran.
    pub(super) fn stored(folder: &Path, arm: &str) -> Result<Self> {
        let path = folder.join(FILE);
        let mut by_arm = read(&path)?;
        by_arm.remove(arm).with_context(|| format!("{} has nothing of {arm}", path.display()))
    }
}

fn read(path: &Path) -> Result<BTreeMap<String, Measured>> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))
}

/// Looks of an operator, from the file of readings that it wrote.
#[derive(Clone, Debug, Default)]
pub(super) struct OperatorTicks {
    /// When, in seconds since 1970, and the models that were looked at.
    at: Vec<(f64, Vec<String>)>,
    report_ages: Vec<f64>,
    scrape_ages: Vec<f64>,
    /// Prompt tokens in windows of gateways, and those of them that were told uncached.
    prompts: (f64, f64),
}

impl OperatorTicks {
    pub(super) fn read(&mut self, path: &Path) -> Result<()> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        for line in text.lines() {
            let tick: serde_json::Value = serde_json::from_str(line)?;
            let seconds = |value: &serde_json::Value| value.as_f64().map(|micros| micros / 1e6);
            let Some(at) = seconds(&tick["taken_at"]) else { continue };
            let models = tick["models"].as_object().into_iter().flatten();
            let mut names = Vec::new();
            for (name, model) in models {
                names.push(name.clone());
                let gateways = model["gateways"].as_array().into_iter().flatten();
                self.report_ages.extend(gateways.filter_map(|one| Some(at - seconds(&one["at"])?)));
                let windows = model["gateways"].as_array().into_iter().flatten();
                for counts in windows.filter_map(|one| one["counts"].as_array()) {
                    let grown = |place: usize| {
                        let of = |moment: Option<&serde_json::Value>| moment?[place].as_f64();
                        Some(of(counts.last())? - of(counts.first())?)
                    };
                    if let Some((all, uncached)) = grown(3).zip(grown(4)) {
                        self.prompts = (self.prompts.0 + all, self.prompts.1 + uncached);
                    }
                }
                let variants = model["variants"].as_object().into_iter().flatten();
                let engines = variants.filter_map(|(_, one)| one["engines"].as_object()).flatten();
                let last = engines.filter_map(|(_, one)| one["counts"].as_array()?.last());
                self.scrape_ages.extend(last.filter_map(|one| Some(at - seconds(&one[0])?)));
            }
            self.at.push((at, names));
        }
        Ok(())
    }

    /// Seconds from a moment, in seconds since 1970, to the first look at a namespace's model after it.
    pub(super) fn first_after(&self, moment: f64, namespace: &str) -> Option<f64> {
        let of = format!("{namespace}/");
        let mut ticks = self.at.iter().filter(|(at, _)| *at >= moment);
        let (at, _) = ticks.find(|(_, names)| names.iter().any(|name| name.starts_with(&of)))?;
        Some(at - moment)
    }

    /// The part of prompt tokens that gateways told no cache to have.
    pub(super) fn uncached_share(&self) -> Option<f64> {
        let (all, uncached) = self.prompts;
        (all > 0.0).then(|| uncached / all)
    }

    pub(super) fn ages(&self) -> (f64, f64) {
        let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len().max(1) as f64;
        (mean(&self.report_ages), mean(&self.scrape_ages))
    }
}

/// How late a timer of this machine is: engines wait by timers, so that what a timer is late their tokens are late too.
pub(super) struct Timers {
    late_us: Arc<AtomicU64>,
    waits: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What is waited for, again and again: about as long as an engine's step.
const WAIT: Duration = Duration::from_millis(10);

impl Timers {
    pub(super) fn watch() -> Self {
        let (late_us, waits) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let is_over = Arc::new(AtomicBool::new(false));
        let shared = (Arc::clone(&late_us), Arc::clone(&waits), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            let (late_us, waits, is_over) = shared;
            while !is_over.load(Ordering::Relaxed) {
                let began = Instant::now();
                std::thread::sleep(WAIT);
                let late = began.elapsed().saturating_sub(WAIT);
                late_us.fetch_add(late.as_micros() as u64, Ordering::Relaxed);
                waits.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { late_us, waits, is_over, thread: Some(thread) }
    }

    /// Milliseconds that they were late since this was asked last, in the mean.
    pub(super) fn late_ms(&self) -> f64 {
        let (late, waits) =
            (self.late_us.swap(0, Ordering::Relaxed), self.waits.swap(0, Ordering::Relaxed));
        late as f64 / 1e3 / waits.max(1) as f64
    }
}

impl Drop for Timers {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It only counts: if it panicked, its counts stay.
            let _ = thread.join();
        }
    }
}

/// The time of all cores, that in which they did nothing, and that in which another machine on the same host had them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cores {
    all: f64,
    idle: f64,
    stolen: f64,
}

impl Cores {
    /// Since the machine began.
    pub(super) fn now() -> Option<Self> {
        let text = std::fs::read_to_string("/proc/stat").ok()?;
        let first = text.lines().next()?;
        let parts: Vec<f64> =
            first.split_whitespace().skip(1).filter_map(|part| part.parse().ok()).collect();
        // User, nice, system, idle, waiting for disks, two kinds of interrupts, and stolen; what follows is in the first
        // two.
        let (idle, stolen) = (parts.get(3)? + parts.get(4)?, *parts.get(7)?);
        Some(Self { all: parts.iter().take(8).sum(), idle, stolen })
    }

    /// The part that other machines had since an earlier moment, in percent.
    pub(super) fn stolen_since(self, before: Self) -> f64 {
        100.0 * (self.stolen - before.stolen) / (self.all - before.all).max(1.0)
    }

    /// The part in which they did nothing since an earlier moment, in percent.
    pub(super) fn idle_since(self, before: Self) -> f64 {
        100.0 * (self.idle - before.idle) / (self.all - before.all).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_read_from_lines_of_readings() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("readings.jsonl");
        let line = |at: u64| {
            format!(
                r#"{{"taken_at":{at},"models":{{"a/m":{{"gateways":[{{"at":{}}}],"variants":{{"x":{{"engines":{{"e":{{"counts":[[1,0],[{},0]]}}}}}}}}}}}}}}"#,
                at - 500_000,
                at - 3_000_000
            ) + "\n"
        };
        std::fs::write(&path, line(100_000_000) + &line(115_000_000)).unwrap();
        let mut ticks = OperatorTicks::default();
        ticks.read(&path).unwrap();
        assert_eq!(ticks.first_after(101.0, "a"), Some(14.0));
        assert_eq!(ticks.first_after(101.0, "b"), None);
        let (report, scrape) = ticks.ages();
        assert!((report - 0.5).abs() < 1e-9 && (scrape - 3.0).abs() < 1e-9);
    }

    #[test]
    fn each_arm_has_what_was_measured_when_it_ran_last() {
        let folder = tempfile::tempdir().unwrap();
        let of = |starts| Measured { starts, ..Measured::default() };
        of(1).keep(folder.path(), &["a", "b"]).unwrap();
        of(2).keep(folder.path(), &["b", "c"]).unwrap();
        let starts = |arm| Measured::stored(folder.path(), arm).map(|one| one.starts).ok();
        assert_eq!(["a", "b", "c", "d"].map(starts), [Some(1), Some(2), Some(2), None]);
    }

    #[test]
    fn idle_time_is_a_part_of_all() {
        let before = Cores { all: 100.0, idle: 50.0, stolen: 1.0 };
        let after = Cores { all: 200.0, idle: 75.0, stolen: 11.0 };
        assert!((after.idle_since(before) - 25.0).abs() < 1e-9);
        assert!((after.stolen_since(before) - 10.0).abs() < 1e-9);
    }
}
