//! A training run that is killed and told to end, again and again.

use super::{PAGE, engines, python};
use crate::figures::Op;
use crate::page::{Measured, MeasuredPage, measure};
use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;

/// How often, and how it is written down.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write the figures and docs/benchmarks-heartbeat.md
    #[arg(long)]
    figure: bool,
    /// Times that everything is killed
    #[arg(long, default_value_t = 20)]
    kills: u32,
    /// Times that SIGTERM is sent
    #[arg(long, default_value_t = 20)]
    terms: u32,
    /// What decides at which steps
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Start each attempt by torchrun, which takes three imports of torch
    #[arg(long)]
    torchrun: bool,
}

/// What `faults.py` counted.
#[derive(Debug, Deserialize)]
struct Counted {
    kills: u32,
    terms: u32,
    steps: u32,
    save_every: u32,
    torch: String,
    different_losses: u32,
    steps_missing: u32,
    equal_weights: bool,
    redone: u32,
    redone_after_terms: u32,
    most_redone: u32,
    beyond_interval: u32,
    attempts_by_ledger: u32,
    attempts_by_heartbeats: u32,
    redone_by_ledger: u32,
    redone_by_heartbeats: u32,
    steps_off: u32,
    saved_steps_off: u32,
    seconds: u32,
    broken: Option<String>,
}

pub(super) fn run(root: &Path, args: &Args) -> Result<()> {
    let torch = match torch(root) {
        Ok(torch) => torch,
        Err(error) => {
            println!("skipped: no torch: {error:#}");
            return Ok(());
        }
    };
    let counted = play(root, torch, args)?;
    if let Some(promise) = &counted.broken {
        bail!("a promise was broken ({promise}): {counted:?}");
    }
    let command = "cargo xtask heartbeat faults --figure";
    let command = if args.torchrun { format!("{command} --torchrun") } else { command.to_owned() };
    let mut page = MeasuredPage::new(PAGE, &command, args.figure);
    page.add(root, 0, "A run that is killed", measured(&counted, args.torchrun))?;
    page.finish(root, false)
}

fn torch(root: &Path) -> Result<OsString> {
    match std::env::var_os("FLYBALL_TORCH_PYTHON") {
        Some(python) => Ok(python),
        None => engines::torch_python(root).map(Into::into),
    }
}

fn play(root: &Path, torch: OsString, args: &Args) -> Result<Counted> {
    let folder = crate::checkout::cache()?.join("heartbeat-faults");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let mut python = python(torch, root);
    python.arg(root.join("python/examples/faults.py")).arg("--folder").arg(&folder);
    let numbers = [("--kills", args.kills), ("--terms", args.terms)];
    for (flag, number) in numbers {
        python.args([flag, &number.to_string()]);
    }
    python.args(["--seed", &args.seed.to_string()]);
    if args.torchrun {
        python.arg("--torchrun");
    }
    // Its progress is for who waits; only its last line is read.
    let out = python.stderr(Stdio::inherit()).output().context("could not start Python")?;
    let text = String::from_utf8_lossy(&out.stdout);
    let last = text.lines().last().unwrap_or_default();
    let counted = serde_json::from_str(last);
    ensure!(counted.is_ok() || out.status.success(), "faults.py ended with {}", out.status);
    counted.context("what faults.py printed")
}

fn measured(counted: &Counted, torchrun: bool) -> Measured {
    let Counted { kills, terms, steps, save_every, .. } = counted;
    let started = if torchrun {
        "Each attempt is started by torchrun."
    } else {
        "The processes of each attempt are forked from one that has loaded torch, because an import takes longer than \
         the rest of an attempt."
    };
    let text = format!(
        "`python/examples/ddp.py` (PyTorch {}, DDP over gloo, two processes on CPUs, {steps} steps, a checkpoint every \
         {save_every}) is made once undisturbed, and once with {kills} times SIGKILL for all processes and {terms} times \
         SIGTERM for one of them or both, at steps that a seed chooses. {started} What is killed are processes of one \
         machine, not nodes: no disk, network or cluster fails here.\n\n\
         | | |\n|---|---|\n\
         | steps with another loss than undisturbed | {} |\n| steps never made | {} |\n\
         | final weights, bit by bit | {} |\n\
         | steps made again, in all; at most after one fault; after SIGTERM | {}; {}; {} |\n\
         | steps made again beyond one interval | {} |\n\
         | attempts: by the ledger of steps, by heartbeats | {}, {} |\n\
         | steps made again: by the ledger, by heartbeats | {}, {} |\n\
         | kills between two writes that belong together: ledger and heartbeat, checkpoint and heartbeat | {}, {} |\n\
         | duration | {} s |\n",
        counted.torch,
        counted.different_losses,
        counted.steps_missing,
        if counted.equal_weights { "the same" } else { "others" },
        counted.redone,
        counted.most_redone,
        counted.redone_after_terms,
        counted.beyond_interval,
        counted.attempts_by_ledger,
        counted.attempts_by_heartbeats,
        counted.redone_by_ledger,
        counted.redone_by_heartbeats,
        counted.steps_off,
        counted.saved_steps_off,
        counted.seconds,
    );
    let survived = f64::from(kills + terms);
    let beyond = f64::from(counted.beyond_interval);
    let figures = vec![
        measure("training.process_faults_survived", survived, "faults", Op::AtLeast, 40.0),
        measure("training.process_steps_beyond_interval", beyond, "steps", Op::AtMost, 0.0),
    ];
    Measured { text, figures }
}
