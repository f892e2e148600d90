//! Where the sources are.

use anyhow::{Context, Result};
use std::path::PathBuf;

/// The checkout that this tool was built from.
pub(crate) fn root() -> Result<PathBuf> {
    // Asked at run time first: a target folder shared by two checkouts may hold the other's build.
    let folder = match std::env::var_os("CARGO_MANIFEST_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")),
    };
    Ok(folder.ancestors().nth(2).context("crates/xtask has no root above it")?.to_path_buf())
}
