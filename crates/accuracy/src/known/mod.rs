//! `cargo xtask known-answers`: what Flyball answers to questions whose answers others have published.
//!
//! `rows` reads the sealed questions, `ask` types them, `reads` and `serving` take an `answer` out of the JSON,
//! which is what is compared, `judge` compares, `score` counts, `before` keeps what was answered earlier, `questions` asks twelve more and `page`
//! writes docs/known-answers.md. Nothing here knows how an answer is made: it only sees a program.

mod answer;
mod ask;
mod before;
mod judge;
mod page;
mod questions;
mod reads;
mod rows;
mod score;
mod serving;
#[cfg(test)]
mod tests;

use crate::figures::{self, FigureTarget, Op};
use crate::parallel;
use anyhow::{Context as _, Result, ensure};
use rows::Row;
use score::{Scored, Tally};
use std::fs;
use std::path::{Path, PathBuf};

const FOLDER: &str = "docs/known-answers";
const PAGE: &str = "docs/known-answers.md";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The program to ask; the one beside this tool if not set
    #[arg(long, value_name = "PATH")]
    bin: Option<PathBuf>,
    /// An older program: its answers are kept as those before
    #[arg(long, value_name = "PATH", conflicts_with = "check")]
    before: Option<PathBuf>,
    /// Write `plan.known_*` to docs/figures
    #[arg(long, conflicts_with_all = ["check", "only"])]
    figure: bool,
    /// Ask this row alone, and write nothing
    #[arg(long, value_name = "ID", conflicts_with = "check")]
    only: Option<String>,
    /// Write nothing; fail if fewer rows are inside than the figures say, or one is far off unwarned
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    let folder = root.join(FOLDER);
    let all = rows::read(&folder)?;
    let rows: Vec<Row> = all
        .iter()
        .filter(|row| row.is_askable() && args.only.as_ref().is_none_or(|id| *id == row.id))
        .cloned()
        .collect();
    ensure!(!rows.is_empty(), "no row that can be asked has this id");
    let stored = folder.join("before.csv");
    if let Some(older) = &args.before {
        before::write(&stored, &answers(root, older, &rows))?;
    }
    let binary = match &args.bin {
        Some(binary) => binary.clone(),
        None => beside()?,
    };
    let scored = answers(root, &binary, &rows);
    let before = before::read(&stored)?;
    if args.only.is_some() {
        print!("{}", one_by_one(&scored));
        return Ok(());
    }
    print!("{}\n{}", page::table(&scored, &before), page::missed(&scored));
    let independent =
        Tally::of(scored.iter().filter(|one| one.row.is_independent()).map(|one| &one.judged));
    let unwarned = scored.iter().filter(|one| one.judged.far_unwarned).count();
    println!(
        "known answers: {} independent, {:.1} % inside; {unwarned} off by more than 2 x without a warning",
        independent.rows,
        independent.inside_pct()
    );
    if args.check {
        return hold(root, &independent, unwarned);
    }
    let questions = questions::section(root, &folder, &binary)?;
    let path = root.join(PAGE);
    let text = page::page(&scored, &before, all.len() - rows.len(), &questions);
    fs::write(&path, text).with_context(|| format!("writing {PAGE}"))?;
    if args.figure { record(&independent, unwarned) } else { Ok(()) }
}

fn answers(root: &Path, binary: &Path, rows: &[Row]) -> Vec<Scored> {
    parallel::map(rows, |row| {
        let found = ask::ask(root, binary, row).and_then(|json| reads::read(row, &json));
        Scored::new(row.clone(), found.map_err(|error| format!("{error:#}").replace('\n', " ")))
    })
}

/// Cargo puts `flyball` and this tool into one folder.
fn beside() -> Result<PathBuf> {
    let binary = std::env::current_exe()?.with_file_name("flyball");
    ensure!(
        binary.exists(),
        "{} is not there\n\nhint: cargo build --package flyball-cli, or name one with --bin",
        binary.display()
    );
    Ok(binary)
}

fn one_by_one(scored: &[Scored]) -> String {
    let line = |one: &Scored| {
        let verdict = if one.judged.inside { "inside" } else { "missed" };
        format!("{}: {} against {}: {verdict}\n", one.row.id, one.shown(), one.published())
    };
    scored.iter().map(line).collect()
}

fn hold(root: &Path, independent: &Tally, unwarned: usize) -> Result<()> {
    let recorded = |name: &str| {
        figures::recorded(root, name)
            .with_context(|| format!("docs/figures/{name}.json is not there"))
    };
    // The figure is rounded to hundredths.
    let inside = recorded("plan.known_inside_pct")?;
    ensure!(
        independent.inside_pct() >= inside - 0.01,
        "{:.2} % of the known answers are inside, where it was {inside:.2} %\n\nhint: cargo xtask \
         known-answers shows which are missed",
        independent.inside_pct()
    );
    let far = recorded("plan.known_off_2x")?;
    ensure!(
        unwarned as f64 <= far,
        "{unwarned} known answers are off by more than 2 x without a warning, where it was {far}"
    );
    Ok(())
}

fn record(independent: &Tally, unwarned: usize) -> Result<()> {
    let command = "cargo xtask known-answers --figure";
    let least = |value: f64| FigureTarget { op: Op::AtLeast, value };
    figures::write("plan.known_answers", independent.rows as f64, "rows", least(40.0), command)?;
    figures::write("plan.known_inside_pct", independent.inside_pct(), "%", least(85.0), command)?;
    let none = FigureTarget { op: Op::Exactly, value: 0.0 };
    figures::write("plan.known_off_2x", unwarned as f64, "rows", none, command)?;
    Ok(())
}
