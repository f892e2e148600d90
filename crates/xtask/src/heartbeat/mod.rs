//! `cargo xtask heartbeat`: the Python package that training runs report with, tested, timed, and in a run that is killed.
//!
//! The work is done by Python scripts, which print what they counted as JSON; this finds a Python for them and writes the
//! figures down. The tests need no packages; a run that is killed needs torch, from `FLYBALL_TORCH_PYTHON` or from
//! [`crate::engines`]. Start at [`run`].

mod faults;

use crate::figures::Op;
use crate::page::{Document, Measured, MeasuredPage, measure};
use crate::{engines, process};
use anyhow::{Context as _, Result};
use serde::Deserialize;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command as Program;

/// What `cargo xtask heartbeat` can do.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Run the package's own tests; no packages are needed
    Test,
    /// Processor time of what a training loop calls in a step
    Cost {
        /// Write the figure and docs/benchmarks-heartbeat.md
        #[arg(long)]
        figure: bool,
    },
    /// Kill a training run 20 times and tell it to end 20 times, and count what it lost (needs torch)
    Faults(faults::Args),
}

const PAGE: Document = Document {
    store: "docs/benchmarks-heartbeat.json",
    page: "docs/benchmarks-heartbeat.md",
    head: "# The heartbeat of training runs, measured\n\n\
           [The guide](guides/heartbeat.md) says how to use it, [the reference](reference/heartbeat.md) what is sent.\n",
};

const PACKAGE: &str = "python/flyball-heartbeat";

pub(crate) fn run(root: &Path, command: &Command) -> Result<()> {
    match command {
        Command::Test => test(root),
        Command::Cost { figure } => cost(root, *figure),
        Command::Faults(args) => faults::run(root, args),
    }
}

/// Whether there is a Python that the tests can run with.
pub(crate) fn has_python() -> bool {
    process::read(Program::new("python3").arg("--version")).is_ok()
}

/// The package's own tests.
pub(crate) fn test(root: &Path) -> Result<()> {
    let mut python = python("python3".into(), root);
    process::run(python.current_dir(root.join(PACKAGE)).args(["-m", "unittest"]))
}

/// A Python that finds the package and nothing of the environment that would change what it does.
fn python(program: OsString, root: &Path) -> Program {
    let mut python = Program::new(program);
    python.env("PYTHONPATH", root.join(PACKAGE)).env("PYTHONDONTWRITEBYTECODE", "1");
    for set in std::env::vars_os().map(|(name, _)| name) {
        if set.to_str().is_some_and(|name| name.starts_with("FLYBALL_HEARTBEAT_")) {
            python.env_remove(set);
        }
    }
    python
}

/// What `cost.py` counted, in microseconds of processor time of the training thread.
#[derive(Deserialize)]
struct Cost {
    step_us: f64,
    asked_us: f64,
    requests: u64,
    python: String,
}

fn cost(root: &Path, figure: bool) -> Result<()> {
    let mut python = python("python3".into(), root);
    let printed = process::read(python.arg(root.join(PACKAGE).join("cost.py")))?;
    let cost: Cost = serde_json::from_str(&printed).context("what cost.py printed")?;
    let text = format!(
        "Processor time of the training thread for `step()` and `should_save()` with Python {}, with the HTTP thread \
         and a file on a local disk: the median of 50 rounds.\n\n\
         | | µs per step |\n|---|---|\n| nobody asks | {:.1} |\n| somebody asks all the time ({} requests) | {:.1} |\n",
        cost.python, cost.step_us, cost.requests, cost.asked_us,
    );
    let figures = vec![measure("training.heartbeat_step_us", cost.step_us, "µs", Op::AtMost, 20.0)];
    let mut page = MeasuredPage::new(PAGE, "cargo xtask heartbeat cost --figure", figure);
    page.add(root, 1, "What a step costs", Measured { text, figures })?;
    page.finish(root, false)
}
