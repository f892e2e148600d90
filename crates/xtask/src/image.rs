//! The image: a static binary, the Containerfile, no daemon.

use crate::figures::{self, Op, Target};
use crate::{cluster, process};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name that test pods ask for.
pub(crate) const NAME: &str = "flyball.test/flyball:dev";
const LIMIT_MEGABYTES: f64 = 40.0;
const TARGET: &str = "x86_64-unknown-linux-musl";

/// The program and the archive that were built from it.
pub(crate) struct Built {
    pub(crate) program: PathBuf,
    pub(crate) archive: PathBuf,
}

/// Builds binary and image, and records its size.
pub(crate) fn build(root: &Path, figure: bool) -> Result<Built> {
    process::run(Command::new("cargo").current_dir(root).args([
        "build",
        "--release",
        "--locked",
        "--target",
        TARGET,
        "--package",
        "flyball-cli",
    ]))
    .context("the static binary did not build\n\nhint: `rustup target list --installed` must name the musl target, and Debian's musl-tools be installed")?;
    let program = target_folder(root)?.join(TARGET).join("release/flyball");

    let folder = cluster::Layout::new()?.cache().join("image");
    let context = folder.join("context");
    std::fs::create_dir_all(&context)?;
    std::fs::copy(&program, context.join("flyball"))?;
    let archive = folder.join("flyball.tar");
    if archive.exists() {
        std::fs::remove_file(&archive)?;
    }
    let buildah = || {
        let mut command = Command::new("buildah");
        command.arg("--root").arg(folder.join("storage"));
        command.arg("--runroot").arg(folder.join("run"));
        // vfs needs neither overlay mounts nor root's help; one layer costs nothing to copy.
        command.args(["--storage-driver", "vfs"]);
        command
    };
    process::read(
        buildah()
            .args(["bud", "--isolation", "chroot", "--timestamp", "0", "--tag", NAME, "--file"])
            .arg(root.join("Containerfile"))
            .arg(&context),
    )
    .context("the image did not build\n\nhint: Debian's package `buildah`")?;
    let destination = format!("oci-archive:{}:{NAME}", archive.display());
    process::read(buildah().args(["push", NAME, &destination]))?;
    // Each build leaves a copy of the binary in the store; the archive is all that is needed.
    process::read(buildah().args(["rmi", "--all", "--force"]))?;

    let megabytes = std::fs::metadata(&program)?.len() as f64 / 1e6;
    let packed = std::fs::metadata(&archive)?.len() as f64 / 1e6;
    println!("image: {NAME}, {megabytes:.1} MB unpacked, {packed:.1} MB packed");
    println!("image: {}", archive.display());
    if figure {
        let target = Target { op: Op::AtMost, value: LIMIT_MEGABYTES };
        let command = "cargo xtask image --figure";
        figures::write("image.megabytes", megabytes, "MB unpacked", target, command)?;
    }
    if megabytes > LIMIT_MEGABYTES {
        bail!(
            "the image has {megabytes:.1} MB, over its {LIMIT_MEGABYTES} MB\n\nhint: `cargo tree -p flyball-cli` shows what it is made of"
        );
    }
    Ok(Built { program, archive })
}

pub(crate) fn target_folder(root: &Path) -> Result<PathBuf> {
    let text = process::read(Command::new("cargo").current_dir(root).args([
        "metadata",
        "--format-version=1",
        "--no-deps",
        "--offline",
    ]))?;
    let metadata: serde_json::Value = serde_json::from_str(&text)?;
    let folder = metadata["target_directory"].as_str().context("cargo metadata has no target")?;
    Ok(PathBuf::from(folder))
}
