//! `cargo xtask bench backtest`: what the simulator and the governor are worth, in numbers.
//!
//! Sections in order: `truth` (the engine against real runs), `speed`, `cells` (one model against
//! every rival), `pool` (three models on shared accelerators, and lent training), `ramp` (a
//! published ramp), `drills` (faults). Each prints its table; `--figure` writes the figures and
//! `docs/benchmarks.md`. Traces are read in place, beside the checkout, and never copied.

mod cells;
mod contenders;
mod document;
mod pool;
mod sources;
mod spread;
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
            Name::Cells => cells(root, args)?,
            Name::Pool if !args.quick => pool(root, args)?,
            _ => continue,
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

fn cells(root: &Path, args: &Args) -> Result<Measured> {
    let sources = sources::servegen(root)?;
    let seeds = if args.quick { 1 } else { args.seeds };
    let effort = cells::Effort { training_seeds: 1, test_seeds: seeds, hindsight: !args.quick };
    let only = args.cell.as_deref().or(args.quick.then_some("m-large@100"));
    let chosen = |source: &str, cold: &str| {
        only.is_none_or(|cell| format!("{source}@{cold}").contains(cell))
    };
    let cells = cells::measure(&sources, effort, chosen, |cell| {
        eprintln!("{}", cells::table::line(cell));
    });
    let won = cells.iter().filter(|cell| cell.is_won()).count();
    let share = 100.0 * won as f64 / cells.len().max(1) as f64;
    let total = |read: fn(&cells::Contender) -> f64| -> f64 {
        cells.iter().map(|cell| read(&cell.governor)).sum()
    };
    Ok(Measured {
        text: cells::table::markdown(&cells, seeds),
        figures: vec![
            measure("governor.cells_won_pct", share, "%", Op::AtLeast, 100.0),
            measure(
                "governor.saving_median_pct",
                cells::median_saving(&cells),
                "%",
                Op::AtLeast,
                5.0,
            ),
            measure("governor.killed", total(|one| one.killed), "requests", Op::Exactly, 0.0),
            measure("governor.reversals", total(|one| one.reversals), "", Op::Exactly, 0.0),
        ],
    })
}

fn pool(root: &Path, args: &Args) -> Result<Measured> {
    let sources = sources::servegen(root)?;
    let shared = pool::shared(&sources, args.seeds);
    let lent = pool::lent(&sources, args.seeds);
    Ok(Measured {
        text: pool::markdown(&shared, &lent, args.seeds),
        figures: vec![
            measure(
                "governor.pool_saving_pct",
                pool::median_saving(&shared),
                "%",
                Op::AtLeast,
                12.0,
            ),
            measure(
                "governor.pool_vs_clairvoyant",
                pool::median_ratio(&shared),
                "x",
                Op::AtMost,
                1.1,
            ),
            measure("governor.lent_pct", lent.lent_pct, "%", Op::AtLeast, 40.0),
        ],
    })
}
