//! `cargo xtask bench backtest`: what the simulator and the governor are worth, in numbers.
//!
//! Sections in order: `truth` (the engine against real runs), `speed`, `cells` (one model against
//! every rival), `pool` (three models on shared accelerators, and lent training), `ramp` (a
//! published ramp), `drills` (faults). Each prints its table; `--figure` writes the figures and
//! `docs/benchmarks.md`. Traces are read in place, beside the checkout, and never copied.

mod cells;
mod contenders;
mod document;
mod drills;
mod pace;
mod pool;
mod sections;
mod sources;
mod speed;
mod spread;
mod truth;
mod worlds;
mod yardstick;

use crate::figures::{self, Op, Target};
use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use document::Section;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Replays: truth, speed, cells, pool, ramp, drills
    Backtest(Args),
}

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Only these sections
    #[arg(long, value_delimiter = ',')]
    only: Vec<Name>,
    /// A short form for CI: one cell, one seed, nothing written
    #[arg(long)]
    quick: bool,
    /// Write the figures and docs/benchmarks.md
    #[arg(long, conflicts_with_all = ["quick", "cell"])]
    figure: bool,
    /// Only cells whose source and cold start contain this, as in `m-large@100`
    #[arg(long)]
    cell: Option<String>,
    /// Seeds of the test week
    #[arg(long, default_value_t = 10)]
    seeds: u64,
}

/// The sections, in the order of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Name {
    Truth,
    Speed,
    Cells,
    Pool,
    Ramp,
    Drills,
}

impl Name {
    const fn title(self) -> &'static str {
        match self {
            Self::Truth => "The engine against real runs",
            Self::Speed => "Speed on one core",
            Self::Cells => "One model against every rival",
            Self::Pool => "Three models on shared accelerators",
            Self::Ramp => "A published ramp",
            Self::Drills => "Drills and random faults",
        }
    }
}

/// What a section measured.
struct Measured {
    /// Markdown.
    text: String,
    figures: Vec<Measure>,
}

/// One figure.
struct Measure {
    name: &'static str,
    value: f64,
    unit: &'static str,
    target: Target,
}

/// One figure that should be at most, or at least, its target.
const fn measure(
    name: &'static str,
    value: f64,
    unit: &'static str,
    op: Op,
    target: f64,
) -> Measure {
    Measure { name, value, unit, target: Target { op, value: target } }
}

pub(crate) fn run(root: &Path, command: &Command) -> Result<()> {
    let Command::Backtest(args) = command;
    let mut sections = BTreeMap::new();
    for name in Name::value_variants().iter().copied() {
        if !args.only.is_empty() && !args.only.contains(&name) {
            continue;
        }
        let measured = match name {
            Name::Truth => sections::truth(root)?,
            Name::Speed => sections::speed(root, args)?,
            Name::Cells => sections::cells(root, args)?,
            // Too long for the short form.
            Name::Pool if args.quick => continue,
            Name::Pool => sections::pool(root, args)?,
            Name::Ramp => sections::ramp(root, args)?,
            Name::Drills => sections::drills(root, args)?,
        };
        println!("## {}\n\n{}", name.title(), measured.text);
        for one in &measured.figures {
            let verdict = if one.target.is_met(one.value) { "met" } else { "missed" };
            println!("{} = {} {} ({verdict})", one.name, one.value, one.unit);
            if args.figure {
                let command = "cargo xtask bench backtest --figure";
                figures::write(one.name, one.value, one.unit, one.target, command)?;
            }
        }
        let date = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
        let title = name.title().to_owned();
        sections.insert(name as u8, Section { title, date, text: measured.text });
    }
    if args.figure {
        document::keep(root, sections)?;
    }
    Ok(())
}
