//! `cargo xtask bench backtest`: what the simulator and the governor are worth, in replays.
//!
//! The sections in order, as `sections` writes them: `truth` (the engine against real runs), `speed`, `cells` (one model
//! against every rival), `pool` (three models on shared accelerators, and lent training), `ramp` (a published ramp),
//! `drills` (faults). Each prints its table; `--figure` writes the figures and `docs/benchmarks.md`, to which
//! `wrong_capacity` adds a section of its own.

mod choice;
mod sections;

use crate::documents::{BACKTEST, listed, typed, unless};
use crate::page::{Measured, MeasuredPage};
use crate::sources;
use anyhow::Result;
use clap::{Args as ClapArgs, ValueEnum};
use std::path::Path;

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Only these sections
    #[arg(long, value_delimiter = ',')]
    only: Vec<Name>,
    /// The short form of CI: truth, ramp and drills, one seed, nothing written; fails where a
    /// figure is worse than on record
    #[arg(long)]
    quick: bool,
    /// Write the figures and docs/benchmarks.md
    #[arg(long, conflicts_with_all = ["quick", "cell"])]
    figure: bool,
    /// Only cells whose source and cold start contain this, as in `m-large@100`
    #[arg(long)]
    cell: Option<String>,
    /// Seeds of the test week
    #[arg(long, default_value_t = SEEDS)]
    seeds: u64,
}

/// Seeds of the test week, unless it is said.
const SEEDS: u64 = 10;

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

pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    let options = [("--only", listed(&args.only)), ("--seeds", unless(SEEDS, args.seeds))];
    let command = typed("cargo xtask bench backtest", &options);
    let mut page = MeasuredPage::new(BACKTEST, &command, args.figure);
    for name in Name::value_variants().iter().copied() {
        if !args.only.is_empty() && !args.only.contains(&name) {
            continue;
        }
        let Some(measured) = section(root, args, name)? else { continue };
        page.add(root, name as u8, name.title(), measured)?;
    }
    page.finish(root, args.quick)
}

/// Measures one section; nothing where the short form leaves it out, or where there are no traces.
fn section(root: &Path, args: &Args, name: Name) -> Result<Option<Measured>> {
    let needs_traces = !matches!(name, Name::Ramp | Name::Drills);
    if args.quick
        && needs_traces
        && let Err(error) = sources::shared(root)
    {
        println!("{} is left out: {error}\n", name.title());
        return Ok(None);
    }
    Ok(Some(match name {
        // Minutes of the machine's best attention: for the long form.
        Name::Speed | Name::Cells | Name::Pool if args.quick => return Ok(None),
        Name::Truth => sections::truth(root)?,
        Name::Speed => sections::speed(root)?,
        Name::Cells => sections::cells(root, args)?,
        Name::Pool => sections::pool(root, args)?,
        Name::Ramp => sections::ramp(root, args)?,
        Name::Drills => sections::drills(root, args)?,
    }))
}
