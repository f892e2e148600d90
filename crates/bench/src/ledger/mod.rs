//! `cargo xtask bench ledger`: that nothing is lost or doubled, and what writing a request down costs.
//!
//! The worlds and the sums of processor time are tests of the ledger; this runs them in an optimised build and reads what
//! they print.

use crate::documents::{LEDGER, listed, typed, unless};
use crate::figures::Op;
use crate::page::{Measured, MeasuredPage, measure};
use crate::programs::printed::{PrintedFigures, TestRun};
use anyhow::{Result, ensure};
use clap::{Args as ClapArgs, ValueEnum};
use std::path::Path;

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Write the figures and docs/benchmarks-ledger.md
    #[arg(long)]
    figure: bool,
    /// Random worlds
    #[arg(long, default_value_t = WORLDS)]
    seeds: u64,
    /// Only these parts of the page
    #[arg(long, value_delimiter = ',', value_enum)]
    parts: Vec<Part>,
}

const WORLDS: u64 = 10_000;

/// A part of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Everything ends at some moment
    Worlds,
    /// Processor time of a request
    Cost,
}

impl Part {
    const fn title(self) -> &'static str {
        match self {
            Self::Worlds => "Lost and doubled in random worlds",
            Self::Cost => "What writing a request down costs",
        }
    }
}

pub(super) fn run(root: &Path, args: &Args) -> Result<()> {
    let mut page = MeasuredPage::new(LEDGER, &command(args), args.figure);
    for part in Part::value_variants().iter().copied() {
        if !args.parts.is_empty() && !args.parts.contains(&part) {
            continue;
        }
        let measured = match part {
            Part::Worlds => worlds(root, args.seeds)?,
            Part::Cost => cost(root)?,
        };
        page.add(root, part as u8, part.title(), measured)?;
    }
    page.finish(root, false)
}

fn command(args: &Args) -> String {
    let options = [("--seeds", unless(WORLDS, args.seeds)), ("--parts", listed(&args.parts))];
    typed("cargo xtask bench ledger", &options)
}

fn worlds(root: &Path, seeds: u64) -> Result<Measured> {
    let tests = ["-p", "flyball-ledger", "--test", "it", "worlds::"];
    let output = PrintedFigures::of(root, &tests, TestRun::Worlds("FLYBALL_LEDGER_SEEDS", seeds))?;
    ensure!(output.passed, "the test of the worlds did not come to its end:\n{}", output.text);
    let number = |words: &str| output.number(&format!("worlds, {words}: "));
    let (played, lost, doubled) = (number("played")?, number("lost")?, number("doubled")?);
    let (requests, marked) = (number("requests")?, number("lost and marked")?);
    let mut text = format!(
        "Three machines with a gateway each, two committers, the operator's witness and a bucket, in {played} worlds with \
         {requests} requests. Processes end before and after every step that a disk or a store does, machines lose power or \
         are gone with their disks, disks are full, the bucket is away or full, answers are lost although the call was done, \
         two commit, merge and delete at once, and a machine that lives is taken for gone. In the end everybody gets an hour of \
         peace, and the table is read by its log from the first commit on, by another reader than the one that it was \
         written with. It is the code that services run, on disks and stores that are made up.\n\n\
         | | |\n|---|---|\n\
         | requests that were answered and are not in the table | {lost} |\n\
         | requests that are in the table twice | {doubled} |\n\
         | requests of the last second of a machine that ended, or of a process whose disk was full; marked in the table | {marked} |\n"
    );
    for (words, title) in EVENTS {
        text.push_str(&format!("| {title} | {} |\n", number(words)?));
    }
    let figures = vec![
        measure("ledger.crash_seeds", played, "worlds", Op::AtLeast, 10_000.0),
        measure("ledger.lost", lost, "requests", Op::AtMost, 0.0),
        measure("ledger.doubled", doubled, "requests", Op::AtMost, 0.0),
    ];
    Ok(Measured { text, figures })
}

/// What happened in the worlds, as the test calls it.
const EVENTS: [(&str, &str); 9] = [
    ("killed", "processes killed between two steps"),
    ("mid step", "processes that ended in the middle of a step"),
    ("power failures", "power failures"),
    ("machines gone", "machines gone with their disks"),
    ("disks full", "disks full"),
    ("lies", "calls that were done and got no answer"),
    ("committers ended", "committers that ended in the middle of a step"),
    ("corrections", "files that add what somebody else did not know"),
    ("unclosed", "requests said to have no end"),
];

fn cost(root: &Path) -> Result<Measured> {
    let tests = ["-p", "flyball-ledger", "--test", "it", "cost::"];
    let output = PrintedFigures::of(root, &tests, TestRun::Alone)?;
    ensure!(output.passed, "it was not measured:\n{}", output.text);
    let request = output.number("a request written down, us: ")?;
    let encoded = output.number("of it encoded, us: ")?;
    let write = output.number("a write of as many bytes alone, us: ")?;
    let bytes = output.number("bytes of a request: ")?;
    let text = format!(
        "Opening and end of a request, each other than the one before, to a file on this machine's disk without a sync: what \
         a request waits for. The median of many bursts.\n\n| | |\n|---|---|\n\
         | a request written down, us | {request:.2} |\n\
         | of it encoded, us | {encoded:.2} |\n\
         | a write of as many bytes alone, us | {write:.2} |\n\
         | bytes of a request, opening and end | {bytes:.0} |\n"
    );
    let figures = vec![measure("ledger.meter_us", request, "us", Op::AtMost, 0.5)];
    Ok(Measured { text, figures })
}
