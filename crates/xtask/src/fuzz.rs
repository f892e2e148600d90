//! `cargo xtask fuzz`: runs the targets of `fuzz/` for a time or a number of executions.
//!
//! What a run finds worth keeping goes to the cache folder, so that the next one begins where it
//! ended; `--keep` brings the smallest set with the same coverage into `fuzz/corpus`, which every
//! run starts from. An input that broke a target stands in `fuzz/regressions/TARGET` under a name
//! that says what was wrong, and is tried first in every run.

use crate::figures::{self, FigureTarget, Op};
use crate::{checkout, parallel, process};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGETS: [&str; 7] =
    ["api_key", "body_scanner", "config", "key_set", "request_head", "sse_relay", "token"];

/// Bytes of the kept corpus of one target: a clone of the repository must stay small.
const MAX_BYTES: u64 = 200_000;
/// And its files, taken evenly from the short ones to the long ones.
const MAX_FILES: usize = 300;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Seconds for each target
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Run each target this often instead, however long that takes
    #[arg(long)]
    executions: Option<u64>,
    /// Only this target
    #[arg(long)]
    target: Option<String>,
    /// Write what is worth keeping into fuzz/corpus
    #[arg(long)]
    keep: bool,
    /// Write `gateway.fuzz_executions`: the fewest of any target
    #[arg(long)]
    figure: bool,
}

pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    let targets = chosen(args.target.as_deref())?;
    if !nightly() {
        bail!("fuzzing needs a nightly compiler\n\nhint: rustup toolchain install nightly");
    }
    let fuzz = Fuzz { source: root.join("fuzz"), cache: checkout::cache()?.join("fuzz") };
    fuzz.build()?;
    let limit = match args.executions {
        Some(executions) => format!("-runs={executions}"),
        None => format!("-max_total_time={}", args.seconds),
    };
    let results = parallel::map(&targets, |target| fuzz.run(target, &limit));
    let mut fewest = u64::MAX;
    let mut broken = Vec::new();
    for (target, result) in targets.iter().zip(results) {
        match result {
            Ok(executions) => {
                println!("{target:<14} {executions:>12} executions, no crash");
                fewest = fewest.min(executions);
            }
            Err(error) => broken.push(error.context(format!("target {target}"))),
        }
    }
    if let Some(error) = broken.pop() {
        return Err(error);
    }
    if args.keep {
        targets.iter().try_for_each(|target| fuzz.keep(target))?;
    }
    if args.figure && args.target.is_none() {
        let target = FigureTarget { op: Op::AtLeast, value: 1e7 };
        let command = "cargo xtask fuzz --executions 10000000 --figure";
        figures::write("gateway.fuzz_executions", fewest as f64, "executions", target, command)?;
    }
    println!("fuzz: {} targets, at least {fewest} executions each, no crash", targets.len());
    Ok(())
}

/// True when the targets were built before, so that only what changed is built again.
pub(crate) fn is_cached() -> Result<bool> {
    Ok(checkout::cache()?.join("fuzz/release").join(TARGETS[0]).exists())
}

/// A minute of each, as CI does it. Says why if it cannot.
pub(crate) fn briefly(root: &Path) -> Result<Option<String>> {
    if !nightly() {
        return Ok(Some("there is no nightly compiler here".into()));
    }
    let args = Args { seconds: 60, executions: None, target: None, keep: false, figure: false };
    run(root, &args).map(|()| None)
}

fn chosen(target: Option<&str>) -> Result<Vec<&'static str>> {
    let Some(named) = target else { return Ok(TARGETS.to_vec()) };
    match TARGETS.into_iter().find(|name| *name == named) {
        Some(found) => Ok(vec![found]),
        None => bail!("there is no target `{named}`\n\nhint: they are {}", TARGETS.join(", ")),
    }
}

fn nightly() -> bool {
    process::read(Command::new("rustup").args(["run", "nightly", "rustc", "--version"])).is_ok()
}

struct Fuzz {
    /// The targets, what they start from, what broke them.
    source: PathBuf,
    /// What is built, and what runs found.
    cache: PathBuf,
}

impl Fuzz {
    fn build(&self) -> Result<()> {
        println!("fuzz: building the targets (minutes when the cache is empty)");
        process::run(
            Command::new("rustup")
                .args(["run", "nightly", "cargo", "build", "--release", "--locked", "--quiet"])
                .current_dir(&self.source)
                .env("CARGO_TARGET_DIR", &self.cache),
        )
    }

