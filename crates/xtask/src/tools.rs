//! Cargo's helpers at pinned versions, installed once into the cache folder: a contributor and a
//! new machine need nothing beforehand.

use crate::{cluster, process};
use anyhow::{Context, Result};
use std::process::Command;

/// `cargo nextest`, installed if it is not.
pub(crate) fn nextest() -> Result<Command> {
    let mut command = tool("cargo-nextest", "0.9.151")?;
    command.arg("nextest");
    Ok(command)
}

/// `cargo deny`, installed if it is not.
pub(crate) fn deny() -> Result<Command> {
    tool("cargo-deny", "0.20.2")
}

fn tool(name: &str, version: &str) -> Result<Command> {
    let folder = cluster::Layout::new()?.cache().join("tools").join(format!("{name}-{version}"));
    let program = folder.join("bin").join(name);
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
