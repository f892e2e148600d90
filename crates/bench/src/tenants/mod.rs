//! `cargo xtask bench tenants`: what keys, limits and budgets of Tenants hold, and what they cost.
//!
//! The worlds, the hostile rows and the sums of processor time are tests of the crates that decide; this runs them in an
//! optimised build, by the thousand, and reads what they print. What a real cluster shows is in stories
//! (`cargo xtask e2e --figure`).

use crate::documents::{TENANTS, listed, typed, unless};
use crate::figures::Op;
use crate::page::{Measured, MeasuredPage, measure};
use crate::programs::printed::{PrintedFigures, TestRun};
use anyhow::{Result, ensure};
use clap::{Args as ClapArgs, ValueEnum};
use std::path::Path;

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Write the figures and docs/benchmarks-tenants.md
    #[arg(long)]
    figure: bool,
    /// Random worlds of each kind
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
    /// Budgets and rates in random worlds
    Worlds,
    /// Keys and tokens of strangers
    Hostile,
    /// Processor time of a request
    Cost,
}

impl Part {
    const fn title(self) -> &'static str {
        match self {
            Self::Worlds => "Budgets and limits in random worlds",
            Self::Hostile => "Keys and tokens of strangers",
            Self::Cost => "What a request costs",
        }
    }
}

pub(super) fn run(root: &Path, args: &Args) -> Result<()> {
    let mut page = MeasuredPage::new(TENANTS, &command(args), args.figure);
    for part in Part::value_variants().iter().copied() {
        if !args.parts.is_empty() && !args.parts.contains(&part) {
            continue;
        }
        let measured = match part {
            Part::Worlds => worlds(root, args.seeds)?,
            Part::Hostile => hostile(root)?,
            Part::Cost => cost(root)?,
        };
        page.add(root, part as u8, part.title(), measured)?;
    }
    page.finish(root, false)
}

fn command(args: &Args) -> String {
    let options = [("--seeds", unless(WORLDS, args.seeds)), ("--parts", listed(&args.parts))];
    typed("cargo xtask bench tenants", &options)
}

fn worlds(root: &Path, seeds: u64) -> Result<Measured> {
    let run = TestRun::Worlds("FLYBALL_QUOTA_SEEDS", seeds);
    let output = PrintedFigures::of(root, &["-p", "flyball-quota", "--test", "it"], run)?;
    ensure!(output.passed, "a rule broke in one of the worlds:\n{}", output.text);
    let (usable, most) = (
        output.number("usable in the worst world: ")?,
        output.number("used in the worst minute: ")?,
    );
    let refused = output.number("refused without an operator, of a million: ")?;
    let over = (100.0 * (most - 1.0)).max(0.0);
    let text = format!(
        "Gateways and leaders die, messages are lost, doubled and late, gateways are cut off, clocks jump: {seeds} worlds \
         for budgets, as many for limits in storms, with traffic that moves to another gateway every five seconds, and \
         with an operator that is away for a minute. After every step the invariants are checked: nothing is granted \
         beyond a budget, nobody is refused while money is left, a period begins once, no minute has more than a limit. \
         They are the code that operator and gateways run, with a network that is made up.\n\n\
         | | |\n|---|---|\n| worlds in which a rule broke | 0 of {} |\n\
         | usable of a limit while traffic moves, of what a single gateway would serve, in the worst world | {:.2} % |\n\
         | used of a limit in the worst minute of all storms | {:.2} % |\n\
         | requests refused below 80 % of a limit while the operator is away | {refused:.1} of a million |\n",
        4 * seeds,
        100.0 * usable,
        100.0 * most,
    );
    let figures = vec![
        measure("tenants.lease_seeds", seeds as f64, "worlds", Op::AtLeast, 10_000.0),
        measure("tenants.worlds_rate_over_pct", over, "%", Op::AtMost, 1.0),
        measure("tenants.worlds_rate_usable_pct", 100.0 * usable, "%", Op::AtLeast, 98.0),
    ];
    Ok(Measured { text, figures })
}

fn hostile(root: &Path) -> Result<Measured> {
    let output =
        PrintedFigures::of(root, &["-p", "flyball-identity", "--test", "it"], TestRun::Alone)?;
    ensure!(output.passed, "a stranger was let in:\n{}", output.text);
    let counts: Vec<f64> = output.numbers("hostile, refused for its own reason: ");
    let sum: f64 = counts.iter().sum();
    let text = format!(
        "{sum} keys, tokens and keys of issuers that a stranger could send or publish, each refused for the reason that was \
         expected (`crates/identity/tests/it/hostile.rs`). `cargo xtask trust mutations` takes each rule out again and \
         expects one of them to be let in.\n"
    );
    let figures = vec![measure("tenants.hostile_refused", sum, "rows", Op::AtLeast, 60.0)];
    Ok(Measured { text, figures })
}

fn cost(root: &Path) -> Result<Measured> {
    let tests = ["-p", "flyball-gateway", "--lib", "cost::"];
    let output = PrintedFigures::of(root, &tests, TestRun::Alone)?;
    let identity = output.number("who asks among 100,032 keys, us: ")?;
    let one = output.number("admission below one Tenant, us: ")?;
    let deepest = output.number("admission below the most Tenants, us: ")?;
    let text = format!(
        "Processor time, each key or request another one than before.\n\n| | us |\n|---|---|\n\
         | who asks, among 100,032 keys: hash and table | {identity:.2} |\n\
         | admission and settlement below one Tenant with a limit and a budget | {one:.2} |\n\
         | the same below as many as may be above each other | {deepest:.2} |\n\
         | what the further levels add | {:.2} |\n",
        deepest - one
    );
    let figures = vec![
        measure("tenants.identity_us", identity, "us", Op::AtMost, 1.0),
        measure("tenants.levels_us", deepest - one, "us", Op::AtMost, 0.3),
    ];
    Ok(Measured { text, figures })
}
