//! Cargo's helpers and helm at pinned versions, installed once into the cache folder: a contributor
//! and a new machine need nothing beforehand, but for Go, which makes helm.
//!
//! All are made from source: no registry that a build may use has them ready made in these versions
//! (docs/decisions/0034), so they are made as cheaply as can be.

use crate::{checkout, process};
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

/// The path of helm, which is made if it is not there.
///
/// Its version is not among the cluster's parts: a change of it must not make them anew.
pub(crate) fn helm() -> Result<PathBuf> {
    let (folder, program) = (folder_of(HELM)?, program_of(HELM)?);
    if !program.exists() {
        let version = HELM.1;
        eprintln!("tools: making helm {version} (1 to 5 minutes)");
        let mut install = Command::new("go");
        install.args(["install", "-trimpath"]);
        install.arg(format!("helm.sh/helm/v3/cmd/helm@{version}"));
        install.env("GOBIN", folder.join("bin")).env("CGO_ENABLED", "0");
        // Outside of any module: one around us must not change what is made.
        process::run(install.current_dir(std::env::temp_dir())).context(
            "could not make helm\n\nhint: `go version` must be 1.26.4 or newer, as for the cluster",
        )?;
    }
    Ok(program)
}

/// True when helm was made, or can be.
pub(crate) fn helm_can_be_had() -> Result<bool> {
    Ok(program_of(HELM)?.exists() || Command::new("go").arg("version").output().is_ok())
}

/// True when nextest was installed before.
pub(crate) fn nextest_is_cached() -> Result<bool> {
    Ok(program_of(NEXTEST)?.exists())
}

/// True when cargo-deny was installed before.
pub(crate) fn deny_is_cached() -> Result<bool> {
    Ok(program_of(DENY)?.exists())
}

/// True when helm was made before.
pub(crate) fn helm_is_cached() -> Result<bool> {
    Ok(program_of(HELM)?.exists())
}

/// A name and a version.
type Tool = (&'static str, &'static str);

const NEXTEST: Tool = ("cargo-nextest", "0.9.151");
const DENY: Tool = ("cargo-deny", "0.20.2");
const HELM: Tool = ("helm", "v3.19.0");

fn folder_of((name, version): Tool) -> Result<PathBuf> {
    Ok(checkout::cache()?.join("tools").join(format!("{name}-{version}")))
}

fn program_of(tool: Tool) -> Result<PathBuf> {
    Ok(folder_of(tool)?.join("bin").join(tool.0))
}

fn tool(tool: Tool) -> Result<Command> {
    let (name, version) = tool;
    let (folder, program) = (folder_of(tool)?, program_of(tool)?);
    if !program.exists() {
        eprintln!("tools: installing {name} {version} (2 to 5 minutes)");
        // Not our own target folder, where it would stay for ever.
        let made = folder.join("made");
        std::fs::create_dir_all(&made)?;
        let mut install = Command::new("cargo");
        // Neither tool is where the time goes, and nobody looks into them with a debugger; what updates
        // a tool by itself and other extras are left out.
        install.args(["install", "--quiet", "--locked", "--debug", "--no-default-features"]);
        install.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
        install.env("CARGO_TARGET_DIR", &made).current_dir(&made);
        process::run(install.arg("--root").arg(&folder).arg(format!("{name}@{version}")))
            .with_context(|| format!("could not install {name}"))?;
        std::fs::remove_dir_all(&made)?;
    }
    Ok(Command::new(program))
}
