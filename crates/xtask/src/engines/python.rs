//! Python's packages: virtual environments, and single files by digest.
//!
//! Where packages come from is the machine's own setting, as everywhere in this tree.

use super::pins::Package;
use crate::process;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A virtual environment with these packages, and its interpreter.
pub(super) fn environment(folder: &Path, packages: &[String]) -> Result<PathBuf> {
    process::read(Command::new("python3").args(["-m", "venv"]).arg(folder))
        .context("no virtual environment of Python\n\nhint: Debian's package `python3-venv`")?;
    let python = folder.join("bin/python");
    if !packages.is_empty() {
        process::read(pip(&python).args(["install", "--quiet"]).args(packages))?;
    }
    Ok(python)
}

/// Which of a package's files.
#[derive(Clone, Copy)]
pub(super) enum Form {
    Source,
    Wheel,
}

/// Downloads one file into `folder` and holds it to its digest.
pub(super) fn download(package: &Package, form: Form, folder: &Path) -> Result<PathBuf> {
    let Package { package: name, version, sha256 } = package;
    std::fs::create_dir_all(folder)?;
    let requirements = folder.join("wanted.txt");
    std::fs::write(&requirements, format!("{name}=={version} --hash=sha256:{sha256}\n"))?;
    let only = match form {
        // For this one package: what pip builds with to ask the archive about itself may be wheels.
        Form::Source => format!("--no-binary={name}"),
        Form::Wheel => format!("--only-binary={name}"),
    };
    let target = folder.join("downloaded");
    // An environment of its own: Debian's Python has no pip outside of one.
    let mut command = pip(&environment(&folder.join("pip"), &[])?);
    command.args(["download", "--quiet", "--no-deps", "--require-hashes", &only]);
    process::read(command.arg("--dest").arg(&target).arg("--requirement").arg(&requirements))
        .with_context(|| format!("could not download {name} {version}"))?;
    let file = std::fs::read_dir(&target)?.next().context("pip downloaded nothing")??;
    Ok(file.path())
}

pub(super) fn pip(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.args(["-m", "pip", "--disable-pip-version-check", "--no-input"]);
    command
}
