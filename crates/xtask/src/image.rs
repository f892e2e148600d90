//! The image: a static binary, the Containerfile, no daemon. And one for test clusters, made of the
//! program that is built beside the tests.

use crate::figures::{self, FigureTarget, Op};
use crate::oci::{self, Image};
use crate::{checkout, compile, process};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name that test pods ask for.
pub(crate) const NAME: &str = "flyball.test/flyball:dev";

/// The name of the image with a shell.
pub(crate) const SHELL: &str = "flyball.test/shell:dev";
const LIMIT_MEGABYTES: f64 = 40.0;
const TARGET: &str = "x86_64-unknown-linux-musl";

/// The program and the archive that were built from it.
pub(crate) struct Built {
    pub(crate) program: PathBuf,
    pub(crate) archive: PathBuf,
}

/// Builds the image for test clusters: the program as it is built beside the tests, with the libraries
/// that it is linked to. The one that ships is another build of everything, for another target and with
/// all optimisations, and no story is about that (docs/decisions/0034).
pub(crate) fn build_for_tests(root: &Path) -> Result<Built> {
    of_program(compile::everything(root)?.join("flyball"))
}

/// An image for test clusters of a program that was built for this machine, with the libraries that it is linked to.
pub(crate) fn of_program(program: PathBuf) -> Result<Built> {
    let folder = checkout::cache()?.join("image");
    std::fs::create_dir_all(&folder)?;
    let (stripped, archive) =
        (folder.join("flyball-for-tests"), folder.join("flyball-for-tests.tar"));
    // Most of it is for a debugger.
    process::read(Command::new("strip").arg("-o").arg(&stripped).arg(&program))
        .context("could not strip the program\n\nhint: Debian's package `binutils`")?;
    let linked = process::read(Command::new("ldd").arg(&program))?;
    let mut files = vec![(stripped, "/flyball".to_owned())];
    files.extend(libraries(&linked).map(|path| (PathBuf::from(path), path.to_owned())));
    let image = Image {
        name: NAME.into(),
        files,
        entrypoint: vec!["/flyball".into()],
        environment: Vec::new(),
    };
    oci::write_archive(&image, &archive)?;
    let megabytes = std::fs::metadata(&archive)?.len() as f64 / 1e6;
    eprintln!("image: {NAME} for tests, {megabytes:.1} MB, {}", archive.display());
    Ok(Built { program, archive })
}

/// An image with this machine's shell, `date` and `sleep`: a run that takes steps and reports them needs no more.
pub(crate) fn shell() -> Result<PathBuf> {
    let folder = checkout::cache()?.join("image");
    std::fs::create_dir_all(&folder)?;
    let mut files: BTreeMap<String, PathBuf> = BTreeMap::new();
    for (program, place) in
        [("/bin/dash", "/bin/sh"), ("/bin/date", "/bin/date"), ("/bin/sleep", "/bin/sleep")]
    {
        let linked = process::read(Command::new("ldd").arg(program))?;
        files.extend(libraries(&linked).map(|path| (path.to_owned(), PathBuf::from(path))));
        files.insert(place.to_owned(), PathBuf::from(program));
    }
    let files = files.into_iter().map(|(place, file)| (file, place)).collect();
    let image = Image {
        name: SHELL.into(),
        files,
        entrypoint: vec!["/bin/sh".into()],
        environment: Vec::new(),
    };
    let archive = folder.join("shell-for-tests.tar");
    oci::write_archive(&image, &archive)?;
    Ok(archive)
}

/// The files that `ldd` names: `libc.so.6 => /lib/libc.so.6 (0x…)`, and the loader by itself.
fn libraries(linked: &str) -> impl Iterator<Item = &str> {
    linked.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
}

/// True when the static binary was built before, so that only what changed is built again.
pub(crate) fn release_is_cached(root: &Path) -> Result<bool> {
    Ok(checkout::target_folder(root)?.join(TARGET).join("release/flyball").exists())
}

/// Builds the static binary and the image that ships, and records its size.
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
    let program = checkout::target_folder(root)?.join(TARGET).join("release/flyball");

    let folder = checkout::cache()?.join("image");
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
        let target = FigureTarget { op: Op::AtMost, value: LIMIT_MEGABYTES };
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

#[cfg(test)]
mod tests {
    #[test]
    fn libraries_are_found_where_the_loader_finds_them() {
        let linked = "\tlinux-vdso.so.1 (0x00007ffd)\n\
            \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let found: Vec<&str> = super::libraries(linked).collect();
        assert_eq!(found, ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]);
    }
}
