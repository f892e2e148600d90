//! One build of everything, and what is run from it.
//!
//! Cargo chooses the features of a dependency by the packages that are built: xtask alone, a story alone
//! and the whole workspace get three different tokio, and three times all that stands on it. So whatever
//! is built here is built as `--workspace --all-targets`, and what is wanted of it is chosen afterwards.

use crate::{process, tools};
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Builds all programs and tests, and returns the folder of the programs.
pub(crate) fn everything(root: &Path) -> Result<PathBuf> {
    process::run(Command::new("cargo").current_dir(root).args([
        "build",
        "--workspace",
        "--all-targets",
        "--locked",
        "--quiet",
    ]))?;
    Ok(target_folder(root)?.join("debug"))
}

/// All tests that need neither a cluster nor a real engine.
pub(crate) fn tests(root: &Path) -> Result<Command> {
    let mut nextest = nextest(root, "not test(real_engines)")?;
    nextest.args(["--status-level", "fail"]);
    Ok(nextest)
}

/// Runs the tests that a filter chooses.
pub(crate) fn nextest(root: &Path, filter: &str) -> Result<Command> {
    let mut nextest = tools::nextest()?;
    nextest.current_dir(root).args(["run", "--workspace", "--locked", "--cargo-quiet"]);
    nextest.args(["--filterset", filter]);
    Ok(nextest)
}

/// True when the documentation was built before.
pub(crate) fn documents_are_cached(root: &Path) -> Result<bool> {
    Ok(target_folder(root)?.join("doc/flyball_core/index.html").exists())
}

/// Where cargo builds. Asked once: it does not change, and there is one checkout.
pub(crate) fn target_folder(root: &Path) -> Result<PathBuf> {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    if let Some(folder) = FOLDER.get() {
        return Ok(folder.clone());
    }
    let text = process::read(Command::new("cargo").current_dir(root).args([
        "metadata",
        "--format-version=1",
        "--no-deps",
        "--offline",
    ]))?;
    let metadata: serde_json::Value = serde_json::from_str(&text)?;
    let folder = metadata["target_directory"].as_str().context("cargo metadata has no target")?;
    Ok(FOLDER.get_or_init(|| PathBuf::from(folder)).clone())
}
