//! A copy of the checkout in which code may be broken, and test programs built from it.

use crate::trust::list::{Mutation, TestTarget};
use crate::{checkout, process};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A test that a mutation keeps from ending is taken for one that fails.
const LONGEST: Duration = Duration::from_mins(5);

const PAUSE: Duration = Duration::from_millis(50);

/// The copy. It is kept from run to run, so that only what changed is built anew.
pub(super) struct Scratch {
    tree: PathBuf,
    target: PathBuf,
}

impl Scratch {
    /// A copy of the files that git tracks or would track, as they are now.
    pub(super) fn of(root: &Path) -> Result<Self> {
        let cache = checkout::cache()?.join("trust");
        let scratch = Self { tree: cache.join("tree"), target: cache.join("target") };
        let list = process::read(Command::new("git").current_dir(root).args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "-z",
        ]))?;
        let files: BTreeSet<&str> = list.split('\0').filter(|path| !path.is_empty()).collect();
        remove_others(&scratch.tree, &scratch.tree, &files)?;
        for file in files {
            copy(&root.join(file), &scratch.tree.join(file))?;
        }
        Ok(scratch)
    }

    /// Takes a mend out; what comes back restores it.
    pub(super) fn mutate(&self, mutation: &Mutation) -> Result<Restore> {
        let path = self.tree.join(&mutation.file);
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", mutation.file))?;
        let broken = mutation.applied(&text)?;
        fs::write(&path, broken).with_context(|| format!("writing {}", path.display()))?;
        Ok(Restore { path, text })
    }

    /// The test program of a package. `None` if it does not compile.
    pub(super) fn build(&self, package: &str, target: TestTarget) -> Result<Option<PathBuf>> {
        let mut cargo = Command::new("cargo");
        cargo.current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target);
        cargo.args(["test", "--no-run", "--locked", "--message-format=json"]);
        cargo.args(["--package", &format!("flyball-{package}")]);
        match target {
            TestTarget::Lib => cargo.arg("--lib"),
            TestTarget::It => cargo.args(["--test", "it"]),
            TestTarget::Bins => cargo.arg("--bins"),
        };
        let output = cargo.output().context("starting cargo")?;
        if !output.status.success() {
            return Ok(None);
        }
        let printed = String::from_utf8_lossy(&output.stdout);
        let program = printed.lines().rev().find_map(executable);
        program.map(Some).with_context(|| format!("{package} has no test program"))
    }

    /// Whether a test of a program passes. It must be there.
    pub(super) fn passes(&self, program: &Path, package: &str, test: &str) -> Result<bool> {
        let folder = self.tree.join("crates").join(package);
        let mut command = Command::new(program);
        command.args(["--exact", test, "--include-ignored"]).current_dir(&folder);
        command.env("CARGO_MANIFEST_DIR", &folder);
        // That it fails is enough: looking for the smallest case that does took minutes.
        command.env("PROPTEST_MAX_SHRINK_ITERS", "0");
        let listed = process::read(
            Command::new(program).args(["--exact", test, "--list"]).current_dir(&folder),
        )?;
        if !listed.contains(&format!("{test}: test")) {
            bail!("flyball-{package} has no test {test}\n\nhint: name it by its whole path");
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let began = Instant::now();
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status.success());
            }
            if began.elapsed() > LONGEST {
                child.kill()?;
                child.wait()?;
                return Ok(false);
            }
            thread::sleep(PAUSE);
        }
    }
}

/// Puts a file back as it was when it is dropped.
pub(super) struct Restore {
    path: PathBuf,
    text: String,
}

impl Drop for Restore {
    fn drop(&mut self) {
        // The next run copies the file anew if this fails.
        let _ = fs::write(&self.path, &self.text);
    }
}

/// The test program that a line of cargo's messages tells of. Tests of a package bring its programs along, which
/// are none.
fn executable(line: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    let tests = message["profile"]["test"].as_bool().unwrap_or(false);
    message["executable"].as_str().filter(|_| tests).map(PathBuf::from)
}

/// Copies what differs: a file that is written anew would be built anew.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let Ok(bytes) = fs::read(from) else { return Ok(()) };
    if fs::read(to).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    }
    fs::write(to, bytes).with_context(|| format!("writing {}", to.display()))
}

fn remove_others(tree: &Path, folder: &Path, files: &BTreeSet<&str>) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(tree, &path, files)?;
        } else if let Ok(name) = path.strip_prefix(tree)
            && !name.to_str().is_some_and(|name| files.contains(name))
        {
            fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_read_from_what_cargo_says() {
        let line = r#"{"profile":{"test":true},"executable":"/t/debug/deps/core-1"}"#;
        assert_eq!(executable(line), Some(PathBuf::from("/t/debug/deps/core-1")));
        let program = r#"{"profile":{"test":false},"executable":"/t/debug/flyball"}"#;
        assert_eq!(executable(program), None, "a program beside the tests");
        assert_eq!(executable(r#"{"reason":"compiler-artifact","executable":null}"#), None);
        assert_eq!(executable("warning: x"), None);
    }

    #[test]
    fn only_what_is_listed_stays_and_only_what_differs_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let (from, tree) = (folder.path().join("from"), folder.path().join("tree"));
        fs::create_dir_all(tree.join("deep")).unwrap();
        fs::write(&from, "a").unwrap();
        for file in ["kept", "deep/old"] {
            fs::write(tree.join(file), "a").unwrap();
        }
        let before = fs::metadata(tree.join("kept")).unwrap().modified().unwrap();
        remove_others(&tree, &tree, &BTreeSet::from(["kept"])).unwrap();
        copy(&from, &tree.join("kept")).unwrap();
        copy(&from, &tree.join("new/file")).unwrap();
        assert!(!tree.join("deep/old").exists());
        assert_eq!(fs::metadata(tree.join("kept")).unwrap().modified().unwrap(), before);
        assert_eq!(fs::read(tree.join("new/file")).unwrap(), b"a");
    }
}
