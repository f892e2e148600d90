//! `cargo xtask bench batch`: what files and batches hold through any crash.
//!
//! The worlds are tests of the crate that decides; this runs them in an optimised build, by the thousand, and reads what
//! they print.

use crate::documents::{BATCH, typed, unless};
use crate::figures::Op;
use crate::page::{Measured, MeasuredPage, measure};
use crate::programs::printed::{PrintedFigures, TestRun};
use anyhow::{Result, ensure};
use clap::Args as ClapArgs;
use std::path::Path;

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Write the figures and docs/benchmarks-batch.md
    #[arg(long)]
    figure: bool,
    /// Random worlds; of those with deadlines at most 1,000, of those with 50,000 lines at most 50
    #[arg(long, default_value_t = WORLDS)]
    seeds: u64,
}

const WORLDS: u64 = 10_000;

pub(super) fn run(root: &Path, args: &Args) -> Result<()> {
    let command = typed("cargo xtask bench batch", &[("--seeds", unless(WORLDS, args.seeds))]);
    let mut page = MeasuredPage::new(BATCH, &command, args.figure);
    page.add(root, 0, "Batches in random worlds", worlds(root, args.seeds)?)?;
    page.finish(root, false)
}

fn worlds(root: &Path, seeds: u64) -> Result<Measured> {
    let run = TestRun::Worlds("FLYBALL_BATCH_SEEDS", seeds);
    let tests = ["-p", "flyball-batch", "--lib", "worlds::"];
    let output = PrintedFigures::of(root, &tests, run)?;
    ensure!(
        output.passed,
        "something is lost, doubled or late in one of the worlds:\n{}",
        output.text
    );
    let wrong = output.number("lines wrong in all worlds: ")?;
    let deaths = output.number("workers that died: ")?;
    let repeated = output.number("lines sent twice after a death, at most, percent: ")?;
    let (feasible, missed) = (
        output.number("worlds with a schedule: ")?,
        output.number("deadlines missed although there was a schedule: ")?,
    );
    let text = format!(
        "Workers die at any call to the store, stand still and come back, and are two at a time; calls and answers of the store \
         are lost; callers cancel; windows end. What is played is the code that runs, but for clocks and connections. In the end \
         each line is in one of the two files, once, in the right one, with its own answer, and counts and tokens agree.\n\n\
         | | |\n|---|---|\n| worlds | {seeds} |\n| workers that died | {deaths:.0} |\n\
         | worlds with a line lost, doubled or in the wrong file | {wrong:.0} |\n\
         | lines of a batch of 50,000 sent twice after a death, 64 at once, in the worst world | {repeated:.2} % |\n\
         | worlds in which every deadline could be kept, a quarter of an hour early | {feasible:.0} |\n\
         | deadlines missed in those | {missed:.0} |\n"
    );
    let figures = vec![
        measure("batch.lines_wrong", wrong, "lines", Op::AtMost, 0.0),
        measure("batch.repeated_pct", repeated, "%", Op::AtMost, 1.0),
        measure("batch.deadlines_missed", missed, "batches", Op::AtMost, 0.0),
    ];
    Ok(Measured { text, figures })
}
