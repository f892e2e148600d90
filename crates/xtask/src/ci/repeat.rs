//! The tests again and again, beside noise: a test that depends on how fast a machine is fails sooner or
//! later, and is named.

use crate::compile;
use crate::figures::{self, FigureTarget, Op};
use anyhow::{Context as _, Result, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::hint::spin_loop;
use std::num::NonZeroU32;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

/// What `check` is to do other than all its steps once.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only what a change since `main` can have broken
    #[arg(long, conflicts_with = "repeat")]
    pub(super) changed: bool,
    /// Run only the tests, and these so many times over
    #[arg(long, value_name = "ROUNDS")]
    repeat: Option<NonZeroU32>,
    /// Keep two cores busy beside them
    #[arg(long, requires = "repeat")]
    noise: bool,
    /// Write `ci.repeat_green`, rounds in which every test passed, or `ci.inner_loop_s`
    #[arg(long)]
    pub(super) figure: bool,
}

impl Args {
    pub(super) fn rounds(&self) -> Option<u32> {
        self.repeat.map(NonZeroU32::get)
    }
}

/// Rounds that the figure asks for.
const PROMISED: f64 = 20.0;

/// Builds once, and then runs so many rounds.
pub(super) fn run(root: &Path, args: &Args, rounds: u32) -> Result<ExitCode> {
    compile::everything(root)?;
    let _noise = args.noise.then(|| Noise::make(2));
    let mut green = 0;
    let mut failures: BTreeMap<String, u32> = BTreeMap::new();
    for round in 1..=rounds {
        let began = Instant::now();
        let failed = once(root).with_context(|| format!("round {round}"))?;
        green += u32::from(failed.is_empty());
        let seconds = began.elapsed().as_secs();
        println!("round {round} of {rounds}: {} failed, {seconds} s", failed.len());
        for name in failed {
            *failures.entry(name).or_default() += 1;
        }
    }
    for (name, times) in &failures {
        println!("failed {times} of {rounds} times: {name}");
    }
    println!("{green} of {rounds} rounds green");
    if args.figure {
        let noise = if args.noise { " --noise" } else { "" };
        let command = format!("cargo xtask check --repeat {rounds}{noise} --figure");
        let target = FigureTarget { op: Op::AtLeast, value: PROMISED };
        figures::write("ci.repeat_green", f64::from(green), "rounds", target, &command)?;
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One round: the tests that failed.
fn once(root: &Path) -> Result<BTreeSet<String>> {
    let (tests, success) = compile::timed(&mut compile::tests(root)?)?;
    let failed: BTreeSet<String> =
        tests.into_iter().filter(|test| test.failed).map(|test| test.name).collect();
    agree(&failed, success)?;
    Ok(failed)
}

/// How the tests ended must be what they say of themselves; else nothing is known of the round.
fn agree(failed: &BTreeSet<String>, success: bool) -> Result<()> {
    ensure!(success || !failed.is_empty(), "the tests ended badly, and none of them says so");
    ensure!(!success || failed.is_empty(), "the tests ended well, and some of them failed");
    Ok(())
}

/// Threads that never rest, until this is dropped. They end with this process in any case.
struct Noise {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Noise {
    fn make(threads: usize) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let busy = |_| {
            let over = Arc::clone(&over);
            std::thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    spin_loop();
                }
            })
        };
        let threads = (0..threads).map(busy).collect();
        Self { over, threads }
    }
}

impl Drop for Noise {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It cannot panic, and nobody could help if it did.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_ends_when_it_is_dropped_also_by_a_panic() {
        let mut over = None;
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let noise = Noise::make(2);
            over = Some(Arc::clone(&noise.over));
            std::panic::resume_unwind(Box::new("the tests could not be started"));
        }));
        // Threads hold it as long as they run.
        assert!(panicked.is_err() && Arc::strong_count(&over.unwrap()) == 1);
    }

    #[test]
    fn a_round_that_ends_otherwise_than_its_tests_say_is_none() {
        let (none, one) = (BTreeSet::new(), BTreeSet::from(["a".to_owned()]));
        assert!(agree(&none, true).is_ok() && agree(&one, false).is_ok());
        assert!(agree(&none, false).is_err() && agree(&one, true).is_err());
    }
}
