//! `cargo xtask bench cost`: whether sums are exact, bills keep the standard, commitments hold, and changes are found.
//!
//! `month` adds up a made-up month and writes it as FOCUS, `weeks` chooses commitments on one recorded week and judges them
//! on the next, `changes` plants changes into recorded requests.

mod changes;
mod month;
mod weeks;

use crate::documents::{COST, listed, typed, unless};
use crate::figures::Op;
use crate::page::{Measured, MeasuredPage, measure};
use crate::sources;
use anyhow::{Result, ensure};
use clap::{Args as ClapArgs, ValueEnum};
use std::path::Path;

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Write the figures and docs/benchmarks-cost.md
    #[arg(long)]
    figure: bool,
    /// Leave out what needs recorded traffic where there is none
    #[arg(long)]
    quick: bool,
    /// Only these parts of the page
    #[arg(long, value_delimiter = ',', value_enum)]
    parts: Vec<Part>,
    /// Hours of the made-up month
    #[arg(long, default_value_t = HOURS)]
    hours: u64,
}

const HOURS: u64 = 720;

/// A part of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// A month of 10,000 tenants and 50 models
    Month,
    /// Commitments chosen on a recorded week
    Commitments,
    /// Changes planted into recorded requests
    Drift,
}

impl Part {
    const fn title(self) -> &'static str {
        match self {
            Self::Month => "A month, added up and exported",
            Self::Commitments => "Commitments chosen on one week, judged on the next",
            Self::Drift => "Changes planted into recorded requests",
        }
    }
}

pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    let options = [("--parts", listed(&args.parts)), ("--hours", unless(HOURS, args.hours))];
    let mut page = MeasuredPage::new(COST, &typed("cargo xtask bench cost", &options), args.figure);
    let has_traces = match sources::shared(root) {
        Ok(_) => true,
        Err(error) if args.quick => {
            println!("commitments and drift are left out: {error}\n");
            false
        }
        Err(error) => return Err(error),
    };
    for part in Part::value_variants().iter().copied() {
        if !args.parts.is_empty() && !args.parts.contains(&part) {
            continue;
        }
        let measured = match part {
            Part::Month => month(args.hours)?,
            _ if !has_traces => continue,
            Part::Commitments => commitments(root)?,
            Part::Drift => drift(root)?,
        };
        page.add(root, part as u8, part.title(), measured)?;
    }
    page.finish(root, false)
}

fn month(hours: u64) -> Result<Measured> {
    let all = month::played(hours);
    ensure!(all.errors.is_empty(), "sums are not exact: {:?}", all.errors);
    ensure!(all.violations.is_empty(), "the export breaks a rule: {:?}", all.violations);
    let figures = vec![
        measure("ledger.sum_error", all.sum_error as f64, "pico-dollars", Op::Exactly, 0.0),
        measure("ledger.focus_columns_ok_pct", all.focus_pct, "%", Op::AtLeast, 100.0),
    ];
    Ok(Measured { text: all.text(), figures })
}

fn commitments(root: &Path) -> Result<Measured> {
    let all = weeks::all(&sources::servegen(root)?);
    let worst =
        all.iter().filter(|one| one.is_fleet()).map(|one| one.regret_pct).fold(0.0, f64::max);
    let worst = (worst * 100.0).round() / 100.0;
    let figures = vec![measure("ledger.commit_regret_pct", worst, "%", Op::AtMost, 3.0)];
    Ok(Measured { text: weeks::text(&all), figures })
}

fn drift(root: &Path) -> Result<Measured> {
    let folder = sources::shared(root)?.join("traces");
    let all = changes::all(&folder, &sources::servegen(root)?)?;
    let found = (all.found_pct() * 10.0).round() / 10.0;
    let figures = vec![measure("drift.found_pct", found, "%", Op::AtLeast, 95.0)];
    Ok(Measured { text: all.text(), figures })
}
