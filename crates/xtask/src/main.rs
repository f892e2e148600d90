//! Everything a developer of Flyball would otherwise script in shell.
//!
//! One module per command; this file only parses the command line. It knows nothing about what
//! Flyball decides. Start reading at the module whose command you typed.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's tool: its answers go to the terminal it was started from"
)]

mod figures;
mod tidy;

use std::process::ExitCode;

use clap::Parser;

/// Tasks for people who work on Flyball.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Command {
    /// Check the rules of the house: arrows between crates, sizes, names, documents.
    Tidy,
    /// Show the measured figures against their targets, or record one.
    Figures(figures::Args),
}

fn main() -> ExitCode {
    let answer = match Command::parse() {
        Command::Tidy => tidy::run(),
        Command::Figures(args) => figures::run(args),
    };
    answer.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}
