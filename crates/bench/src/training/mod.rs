//! `cargo xtask bench training`: what our decisions about training runs are worth, on recorded spot machines.
//!
//! [`worlds`] lists the runs, [`verdict`] plays and judges them, `saves` compares how often to save, [`preemptions`] whom to
//! preempt, `loans` what models leave idle is worth to runs that borrow it, [`page`] shows all of it.

mod loans;
mod page;
mod preemptions;
mod saves;
mod verdict;
mod worlds;

use crate::documents::{TRAINING, listed, typed};
use crate::figures::Op;
use crate::page::{Measured, MeasuredPage, measure};
use crate::sources;
use anyhow::{Result, ensure};
use clap::{Args as ClapArgs, ValueEnum};
use flyball_core::units::Micros;
use std::path::Path;
use verdict::Sums;
use worlds::{SLACKS, World, ZoneSet};

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Only these parts of the page
    #[arg(long, value_delimiter = ',', value_enum)]
    parts: Vec<Part>,
    /// The short form of CI: one start, two slacks, one set in five, nothing written; fails if a run is late, a decision breaks
    /// an invariant, or a run costs less than the bound
    #[arg(long)]
    quick: bool,
    /// Write the figures and docs/benchmarks-training.md
    #[arg(long, conflicts_with = "quick")]
    figure: bool,
}

/// A part of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Runs on spot machines
    Runs,
    /// The same where a save takes five seconds
    ShortSaves,
    /// How often to save
    Saves,
    /// Whom to preempt
    Victims,
    /// What runs make of what models leave idle
    Loans,
}

/// Starts of each cell, spread over the judged part of its recording.
const STARTS: usize = 4;
const SAVE_SECONDS: u64 = 30;
/// A save that copies to memory and is written while steps go on.
const SHORT_SAVE_SECONDS: u64 = 5;

impl Part {
    const fn title(self) -> &'static str {
        match self {
            Self::Runs => "Runs on recorded spot machines",
            Self::ShortSaves => "The same runs with short saves",
            Self::Saves => "How often to save",
            Self::Victims => "Whom preemptions take",
            Self::Loans => "What is idle, lent",
        }
    }
}

pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    let options = [("--parts", listed(&args.parts))];
    let command = typed("cargo xtask bench training", &options);
    let mut page = MeasuredPage::new(TRAINING, &command, args.figure);
    let sets = match sources::shared(root) {
        Ok(_) => worlds::sets(root)?,
        Err(error) if args.quick => {
            println!("runs on recorded spot machines are left out: {error}\n");
            Vec::new()
        }
        Err(error) => return Err(error),
    };
    for part in Part::value_variants().iter().copied() {
        let asked = args.parts.is_empty() || args.parts.contains(&part);
        let measured = match part {
            _ if !asked => continue,
            Part::ShortSaves | Part::Saves | Part::Loans if args.quick => continue,
            Part::Runs if sets.is_empty() => continue,
            Part::Runs => runs(&sets, args, STARTS, SAVE_SECONDS)?,
            Part::ShortSaves => {
                Measured { figures: Vec::new(), ..runs(&sets, args, 1, SHORT_SAVE_SECONDS)? }
            }
            Part::Saves => saves(&sets),
            Part::Victims => victims(),
            Part::Loans => loans(root)?,
        };
        page.add(root, part as u8, part.title(), measured)?;
    }
    page.finish(root, false)
}

fn runs(sets: &[ZoneSet], args: &Args, starts: usize, save_seconds: u64) -> Result<Measured> {
    let save = Micros::from_seconds(save_seconds);
    let worlds: Vec<World<'_>> = match args.quick {
        true => sets.iter().step_by(5).flat_map(|set| quick(set, save)).collect(),
        false => sets
            .iter()
            .flat_map(|set| SLACKS.map(|slack| (set, slack)))
            .flat_map(|(set, slack)| set.worlds(slack, starts, save))
            .collect(),
    };
    let all = verdict::all(&worlds);
    let sums = Sums::of(&all);
    let text = page::runs(&all, &sums, save_seconds);
    ensure!(sums.broken == 0, "a decision broke an invariant\n\n{text}");
    ensure!(sums.below_optimum == 0, "a run cost less than the bound\n\n{text}");
    ensure!(!args.quick || sums.late == 0, "a run was late\n\n{text}");
    // The short form is of other runs than the figures on record.
    let figures = match args.quick {
        true => Vec::new(),
        false => vec![
            measure("training.late_runs", sums.late as f64, "runs", Op::Exactly, 0.0),
            measure("training.runs_replayed", sums.runs as f64, "runs", Op::AtLeast, 1_000.0),
            points("training.cost_vs_optimum_points_median", sums.median(), 2.0),
            points("training.cost_vs_optimum_points_max", sums.most(), 5.0),
            measure("training.cells_won_pct", sums.won_pct(), "%", Op::AtLeast, 100.0),
        ],
    };
    Ok(Measured { text, figures })
}

fn quick(set: &ZoneSet, save: Micros) -> impl Iterator<Item = World<'_>> {
    [SLACKS[1], SLACKS[3]].into_iter().flat_map(move |slack| set.worlds(slack, 1, save))
}

/// Points of the cost of on-demand machines.
fn points(name: &'static str, value: f64, most: f64) -> crate::page::Measure {
    measure(name, (value * 100.0).round() / 100.0, "points", Op::AtMost, most)
}

fn saves(sets: &[ZoneSet]) -> Measured {
    let all = saves::all(sets);
    let least = all.iter().map(|one| one.percent).fold(f64::INFINITY, f64::min);
    let least = (least * 10.0).round() / 10.0;
    let figures = vec![measure("training.checkpoint_vs_best_pct", least, "%", Op::AtLeast, 95.0)];
    Measured { text: page::saves(&all), figures }
}

fn loans(root: &Path) -> Result<Measured> {
    let week = loans::all(&sources::servegen(root)?);
    let used = (week.idle_used_pct() * 10.0).round() / 10.0;
    let missed = (week.extra_missed_points() * 1e3).round() / 1e3;
    // Of the simulator alone: what is promised of a cluster is measured on one.
    let figures = vec![
        measure("training.sim_idle_used_pct", used, "%", Op::AtLeast, 40.0),
        measure("training.sim_loan_extra_missed_points", missed, "points", Op::AtMost, 0.0),
    ];
    Ok(Measured { text: week.text(), figures })
}

fn victims() -> Measured {
    let all = preemptions::all();
    let saving = (all.saving_pct() * 10.0).round() / 10.0;
    let ranked = (all.ranked_saving_pct() * 10.0).round() / 10.0;
    let figures = vec![
        measure("training.lost_work_saving_pct", saving, "%", Op::AtLeast, 60.0),
        measure("training.lost_work_saving_ranked_pct", ranked, "%", Op::AtLeast, 60.0),
    ];
    Measured { text: all.text(), figures }
}
