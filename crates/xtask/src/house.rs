//! `cargo xtask house`: how long a newcomer waits for the first answer of xtask, and how many files an engine stands in.
//!
//! xtask is the first thing that anybody compiles here, so that it must not grow; `tidy` has the list of what it may use.

use crate::figures::{self, FigureTarget, Op};
use crate::process;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

const LIMIT_SECONDS: f64 = 60.0;

/// Files that whoever adds an engine edits by hand: its table, the enum, how its flags are read, and the guide.
const ENGINE_FILES: f64 = 4.0;

/// The engine that was added last, as code names it and as guides do.
const NEWEST_ENGINE: &str = r"TensorRtLlm|\btrtllm|^#.*TensorRT-LLM|\| TensorRT-LLM";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write `house.xtask_build_s` and `house.engine_files`
    #[arg(long)]
    figure: bool,
}

pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    engine_files(root, args)?;
    xtask_build(root, args)
}

/// Where the engine that was added last is named. What its speed is predicted from is another matter: not every engine has
/// that.
fn engine_files(root: &Path, args: &Args) -> Result<()> {
    let mut grep = Command::new("git");
    grep.current_dir(root).args(["grep", "--files-with-matches", "--perl-regexp", NEWEST_ENGINE]);
    grep.args(["--", "crates/*/src/*.rs", "docs/guides/engines.md"]);
    grep.args([":!*tests*", ":!crates/perf", ":!crates/accuracy", ":!crates/xtask"]);
    let files = process::read(&mut grep)?;
    let files: Vec<&str> = files.lines().collect();
    println!("an engine stands in {} files: {}", files.len(), files.join(", "));
    if args.figure {
        let target = FigureTarget { op: Op::AtMost, value: ENGINE_FILES };
        let command = "cargo xtask house --figure";
        figures::write("house.engine_files", files.len() as f64, "files", target, command)?;
    }
    Ok(())
}

/// Builds xtask into an empty folder.
fn xtask_build(root: &Path, args: &Args) -> Result<()> {
    // First, because it brings the sources: how fast a network is says nothing of us.
    let tree =
        process::read(&mut cargo(root, &["tree", "--edges", "normal,build", "--prefix", "none"]))?;
    let packages = packages(&tree).len();
    let target = Emptied::new()?;
    let began = Instant::now();
    // Without a cache of compiled packages, which would be a warm build by another name.
    let mut build = cargo(root, &["build", "--quiet"]);
    process::run(build.env("CARGO_TARGET_DIR", &target.folder).env("RUSTC_WRAPPER", ""))?;
    let seconds = began.elapsed().as_secs_f64();
    println!("xtask: {packages} packages, built from nothing in {seconds:.1} s");
    if args.figure {
        let target = FigureTarget { op: Op::AtMost, value: LIMIT_SECONDS };
        let command = "cargo xtask house --figure";
        figures::write("house.xtask_build_s", seconds, "s", target, command)?;
    }
    Ok(())
}

fn cargo(root: &Path, args: &[&str]) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args(args).args(["--locked", "--package", "flyball-xtask"]);
    cargo
}

/// Names and versions in what `cargo tree` prints, each once.
fn packages(tree: &str) -> BTreeSet<(&str, &str)> {
    tree.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?))
        })
        .collect()
}

/// A folder that nothing was built into, and that goes with this value.
struct Emptied {
    folder: PathBuf,
}

impl Emptied {
    fn new() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("flyball-house-{}", std::process::id()));
        // One that is there already would not be empty.
        fs::create_dir(&folder).with_context(|| format!("creating {}", folder.display()))?;
        Ok(Self { folder })
    }
}

impl Drop for Emptied {
    fn drop(&mut self) {
        // It lies in a folder for such files; if it stays there, so be it.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_package_that_several_use_counts_once_and_two_versions_count_twice() {
        let tree = "flyball-xtask v0.0.0 (/a/crates/xtask)\nanyhow v1.0.1\nserde v1.0.2\n\
                    anyhow v1.0.1 (*)\nsyn v2.0.1 (proc-macro)\nsyn v1.0.9\n\n";
        assert_eq!(super::packages(tree).len(), 5);
    }
}
