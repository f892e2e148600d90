//! Everything a developer would otherwise script in shell: `cargo xtask help`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's tool talks to a terminal"
)]

mod cluster;
mod figures;
mod oci;
mod process;

use anyhow::{Context, Result};
use clap::Parser;
use std::path::PathBuf;

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// A real Kubernetes on this machine, for tests
    #[command(subcommand)]
    Cluster(cluster::Command),
}

fn main() -> Result<()> {
    let root = root()?;
    match Task::parse() {
        Task::Cluster(command) => cluster::main(&root, command),
    }
}

/// The checkout that this tool was built from.
pub(crate) fn root() -> Result<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    Ok(folder.ancestors().nth(2).context("crates/xtask has no root above it")?.to_path_buf())
}
