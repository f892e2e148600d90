//! The models: a tiny one of random weights that we make, and one that talks sense.

use super::pins::Pins;
use super::python::{self, Form};
use super::shelf::{Part, Shelf};
use crate::process;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder with `nano.gguf` for llama-server and `nano-hf` for vLLM: same weights, same tokens.
pub(super) fn nano(pins: &Pins, root: &Path, shelf: &Shelf) -> Result<PathBuf> {
    let script = root.join(SCRIPT);
    with_nano(pins, root, |part| {
        shelf.once(part, "half a minute", |folder| {
            let python = python::environment(&folder.join("venv"), &pins.model.packages)?;
            process::read(Command::new(python).arg(&script).arg(folder))?;
            std::fs::remove_dir_all(folder.join("venv"))?;
            Ok(())
        })
    })?
}

/// SmolLM2 for llama-server.
pub(super) fn smollm2(pins: &Pins, shelf: &Shelf) -> Result<PathBuf> {
    let folder = with_smollm2(pins, |part| {
        shelf.once(part, "a 93 MB download", |folder| {
            let work = folder.join("work");
            let wheel = python::download(&pins.smollm2.wheel(), Form::Wheel, &work)?;
            let unpacked = work.join("unpacked");
            process::read(
                Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&wheel).arg(&unpacked),
            )?;
            let model = unpacked.join(&pins.smollm2.file);
            std::fs::rename(&model, folder.join(SMOLLM2))
                .with_context(|| format!("the wheel has no {}", pins.smollm2.file))?;
            std::fs::remove_dir_all(&work)?;
            Ok(())
        })
    })?;
    Ok(folder.join(SMOLLM2))
}

pub(super) fn are_cached(pins: &Pins, root: &Path, shelf: &Shelf) -> Result<bool> {
    Ok(with_nano(pins, root, |part| shelf.has(part))? && with_smollm2(pins, |part| shelf.has(part)))
}

const SCRIPT: &str = "cluster/engines/make_model.py";
const SMOLLM2: &str = "smollm2.gguf";

fn with_nano<T>(pins: &Pins, root: &Path, then: impl FnOnce(&Part<'_>) -> T) -> Result<T> {
    let script = std::fs::read_to_string(root.join(SCRIPT)).context(SCRIPT)?;
    let packages = pins.model.packages.join(" ");
    Ok(then(&Part { name: "nano", version: "1", made_from: &[&script, &packages] }))
}

fn with_smollm2<T>(pins: &Pins, then: impl FnOnce(&Part<'_>) -> T) -> T {
    let wheel = pins.smollm2.wheel();
    let made_from = [wheel.sha256.as_str(), pins.smollm2.file.as_str()];
    then(&Part { name: "smollm2", version: &wheel.version, made_from: &made_from })
}
