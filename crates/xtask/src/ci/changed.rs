//! `cargo xtask check --changed`: what a change since `main` can have broken, and nothing else.
//!
//! Everything is built as one workspace, as always: what did not change is fresh, and a package by itself would be
//! built with other features (see `compile`). Only the tests are chosen, by what stands on what changed.

use super::steps::{self, Outcome, Run};
use super::{Context, Finished, exit_of, finish, summarise};
use crate::figures::{self, FigureTarget, Op};
use crate::{compile, process};
use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::Instant;

/// Seconds that a contributor waits at most after a change in a crate that no other uses.
const LIMIT_SECONDS: f64 = 90.0;

/// Formats, rules and lints of everything, and the tests of what changed and of what uses it.
pub(super) fn run(root: &Path, figure: bool) -> Result<ExitCode> {
    let began = Instant::now();
    let reach = Reach::of(&changed_files(root)?);
    println!("changed since main: {}", reach.in_words());
    let context = Context { root, figure: false };
    // Cargo builds one thing at a time in a target folder; what reads sources only runs beside it.
    let beside: [(_, Run); 2] = [("format", steps::format), ("tidy", steps::rules)];
    let beside = || beside.map(|(name, step)| finish(name, || step(&context)));
    let results: Vec<Finished> = thread::scope(|scope| {
        let beside = scope.spawn(beside);
        let mut results = vec![finish("clippy", || steps::clippy(&context))];
        if let Some(filter) = reach.filter() {
            results.push(finish("tests", || changed_tests(root, &filter)));
        }
        results.extend(beside.join().expect("a step says what is wrong instead of panicking"));
        results
    });
    summarise(&results);
    let seconds = began.elapsed().as_secs_f64();
    println!("{seconds:.0} s");
    if figure {
        record(root, &reach, seconds)?;
    }
    Ok(exit_of(&results))
}

fn changed_tests(root: &Path, filter: &str) -> Result<Outcome> {
    let mut nextest = compile::nextest(root, filter)?;
    // A package without tests is no mistake.
    nextest.args(["--status-level", "fail", "--no-tests", "pass"]);
    compile::all_pass(&mut nextest).map(Outcome::Ran)
}

/// What a change can have broken.
#[derive(Debug, PartialEq, Eq)]
enum Reach {
    /// These packages and what uses them; none, if only documents changed.
    Packages(BTreeSet<String>),
    /// Anything: this file is none of a package's.
    All(String),
}

impl Reach {
    fn of(files: &[String]) -> Self {
        let mut packages = BTreeSet::new();
        for file in files {
            match file.split('/').collect::<Vec<_>>().as_slice() {
                ["crates", folder, _, ..] => {
                    packages.insert(format!("flyball-{folder}"));
                }
                // Tests hold the reference against the code.
                ["docs", folder, ..] if *folder != "reference" => {}
                [page] if page.ends_with(".md") => {}
                _ => return Self::All(file.clone()),
            }
        }
        Self::Packages(packages)
    }

    fn in_words(&self) -> String {
        match self {
            Self::Packages(packages) if packages.is_empty() => "documents at most".to_owned(),
            Self::Packages(packages) => packages.iter().cloned().collect::<Vec<_>>().join(", "),
            Self::All(file) => format!("{file}, on which every test may depend"),
        }
    }

    /// The tests to run, as nextest is told.
    fn filter(&self) -> Option<String> {
        let tests = match self {
            Self::Packages(packages) if packages.is_empty() => return None,
            Self::Packages(packages) => {
                let each: Vec<String> =
                    packages.iter().map(|package| format!("rdeps(={package})")).collect();
                each.join(" | ")
            }
            Self::All(_) => "all()".to_owned(),
        };
        Some(format!("({tests}) and not test(real_engines)"))
    }
}

/// Files that differ from what `main` and this branch have in common, and those that git does not know yet.
fn changed_files(root: &Path) -> Result<Vec<String>> {
    let git = |args: &[&str]| process::read(Command::new("git").current_dir(root).args(args));
    let base = git(&["merge-base", "HEAD", "main"])
        .or_else(|_| git(&["merge-base", "HEAD", "origin/main"]))
        .context("there is no branch `main` to compare with\n\nhint: git fetch origin main:main")?;
    let changed = git(&["diff", "--name-only", base.trim()])?;
    let unknown = git(&["ls-files", "--others", "--exclude-standard"])?;
    Ok(changed.lines().chain(unknown.lines()).map(str::to_owned).collect())
}

/// Writes `ci.inner_loop_s`, which is of a change in one crate that no other uses.
fn record(root: &Path, reach: &Reach, seconds: f64) -> Result<()> {
    let package = match reach {
        Reach::Packages(packages) if packages.len() == 1 => packages.first(),
        _ => None,
    };
    let package = package.context("the figure is of a change in one crate")?;
    let mut cargo = Command::new("cargo");
    let args = ["metadata", "--no-deps", "--offline", "--locked", "--format-version", "1"];
    let users = users(&process::read(cargo.current_dir(root).args(args))?, package)?;
    ensure!(users.is_empty(), "{package} is used by {}: the figure is of a leaf", users.join(", "));
    let target = FigureTarget { op: Op::AtMost, value: LIMIT_SECONDS };
    figures::write("ci.inner_loop_s", seconds, "s", target, "cargo xtask check --changed --figure")
        .map(drop)
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
}

/// The packages that use one.
fn users(metadata: &str, package: &str) -> Result<Vec<String>> {
    let metadata: Metadata = serde_json::from_str(metadata).context("cargo's metadata")?;
    let uses = |other: &Package| other.dependencies.iter().any(|one| one.name == package);
    Ok(metadata.packages.iter().filter(|other| uses(other)).map(|one| one.name.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(files: &[&str]) -> Reach {
        Reach::of(&files.iter().map(|file| (*file).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn tests_of_what_changed_and_of_what_uses_it_run() {
        let two =
            reach(&["crates/cli/src/main.rs", "crates/core/src/lib.rs", "crates/cli/Cargo.toml"]);
        let filter = "(rdeps(=flyball-cli) | rdeps(=flyball-core)) and not test(real_engines)";
        assert_eq!(two.filter().as_deref(), Some(filter));
    }

    #[test]
    fn documents_break_no_test_but_the_reference_may() {
        assert_eq!(reach(&["docs/scale.md", "README.md", "docs/errors/a.md"]).filter(), None);
        assert_eq!(reach(&[]).filter(), None);
        for file in ["docs/reference/cli.md", "Cargo.lock", "catalog/prices.csv", "crates/new"] {
            let all = reach(&["crates/cli/src/main.rs", file]);
            assert_eq!(all, Reach::All(file.to_owned()));
            assert!(all.filter().is_some_and(|filter| filter.starts_with("(all())")));
        }
    }

    #[test]
    fn who_uses_a_package_is_found() {
        let metadata = r#"{"packages":[{"name":"a","dependencies":[]},{"name":"b","dependencies":[{"name":"a"}]}]}"#;
        assert_eq!(users(metadata, "a").unwrap(), ["b"]);
        assert!(users(metadata, "b").unwrap().is_empty());
    }
}
