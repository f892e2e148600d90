//! What training runs of stories are made of: an image with the Python that PyTorch was installed for, and a folder for a
//! volume that all nodes share, with PyTorch and the example of `python/` in it.
//!
//! PyTorch is not in the image, as with those who have it on a shared disk: 0.8 GB would be packed, loaded into each node and
//! stored three times.

use super::pins::Pins;
use super::shelf::{Part, Shelf};
use super::torch;
use crate::oci::{self, Image};
use crate::{checkout, process};
use anyhow::{Context, Result};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name of the image with Python.
pub(crate) const IMAGE: &str = "flyball.test/python:dev";

const LISTS: &str = "cluster/engines/python_files.py";
const ARCHIVE: &str = "python.tar";

/// What the program of a run is, beside PyTorch.
const PROGRAMS: [(&str, &str); 3] = [
    ("python/examples/ddp.py", "ddp.py"),
    ("python/flyball-heartbeat/flyball_heartbeat/__init__.py", "flyball_heartbeat/__init__.py"),
    ("python/flyball-heartbeat/flyball_heartbeat/callbacks.py", "flyball_heartbeat/callbacks.py"),
];

/// What training runs are made of.
pub(crate) struct TrainingParts {
    /// The image.
    pub(crate) archive: PathBuf,
    /// The folder of the volume: `venv`, `ddp.py`, `flyball_heartbeat`, and `runs`, in which everybody may write.
    pub(crate) volume: PathBuf,
}

/// True when PyTorch would not have to be downloaded.
pub(super) fn is_cached(root: &Path, shelf: &Shelf) -> Result<bool> {
    torch::is_cached(root, shelf)
}

/// Gets and builds whatever of them is not in the cache.
pub(super) fn build(root: &Path, shelf: &Shelf) -> Result<TrainingParts> {
    let python = torch::ensure(root)?;
    let archive = pack(root, shelf, &python)?;
    let venv = python.ancestors().nth(2).context("an interpreter without an environment")?;
    Ok(TrainingParts { archive, volume: fill(root, venv)? })
}

fn pack(root: &Path, shelf: &Shelf, python: &Path) -> Result<PathBuf> {
    let script = root.join(LISTS);
    let text = std::fs::read_to_string(&script).context(LISTS)?;
    let version = process::read(Command::new(python).arg("--version"))?;
    let packages = Pins::read(root)?.torch.packages.join(" ");
    let part = Part {
        name: "python-image",
        version: "1",
        made_from: &[&text, &version, &packages, &python.to_string_lossy(), IMAGE],
    };
    let folder = shelf.once(&part, "half a minute", |folder| {
        let listed = process::read(Command::new(python).arg(&script).arg(folder.join("compiled")))?;
        let files = listed.lines().filter_map(|line| line.split_once('\t'));
        let files: Vec<_> = files.map(|(from, to)| (PathBuf::from(from), to.to_owned())).collect();
        let interpreter = files.iter().find(|(_, to)| to.ends_with("/bin/python3"));
        let image = Image {
            name: IMAGE.into(),
            entrypoint: interpreter.iter().map(|(_, to)| to.clone()).collect(),
            files,
            // Nobody who runs there may write anywhere else.
            environment: ["TMPDIR=/dev/shm", "HOME=/dev/shm", "USER=train", "OMP_NUM_THREADS=1"]
                .map(str::to_owned)
                .to_vec(),
        };
        oci::write_archive(&image, &folder.join(ARCHIVE))?;
        Ok(std::fs::remove_dir_all(folder.join("compiled"))?)
    })?;
    Ok(folder.join(ARCHIVE))
}

/// PyTorch is linked, which takes no space; programs are those of this checkout.
fn fill(root: &Path, venv: &Path) -> Result<PathBuf> {
    let volume = checkout::cache()?.join("training-volume");
    let runs = volume.join("runs");
    std::fs::create_dir_all(&runs)?;
    std::fs::set_permissions(&runs, PermissionsExt::from_mode(0o777))?;
    let (linked, of) = (volume.join("venv"), volume.join("venv-of"));
    let source = venv.display().to_string();
    if !std::fs::read_to_string(&of).is_ok_and(|before| before == source) {
        if linked.exists() {
            std::fs::remove_dir_all(&linked)?;
        }
        process::read(Command::new("cp").args(["--archive", "--link"]).arg(venv).arg(&linked))?;
        std::fs::write(of, source)?;
    }
    for (from, to) in PROGRAMS {
        let to = volume.join(to);
        std::fs::create_dir_all(to.parent().unwrap_or(&volume))?;
        std::fs::copy(root.join(from), to).context(from)?;
    }
    Ok(volume)
}
