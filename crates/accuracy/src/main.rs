//! `flyball-accuracy`: the performance model and the program itself against what others have published.
//!
//! A program of its own and not a part of xtask, because it builds the model and a solver; `cargo xtask accuracy`,
//! `known-answers` and `models` start it. One module per command: start reading at the one whose command you typed. Nothing
//! here decides anything: it asks `perf`, or `flyball`, and compares.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a developer's tool")]

mod accuracy;
mod commands;
mod fit;
mod gate;
mod known;
mod memory;
mod report;
mod score;
mod section;
mod serving;
mod shapes;
mod speed;
mod training;

use flyball_figures::{checkout, errors, figures, page, parallel, process};
use std::process::ExitCode;

fn main() -> ExitCode {
    match commands::run() {
        Ok(()) => ExitCode::SUCCESS,
        // One chain of causes; a backtrace would bury the sentence that says what to do.
        Err(error) => {
            eprintln!("error: {}", errors::in_words(&error));
            ExitCode::from(2)
        }
    }
}
