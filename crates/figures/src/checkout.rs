//! Where the sources are, where cargo builds them, and where what is kept between runs lies.

use crate::process;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The checkout that this tool was built from.
pub fn root() -> Result<PathBuf> {
    // Asked at run time first: a target folder shared by two checkouts may hold the other's build.
    let folder = match std::env::var_os("CARGO_MANIFEST_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")),
    };
    Ok(folder.ancestors().nth(2).context("a crate's folder has no root above it")?.to_path_buf())
}

/// The folder for what is made once and used by all checkouts: `FLYBALL_CACHE`, or `flyball` in the person's own.
pub fn cache() -> Result<PathBuf> {
    let of = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let found = of("FLYBALL_CACHE")
        .or_else(|| Some(of("XDG_CACHE_HOME")?.join("flyball")))
        .or_else(|| Some(of("HOME")?.join(".cache/flyball")));
    found.context("neither FLYBALL_CACHE, XDG_CACHE_HOME nor HOME is set")
}

/// Where cargo builds. Asked once: it does not change, and there is one checkout.
pub fn target_folder(root: &Path) -> Result<PathBuf> {
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
