//! Everything a developer would otherwise script in shell: `cargo xtask help`.
//!
//! One module per command; this file only parses the command line. Nothing here knows what
//! Flyball decides. Start reading at the module whose command you typed.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a developer's tool")]

mod figures;
mod tidy;

use anyhow::{Context, Result};
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Check the rules of the house: arrows between crates, sizes, names, documents
    Tidy,
    /// Show the measured figures against their targets, or record one
    Figures(figures::Args),
}

fn main() -> Result<ExitCode> {
    let root = root()?;
    match Task::parse() {
        Task::Tidy => tidy::run(&root),
        Task::Figures(args) => figures::run(&root, args),
    }
}

/// The checkout that this tool was built from.
pub(crate) fn root() -> Result<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    Ok(folder.ancestors().nth(2).context("crates/xtask has no root above it")?.to_path_buf())
}
