//! Tools that are programs of their own: what they measure takes minutes to build, and xtask must build in seconds.
//!
//! `cargo xtask accuracy --check` and its like stay what people type: arguments and exit status are passed on.

use crate::{compile, process};
use anyhow::{Context, Result, ensure};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The performance model and the program itself against what others have published: `crates/accuracy`.
pub(crate) const ACCURACY: &str = "flyball-accuracy";

/// The simulator, the governor and the gateway in numbers: `crates/bench`.
pub(crate) const BENCH: &str = "flyball-bench";

/// Runs one of them as a person asks for it, and ends as it does.
pub(crate) fn run(root: &Path, name: &str, args: &[OsString]) -> Result<ExitCode> {
    let mut command = match in_the_one_build(name)? {
        Some(program) => start(root, program),
        None => {
            let mut cargo = Command::new("cargo");
            cargo.args(["run", "--quiet", "--locked", "--manifest-path"]);
            cargo.arg(root.join("Cargo.toml")).args(["--package", name, "--"]);
            cargo
        }
    };
    command.args(args).env("FLYBALL_XTASK", std::env::current_exe()?);
    let status = process::apart(&mut command).status();
    let status = status.with_context(|| format!("could not start {name}"))?;
    // Without a code it was ended by a signal.
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Runs one of them as a step of `check` or of CI.
pub(crate) fn check(root: &Path, name: &str, args: &[&str]) -> Result<()> {
    let program = match in_the_one_build(name)? {
        Some(program) => program,
        None => compile::everything(root)?.join(name),
    };
    process::run(start(root, program).args(args))
}

/// The program that `.ci/run` has built beside this one. For one package cargo would choose other features than for all,
/// and so build most of it again.
fn in_the_one_build(name: &str) -> Result<Option<PathBuf>> {
    if std::env::var_os("FLYBALL_CI_BEGIN").is_none() {
        return Ok(None);
    }
    let path = std::env::current_exe()?.with_file_name(name);
    ensure!(path.exists(), "{} is not there\n\nhint: cargo build --workspace", path.display());
    Ok(Some(path))
}

/// A folder of builds that two checkouts share may hold the other's program, so that it is told which is meant.
fn start(root: &Path, program: PathBuf) -> Command {
    let mut command = Command::new(program);
    command.env("CARGO_MANIFEST_DIR", root.join("crates/xtask"));
    command
}
