//! `cargo xtask tidy`: the rules that a compiler does not check.
//!
//! Each rule is a pure function over [`Tree`], a small read model of the checkout, and returns
//! findings. A finding names a place, what is wrong there and how to mend it. The rules know
//! nothing about git, the terminal or each other.
//!
//! Start reading at [`RULES`]; each function named there has tests beside it that show the rule
//! failing on a made-up tree and passing once the tree is mended.

mod circles;
mod clocks;
mod dependencies;
mod documents;
mod layout;
mod machine;
mod map;
mod messages;
mod names;
mod sizes;
mod snapshots;
mod source;
mod tree;

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use tree::Tree;

/// A rule, as a function from the tree to what is wrong with it.
type Rule = fn(&Tree) -> Vec<Finding>;

/// Every rule, in the order in which findings are printed.
const RULES: &[Rule] = &[
    dependencies::arrows,
    dependencies::bans,
    dependencies::light,
    layout::manifests,
    layout::integration_tests,
    circles::modules,
    map::code_map,
    sizes::files,
    sizes::functions_in_limits,
    names::heap_names,
    names::private_words,
    messages::listed,
    messages::field_words,
    names::one_meaning,
    names::module_docs,
    names::simulation_switch,
    snapshots::built,
    documents::links,
    documents::paths,
    documents::examples,
    documents::decisions,
    clocks::quicker_than,
    machine::paths,
    machine::registries,
];

/// One thing that is wrong, where, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    path: String,
    /// Counted from 1; absent when the whole file or folder is meant.
    line: Option<usize>,
    wrong: String,
    mend: String,
}

impl Finding {
    fn new(
        path: impl Into<String>,
        line: Option<usize>,
        wrong: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        Self { path: path.into(), line, wrong: wrong.into(), mend: mend.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.path)?;
        if let Some(line) = self.line {
            write!(out, ":{line}")?;
        }
        write!(out, ": {}\n  mend: {}", self.wrong, self.mend)
    }
}

/// Checks the workspace and prints the findings; the exit code is 1 if there are any.
pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let mut tree = Tree::load(root)?;
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(root.join(messages::PAGE), messages::page(&tree))?;
        tree = Tree::load(root)?;
    }
    let findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    for finding in &findings {
        println!("{finding}");
    }
    println!("{}", summary(tree.len(), findings.len()));
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn summary(files: usize, findings: usize) -> String {
    let noun = if findings == 1 { "finding" } else { "findings" };
    format!("tidy: {} rules, {files} files, {findings} {noun}", RULES.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_says_where_what_and_how_to_mend() {
        let at_line = Finding::new("a/b.rs", Some(7), "it is too long", "split it");
        assert_eq!(at_line.to_string(), "a/b.rs:7: it is too long\n  mend: split it");
        let whole = Finding::new("a", None, "it is not in the map", "add it");
        assert_eq!(whole.to_string(), "a: it is not in the map\n  mend: add it");
    }

    #[test]
    fn the_last_line_counts_rules_files_and_findings() {
        assert_eq!(summary(214, 0), format!("tidy: {} rules, 214 files, 0 findings", RULES.len()));
        assert!(summary(3, 1).ends_with("1 finding"));
    }
}
