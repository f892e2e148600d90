//! The read model that the rules see: paths, texts and crate manifests, and nothing else.
//!
//! Paths are relative to the root and use `/`. In a git checkout the files are those that git
//! tracks or would track; elsewhere (an unpacked archive, a test's folder) they are found by a walk.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::source::code_only;
use anyhow::{Context, Result};

/// Build output and git's own data are not part of the tree.
const NOT_WALKED: &[&str] = &["target", ".git"];

/// The files of a checkout.
pub(super) struct Tree {
    /// Text by path; `None` for files that are not UTF-8.
    files: BTreeMap<String, Option<String>>,
    /// What is code in each Rust file. Most rules read it, and to find it takes longer than any of them.
    code: BTreeMap<String, String>,
}

/// A crate's folder name and its manifest.
pub(super) struct Manifest<'a> {
    pub(super) folder: &'a str,
    pub(super) path: &'a str,
    pub(super) text: &'a str,
    /// The parsed manifest, or why it cannot be parsed.
    pub(super) toml: Result<toml::Table, String>,
}

/// One entry of a dependency table.
pub(super) struct Dependency {
    /// The package, even where the manifest renames it.
    pub(super) package: String,
    pub(super) for_tests: bool,
    pub(super) line: Option<usize>,
}

impl Tree {
    pub(super) fn load(root: &Path) -> Result<Self> {
        let paths = match tracked(root) {
            Some(paths) => paths,
            None => {
                let mut paths = Vec::new();
                walk(root, "", &mut paths)?;
                paths
            }
        };
        let mut files = BTreeMap::new();
        for path in paths {
            // A tracked file that was just deleted is listed by git but is not in the tree.
            let Ok(bytes) = fs::read(root.join(&path)) else { continue };
            files.insert(path, String::from_utf8(bytes).ok());
        }
        let is_rust = |(path, text): (&String, &Option<String>)| {
            Some((path.clone(), code_only(text.as_deref().filter(|_| path.ends_with(".rs"))?)))
        };
        let code = files.iter().filter_map(is_rust).collect();
        Ok(Self { files, code })
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Path and text of each text file.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    pub(super) fn texts_ending(&self, end: &str) -> impl Iterator<Item = (&str, &str)> {
        self.texts().filter(move |(path, _)| path.ends_with(end))
    }

    /// Path and code of each Rust file, as [`code_only`] leaves it.
    pub(super) fn code(&self) -> impl Iterator<Item = (&str, &str)> {
        self.code.iter().map(|(path, code)| (path.as_str(), code.as_str()))
    }

    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.as_deref()
    }

    /// Whether a file or a folder with a file in it is at `path`; the empty path is the root.
    pub(super) fn exists(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty()
            || self.files.contains_key(path)
            || self.paths().any(|file| file.starts_with(&folder))
    }

    /// The manifests at `crates/*/Cargo.toml`, by folder name.
    pub(super) fn manifests(&self) -> Vec<Manifest<'_>> {
        let manifest = |(path, text)| {
            let (folder, file) = under_crates(path)?;
            (file == "Cargo.toml").then(|| Manifest {
                folder,
                path,
                text,
                toml: toml::from_str(text).map_err(|error| error.to_string()),
            })
        };
        self.texts().filter_map(manifest).collect()
    }
}

/// Splits `crates/perf/src/lib.rs` into `perf` and `src/lib.rs`.
pub(super) fn under_crates(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("crates/")?.split_once('/')
}

impl Manifest<'_> {
    /// All dependencies of all kinds, including those under `[target.*]`.
    pub(super) fn dependencies(&self) -> Vec<Dependency> {
        let Ok(manifest) = &self.toml else { return Vec::new() };
        let mut found = self.dependencies_in(manifest);
        for target in manifest.get("target").and_then(toml::Value::as_table).into_iter().flatten() {
            if let Some(table) = target.1.as_table() {
                found.extend(self.dependencies_in(table));
            }
        }
        found
    }

    fn dependencies_in(&self, table: &toml::Table) -> Vec<Dependency> {
        let mut found = Vec::new();
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let entries = table.get(kind).and_then(toml::Value::as_table);
            for (key, value) in entries.into_iter().flatten() {
                let renamed = value.get("package").and_then(toml::Value::as_str);
                found.push(Dependency {
                    package: renamed.unwrap_or(key).to_owned(),
                    for_tests: kind == "dev-dependencies",
                    line: self.line_of_key(key),
                });
            }
        }
        found
    }

    fn line_of_key(&self, key: &str) -> Option<usize> {
        let is_key = |line: &str| {
            line.trim_start()
                .strip_prefix(key)
                .is_some_and(|rest| rest.starts_with(['.', ' ', '=', '\t']))
        };
        self.text.lines().position(is_key).map(|index| index + 1)
    }
}

/// The files that git tracks or would track; `None` when `root` is not the top of a checkout.
fn tracked(root: &Path) -> Option<Vec<String>> {
    if !root.join(".git").exists() {
        return None;
    }
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()?;
    let listed = output.status.success().then(|| String::from_utf8(output.stdout).ok())??;
    Some(listed.split_terminator('\0').map(str::to_owned).collect())
}

fn walk(root: &Path, folder: &str, paths: &mut Vec<String>) -> Result<()> {
    let here = root.join(folder);
    let entries = fs::read_dir(&here).with_context(|| format!("reading {}", here.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("reading {}", here.display()))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if !NOT_WALKED.contains(&name.as_str()) {
                walk(root, &path, paths)?;
            }
        } else {
            paths.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
pub(super) fn made_up(files: &[(&str, &str)]) -> Tree {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    Tree::load(root.path()).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_finds_files_and_leaves_build_output_out() {
        let tree = made_up(&[("a/b.txt", "x"), ("target/debug/c", "y"), ("d", "z")]);
        assert_eq!(tree.paths().collect::<Vec<_>>(), ["a/b.txt", "d"]);
        assert!(tree.exists("a") && tree.exists("a/b.txt") && tree.exists(""));
        assert!(!tree.exists("a/b") && !tree.exists("target"));
    }

    #[test]
    fn a_checkout_lists_new_files_and_leaves_ignored_ones_out() {
        let root = tempfile::tempdir().unwrap();
        let git = Command::new("git").args(["init", "-q"]).current_dir(root.path()).status();
        assert!(git.unwrap().success());
        fs::write(root.path().join(".gitignore"), "secret\n").unwrap();
        fs::write(root.path().join("new"), "").unwrap();
        fs::write(root.path().join("secret"), "").unwrap();
        let tree = Tree::load(root.path()).unwrap();
        assert_eq!(tree.paths().collect::<Vec<_>>(), [".gitignore", "new"]);
    }

    #[test]
    fn dependencies_of_every_kind_are_seen_under_their_own_name() {
        let text = "[dependencies]\nhttp.workspace = true\nj = { package = \"jiff\" }\n\
                    [dev-dependencies]\nserde = \"1\"\n\
                    [target.'cfg(unix)'.dependencies]\nkube = \"5\"\n";
        let tree = made_up(&[("crates/x/Cargo.toml", text)]);
        let found = tree.manifests()[0].dependencies();
        let seen: Vec<_> =
            found.iter().map(|d| (d.package.as_str(), d.for_tests, d.line)).collect();
        let expected = [
            ("http", false, Some(2)),
            ("jiff", false, Some(3)),
            ("serde", true, Some(5)),
            ("kube", false, Some(7)),
        ];
        assert_eq!(seen, expected);
    }
}
