//! PyTorch on a CPU, for training runs in tests.
//!
//! For x86 Linux, registries serve only the build for CUDA, which asks for three gigabytes of libraries. They are left
//! out and stood in for, as for vLLM.

use super::pins::Pins;
use super::python;
use super::shelf::{Part, Shelf};
use super::vllm::{CPU_TORCH, packages_of};
use crate::process;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The interpreter that has it.
pub(super) fn ensure(root: &Path) -> Result<PathBuf> {
    let packages = Pins::read(root)?.torch.packages;
    let (shelf, script) = (Shelf::open()?, root.join(CPU_TORCH));
    let about = "a minute or two, 1 GB";
    let folder = with_part(root, |part| {
        shelf.once(part, about, |folder| install(&packages, &script, folder))
    })??;
    Ok(folder.join("venv/bin/python"))
}

pub(super) fn is_cached(root: &Path, shelf: &Shelf) -> Result<bool> {
    with_part(root, |part| shelf.has(part))
}

fn with_part<T>(root: &Path, then: impl FnOnce(&Part<'_>) -> T) -> Result<T> {
    let listed = Pins::read(root)?.torch.packages.join(" ");
    let text = std::fs::read_to_string(root.join(CPU_TORCH)).context(CPU_TORCH)?;
    Ok(then(&Part { name: "torch", version: "1", made_from: &[&listed, &text] }))
}

fn install(packages: &[String], script: &Path, folder: &Path) -> Result<()> {
    let python = python::environment(&folder.join("venv"), &[])?;
    // All of them are listed: what else torch asks for is for GPUs.
    let mut pip = python::pip(&python);
    process::read(pip.args(["install", "--quiet", "--no-deps"]).args(packages))?;
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        process::read(Command::new(&python).arg(script).arg(packages_of(&python)?))?;
    }
    let ask = "import torch.distributed as d; print(d.is_gloo_available())";
    process::read(Command::new(&python).args(["-c", ask])).map(drop)
}
