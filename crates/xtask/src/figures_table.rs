//! `cargo xtask figures`: what was measured, against what was promised.
//!
//! A missed target is shown and is not an error: the table tells the truth. A malformed file is an error.

use crate::figures::{self, Figure, FigureTarget};
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Write one measured figure to docs/figures.
    Record {
        /// Dotted name, such as `cluster.up_warm_seconds`.
        name: String,
        value: f64,
        #[arg(long)]
        unit: String,
        /// What was promised, such as `<=60`.
        #[arg(long)]
        target: FigureTarget,
        /// The command that measured it, so that anybody can repeat it.
        #[arg(long)]
        command: String,
    },
}

/// Prints the table, or records one figure.
pub(crate) fn run(root: &Path, args: Args) -> Result<ExitCode> {
    if let Some(Action::Record { name, value, unit, target, command }) = args.action {
        let path = figures::write(&name, value, &unit, target, &command)?;
        println!("{}", path.display());
        return Ok(ExitCode::SUCCESS);
    }
    let (figures, malformed) = figures::all(root)?;
    print!("{}", table(&figures));
    for problem in &malformed {
        eprintln!("error: {problem}");
    }
    let missed = figures.iter().filter(|figure| !figure.is_met()).count();
    println!("figures: {}, {missed} missed, {} malformed", figures.len(), malformed.len());
    Ok(if malformed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn table(figures: &[Figure]) -> String {
    let mut rows =
        vec![["NAME", "VALUE", "UNIT", "TARGET", "MET", "DATE", "COMMAND"].map(str::to_owned)];
    rows.extend(figures.iter().map(|figure| {
        [
            figure.name.clone(),
            figure.value.to_string(),
            figure.unit.clone(),
            figure.target.to_string(),
            if figure.is_met() { "met" } else { "missed" }.to_owned(),
            figure.date.to_string(),
            figure.command.clone(),
        ]
    }));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..rows[0].len()).filter_map(width).collect();
    let line = |row: &[String; 7]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(name: &str, value: f64, target: &str) -> Figure {
        Figure {
            name: name.to_owned(),
            value,
            unit: "s".to_owned(),
            target: target.parse().unwrap(),
            command: "cargo xtask cluster up".to_owned(),
            date: "2026-09-30".parse().unwrap(),
        }
    }

    #[test]
    fn the_table_shows_missed_targets_as_missed() {
        let figures =
            [figure("a.b", 12.0, "<=10"), figure("c", 0.0, "=0"), figure("d", 9.0, ">=9")];
        let expected = "\
NAME  VALUE  UNIT  TARGET  MET     DATE        COMMAND
a.b   12     s     <= 10   missed  2026-09-30  cargo xtask cluster up
c     0      s     = 0     met     2026-09-30  cargo xtask cluster up
d     9      s     >= 9    met     2026-09-30  cargo xtask cluster up
";
        assert_eq!(table(&figures), expected);
    }
}
