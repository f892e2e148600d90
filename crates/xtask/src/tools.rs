//! Cargo's helpers at pinned versions, installed once into the cache folder: a contributor and a
//! new machine need nothing beforehand.

use crate::{cluster, process};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;

/// `cargo nextest`, installed if it is not.
pub(crate) fn nextest() -> Result<Command> {
    let mut command = tool(NEXTEST)?;
    command.arg("nextest");
    Ok(command)
}

/// `cargo deny`, installed if it is not.
pub(crate) fn deny() -> Result<Command> {
    tool(DENY)
}

/// True when both were installed before.
pub(crate) fn are_cached() -> Result<bool> {
    Ok(program_of(NEXTEST)?.exists() && program_of(DENY)?.exists())
}

/// A name and a version.
type Tool = (&'static str, &'static str);

const NEXTEST: Tool = ("cargo-nextest", "0.9.151");
const DENY: Tool = ("cargo-deny", "0.20.2");

fn folder_of((name, version): Tool) -> Result<PathBuf> {
    Ok(cluster::Layout::new()?.cache().join("tools").join(format!("{name}-{version}")))
}

fn program_of(tool: Tool) -> Result<PathBuf> {
    Ok(folder_of(tool)?.join("bin").join(tool.0))
}

fn tool(tool: Tool) -> Result<Command> {
    let (name, version) = tool;
    let (folder, program) = (folder_of(tool)?, program_of(tool)?);
    if !program.exists() {
        eprintln!("tools: installing {name} {version} (2 to 4 minutes)");
        // Unoptimised builds in half the time, and neither tool is where the time goes.
        process::run(
            Command::new("cargo")
                .args(["install", "--quiet", "--locked", "--debug", "--root"])
                .arg(&folder)
                .arg(format!("{name}@{version}")),
        )
        .with_context(|| format!("could not install {name}"))?;
    }
    Ok(Command::new(program))
}
