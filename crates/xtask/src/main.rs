//! Everything a developer would otherwise script in shell: `cargo xtask help`.
//!
//! One module per command: start reading at the one whose command you typed. Nothing here knows what Flyball decides.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a developer's tool")]

mod charts;
mod ci;
mod cluster;
mod commands;
mod compile;
mod e2e;
mod engines;
mod figures_table;
mod fuzz;
mod heartbeat;
mod house;
mod image;
mod oci;
mod programs;
mod tidy;
mod tools;
mod trust;

use flyball_figures::{checkout, errors, figures, page, parallel, process};
use std::process::ExitCode;

fn main() -> ExitCode {
    match commands::run() {
        Ok(code) => code,
        // One chain of causes; a backtrace would bury the sentence that says what to do.
        Err(error) => {
            eprintln!("error: {}", errors::in_words(&error));
            ExitCode::from(2)
        }
    }
}