    fn found(&self, target: &str) -> PathBuf {
        self.cache.join("found").join(target)
    }

    fn corpus(&self, target: &str) -> PathBuf {
        self.source.join("corpus").join(target)
    }

    fn regressions(&self, target: &str) -> PathBuf {
        self.source.join("regressions").join(target)
    }

    fn program(&self, target: &str) -> Command {
        Command::new(self.cache.join("release").join(target))
    }

    /// Runs a target and says how often.
    fn run(&self, target: &str, limit: &str) -> Result<u64> {
        let (found, crashes) = (self.found(target), self.cache.join("crashes").join(target));
        for folder in [&found, &crashes, &self.corpus(target), &self.regressions(target)] {
            fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        }
        let mut program = self.program(target);
        // An input that takes ten seconds is a defect too; 4 KiB hold every construct several times.
        program.args([limit, "-max_len=4096", "-timeout=10", "-rss_limit_mb=2048"]);
        program.args(["-print_final_stats=1", &format!("-artifact_prefix={}/", crashes.display())]);
        let words = self.source.join("words").join(target);
        if words.exists() {
            program.arg(format!("-dict={}", words.display()));
        }
        program.arg(found).arg(self.corpus(target)).arg(self.regressions(target));
        let output = program.output().with_context(|| format!("starting {target}"))?;
        let log = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            let tail: Vec<&str> = log.lines().rev().take(25).collect();
            let tail: Vec<&str> = tail.into_iter().rev().collect();
            let hint = "mend it, and keep the input under fuzz/regressions by a name that says why";
            bail!("it broke:\n{}\n\nhint: {hint}", tail.join("\n"));
        }
        executed(&log).context("it did not say how often it ran")
    }

    /// Brings the fewest inputs with the same coverage into the repository.
    fn keep(&self, target: &str) -> Result<()> {
        let corpus = self.corpus(target);
        let fresh = self.cache.join("fresh").join(target);
        let _ = fs::remove_dir_all(&fresh);
        fs::create_dir_all(&fresh)?;
        let mut program = self.program(target);
        program.arg("-merge=1").arg(&fresh).arg(&corpus).arg(self.found(target));
        process::read(&mut program)?;
        fs::remove_dir_all(&corpus)?;
        fs::create_dir_all(&corpus)?;
        let mut files = Vec::new();
        for entry in fs::read_dir(&fresh)? {
            let entry = entry?;
            files.push((entry.metadata()?.len(), entry.file_name()));
        }
        // Small inputs first: they are worth most per byte.
        files.sort();
        let (step, mut bytes) = (files.len().div_ceil(MAX_FILES).max(1), 0);
        for (length, name) in files.into_iter().step_by(step) {
            bytes += length;
            if bytes > MAX_BYTES {
                break;
            }
            fs::copy(fresh.join(&name), corpus.join(&name))?;
        }
        Ok(())
    }
}

/// The executions that libFuzzer counted.
fn executed(log: &str) -> Option<u64> {
    log.lines()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units:")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_are_read_from_the_final_statistics() {
        let log = "Done 100 runs in 3 second(s)\nstat::number_of_executed_units: 100\nstat::x: 5\n";
        assert_eq!(executed(log), Some(100));
        assert_eq!(executed("Done"), None);
    }

    #[test]
    fn an_unknown_target_is_named_with_those_there_are() {
        assert_eq!(chosen(None).unwrap().len(), TARGETS.len());
        assert_eq!(chosen(Some("config")).unwrap(), ["config"]);
        assert!(chosen(Some("x")).unwrap_err().to_string().contains("sse_relay"));
    }

    #[test]
    fn every_target_is_built_and_has_inputs_to_start_from() {
        let root = crate::checkout::root().unwrap();
        let manifest = fs::read_to_string(root.join("fuzz/Cargo.toml")).unwrap();
        for target in TARGETS {
            assert!(manifest.contains(&format!("name = \"{target}\"")), "{target}");
            let corpus = root.join("fuzz/corpus").join(target);
            assert!(fs::read_dir(corpus).unwrap().next().is_some(), "{target}");
        }
    }
}
