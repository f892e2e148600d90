//! `cargo xtask charts`: makes helm, and lets the test of `flyball-resources` that holds the charts render with it.
//!
//! What is held, and what `UPDATE=1` writes, says `crates/resources/tests/it/charts`.

use crate::{compile, process, tools};
use anyhow::Result;
use std::path::Path;
use std::process::Command;

/// What to do.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing, whatever UPDATE says
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    let mut test = Command::new("cargo");
    test.current_dir(root).args(["test", "--quiet", "--locked", "--package", "flyball-resources"]);
    test.args(["--test", "it", "--", "charts::", "--nocapture"]);
    if args.check {
        test.env_remove("UPDATE");
    }
    process::run(test.env("FLYBALL_HELM", tools::helm()?))
}

/// The same as a step of `check` or of CI, from the one build of everything.
pub(crate) fn check(root: &Path) -> Result<()> {
    let mut test =
        compile::nextest(root, "package(flyball-resources) and binary(=it) and test(charts)")?;
    test.env_remove("UPDATE");
    process::run(test.env("FLYBALL_HELM", tools::helm()?))
}
