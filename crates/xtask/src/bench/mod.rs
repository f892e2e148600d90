//! `cargo xtask bench`: what the simulator, the governor and the gateway are worth, in numbers.
//!
//! `recorded`, `gateway`, `admission` and `live` have folders of their own, and `programs` what they start. `backtest` is
//! here; its sections in order: `truth` (the engine against real runs), `speed`, `cells` (one model against
//! every rival), `pool` (three models on shared accelerators, and lent training), `ramp` (a
//! published ramp), `drills` (faults). `wrong_capacity` adds a section of its own to the same page. Each prints its table; `--figure` writes the figures and
//! `docs/benchmarks.md`. Traces are read in place, beside the checkout, and never copied.

mod admission;
mod cells;
mod choice;
mod contenders;
mod document;
mod drills;
mod gateway;
mod live;
mod pace;
mod pool;
mod programs;
mod recorded;
mod sections;
mod sources;
mod speed;
mod spread;
mod truth;
mod worlds;
mod wrong_capacity;
mod yardstick;

use crate::figures::{self, Op, FigureTarget};
use anyhow::{Result, ensure};
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use document::{Document, Section};
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Replays: truth, speed, cells, pool, ramp, drills
    Backtest(Args),
    /// Recorded hours request by request, under the governor and under every rival
    Recorded(recorded::Args),
    /// The gateway beside nginx, `HAProxy` and other routers, and under faults
    Gateway(gateway::Args),
    /// Admission: fairness, overload, splits, and an hour of everything at once
    Admission(admission::Args),
    /// The operator on a real cluster in real time: a published ramp, and the simulator's truth
    Live(live::Args),
    /// A governor that was told a wrong capacity or none, engines that slow down, longer prompts, restarts
    WrongCapacity(wrong_capacity::Args),
}

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
    target: FigureTarget,
}

/// One figure that should be at most, or at least, its target.
const fn measure(
    name: &'static str,
    value: f64,
    unit: &'static str,
    op: Op,
    target: f64,
) -> Measure {
    Measure { name, value, unit, target: FigureTarget { op, value: target } }
}

/// A page of sections, and the command that measures them.
struct Page {
    document: Document,
    command: String,
    /// Write figures and page.
    writes: bool,
    sections: BTreeMap<u8, Section>,
    worse: Vec<String>,
}

impl Page {
    fn new(document: Document, command: &str, writes: bool) -> Self {
        let command = command.to_owned();
        Self { document, command, writes, sections: BTreeMap::new(), worse: Vec::new() }
    }

    /// Prints a section, and keeps it and its figures.
    fn add(&mut self, root: &Path, place: u8, title: &str, measured: Measured) -> Result<()> {
        println!("## {title}\n\n{}", measured.text);
        for one in &measured.figures {
            let verdict = if one.target.is_met(one.value) { "met" } else { "missed" };
            println!("{} = {} {} ({verdict})", one.name, one.value, one.unit);
            if self.writes {
                figures::write(one.name, one.value, one.unit, one.target, &self.command)?;
            }
            self.worse.extend(one.is_worse_than_recorded(root));
        }
        let date = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
        let title = title.to_owned();
        self.sections.insert(place, Section { title, date, text: measured.text });
        Ok(())
    }

    /// Writes the page; with `strict` a figure that became worse is an error.
    fn finish(self, root: &Path, strict: bool) -> Result<()> {
        if self.writes {
            self.document.keep(root, self.sections)?;
        }
        let worse = self.worse;
        ensure!(!strict || worse.is_empty(), "worse than on record:\n{}", worse.join("\n"));
        Ok(())
    }
}

pub(crate) fn run(root: &Path, command: &Command) -> Result<()> {
    match command {
        Command::Backtest(args) => backtest(root, args),
        Command::Recorded(args) => recorded::run(root, args),
        Command::Gateway(args) => gateway::run(root, args),
        Command::Admission(args) => admission::run(root, args),
        Command::Live(args) => live::run(root, args),
        Command::WrongCapacity(args) => wrong_capacity::run(root, args),
    }
}

fn backtest(root: &Path, args: &Args) -> Result<()> {
    let command = "cargo xtask bench backtest --figure";
    let mut page = Page::new(document::BACKTEST, command, args.figure);
    for name in Name::value_variants().iter().copied() {
        if !args.only.is_empty() && !args.only.contains(&name) {
            continue;
        }
        let Some(measured) = section(root, args, name)? else { continue };
        page.add(root, name as u8, name.title(), measured)?;
    }
    page.finish(root, args.quick)
}

/// The short form, for CI: fails where a figure became worse.
pub(crate) fn quick(root: &Path) -> Result<()> {
    let args = Args { only: Vec::new(), quick: true, figure: false, cell: None, seeds: 1 };
    backtest(root, &args)
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

impl Measure {
    /// A sentence if the target is missed by more than what is on record, with a twentieth of
    /// tolerance.
    fn is_worse_than_recorded(&self, root: &Path) -> Option<String> {
        if self.target.is_met(self.value) {
            return None;
        }
        let recorded = figures::recorded(root, self.name)?;
        let worse = match self.target.op {
            Op::AtMost => self.value > 1.05 * recorded,
            Op::AtLeast => self.value < 0.95 * recorded,
            Op::Exactly => (self.value - recorded).abs() > f64::EPSILON,
        };
        worse.then(|| format!("{}: {} {}, on record {recorded}", self.name, self.value, self.unit))
    }
}
