//! Programs that run beside a bench: built, started, watched by the kernel's own numbers, ended.
//!
//! `running` starts and ends them, `kernel` says what they cost, `page` reads what they count,
//! `peers` installs those of others, and `printed` runs tests that measure. Nothing here knows what is measured.

pub(super) mod kernel;
pub(super) mod page;
pub(super) mod peers;
pub(super) mod printed;
pub(super) mod running;

use crate::{checkout, process};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder with `flyball` and the programs of `proving`; they are built if none is given.
pub(super) fn folder(root: &Path, given: Option<&Path>) -> Result<PathBuf> {
    if given.is_none() {
        build(root, &["--package", "flyball-proving", "--bins"])?;
    }
    flyball(root, given)
}

/// The folder with `flyball`; it is built if none is given.
pub(super) fn flyball(root: &Path, given: Option<&Path>) -> Result<PathBuf> {
    if let Some(folder) = given {
        return folder.canonicalize().with_context(|| format!("no folder {}", folder.display()));
    }
    build(root, &["--package", "flyball-cli"])?;
    Ok(checkout::target_folder(root)?.join("release"))
}

/// A new folder for logs and settings of one run. It stays, because what went wrong is in there.
pub(super) fn scratch(name: &str) -> Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("flyball-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn build(root: &Path, what: &[&str]) -> Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args(["build", "--release", "--locked", "--quiet"]).args(what);
    process::run(&mut cargo)
}
