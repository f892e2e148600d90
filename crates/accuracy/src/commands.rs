//! The command line: one variant per command, as `cargo xtask` passes them on.

use crate::{accuracy, checkout, known, shapes};
use anyhow::Result;
use clap::Parser;

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Score the performance model against published measurements
    Accuracy(accuracy::Args),
    /// Count the models whose shapes come with the program
    Models(shapes::Args),
    /// Ask what others have published the answers to, and hold Flyball's against them
    KnownAnswers(known::Args),
}

pub(crate) fn run() -> Result<()> {
    let root = checkout::root()?;
    match Task::parse() {
        Task::Accuracy(args) => accuracy::run(&root, &args),
        Task::Models(args) => shapes::run(&args),
        Task::KnownAnswers(args) => known::run(&root, &args),
    }
}
