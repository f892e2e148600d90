//! Documents: links that lead somewhere, and decision records that are all there.

use super::Finding;
use super::tree::Tree;

/// Rule: relative links in Markdown files lead to files of the tree.
pub(super) fn links(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in tree.texts_ending(".md") {
        for (line, target) in relative_links(text) {
            let file = target.split(['#', '?']).next().unwrap_or(target);
            let leads = file.is_empty() || resolve(path, file).is_some_and(|to| tree.exists(&to));
            if !leads {
                let wrong = format!("the link to {target} leads nowhere");
                let mend = "correct the path, or remove the link if the page does not exist yet";
                found.push(Finding::new(path, Some(line), wrong, mend));
            }
        }
    }
    found
}

/// Folders of the root that documents speak of.
const FOLDERS: &[&str] =
    &["catalog/", "charts/", "cluster/", "crates/", "docs/", "scenarios/", "validation/"];

/// Words that stand for any name.
const PLACEHOLDERS: &[&str] = &["CODE", "NAME", "nnn"];

/// Rule: a path between backticks exists. Patterns and placeholders are not paths.
pub(super) fn paths(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    // What was decided or changed once may speak of what is gone since.
    let is_history = |path: &str| path.starts_with("docs/decisions/") || path == "CHANGELOG.md";
    for (path, text) in tree.texts_ending(".md").filter(|(path, _)| !is_history(path)) {
        for (line, quoted) in quoted(text) {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"./_-".contains(&byte);
            let is_path = FOLDERS.iter().any(|folder| quoted.starts_with(folder))
                && quoted.bytes().all(plain)
                && !PLACEHOLDERS.iter().any(|one| quoted.contains(one));
            if is_path && !tree.exists(quoted.trim_end_matches('/')) {
                let wrong = format!("`{quoted}` does not exist");
                found.push(Finding::new(
                    path,
                    Some(line),
                    wrong,
                    "correct the path, or say \"not yet\"",
                ));
            }
        }
    }
    found
}

/// Rule: no code in documentation comments that only `cargo test --doc` would run: it takes a minute and a half to build
/// for it, and there was one.
pub(super) fn examples(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in tree.texts_ending(".rs") {
        let mut fenced = false;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim_start();
            let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            let Some(fence) = comment.and_then(|text| text.trim().strip_prefix("```")) else {
                continue;
            };
            fenced = !fenced;
            if fenced && matches!(fence, "" | "rust" | "no_run" | "should_panic") {
                let mend = "write ```text, and let a test show it";
                found.push(Finding::new(path, Some(index + 1), "nobody runs this example", mend));
            }
        }
    }
    found
}

/// Line and text of what stands between backticks, outside of blocks.
fn quoted(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if !fenced && !line.contains("not yet") {
            found.extend(line.split('`').skip(1).step_by(2).map(|piece| (index + 1, piece)));
        }
    }
    found
}

/// Line and target of each link that is not a web address, outside code.
fn relative_links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        // Between backticks stands code: every second piece.
        for prose in line.split('`').step_by(2) {
            let ends = prose.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
            found.extend(ends.map(|target| (index + 1, target)));
        }
        let defined = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        found.extend(defined.map(|(_, target)| (index + 1, target.trim())));
    }
    found.retain(|(_, target)| !target.contains("://") && !target.starts_with("mailto:"));
    found
}

/// The path, from the root, of a link in the file `from`; `None` when it leaves the tree.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

const DECISIONS: &str = "docs/decisions/";

/// Rule: decision records are numbered from 0001 without gaps and listed in their README.
pub(super) fn decisions(tree: &Tree) -> Vec<Finding> {
    let index = format!("{DECISIONS}README.md");
    let names: Vec<&str> = tree
        .paths()
        .filter_map(|path| path.strip_prefix(DECISIONS))
        .filter(|name| *name != "README.md")
        .collect();
    let listed = tree.text(&index).unwrap_or_default();
    let mut found = Vec::new();
    for (place, name) in names.iter().enumerate() {
        let path = format!("{DECISIONS}{name}");
        let number = format!("{:04}-", place + 1);
        if !name.starts_with(&number) || !name.ends_with(".md") {
            let wrong = format!("expected the record {number}….md here");
            let mend =
                "number the records from 0001 without gaps; a withdrawn one stays and says so";
            found.push(Finding::new(&path, None, wrong, mend));
        }
        if !listed.contains(&format!("({name})")) {
            let wrong = format!("not listed in {index}");
            found.push(Finding::new(&path, None, wrong, format!("add a link to ({name})")));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tree::made_up;
    use super::*;

    #[test]
    fn a_path_between_backticks_must_exist() {
        let of = |text: &str| paths(&made_up(&[("README.md", text), ("crates/a/src/lib.rs", "")]));
        assert_eq!(of("see\n`crates/b/src`")[0].line, Some(2));
        let fine = ["`crates/a/src/lib.rs`", "`crates/a`", "`crates/<name>`", "`docs/NAME.json`"];
        let more = ["```\n`crates/b`\n```", "`crates/b` (not yet)", "`src/b.rs`"];
        for text in fine.into_iter().chain(more) {
            assert_eq!(of(text), [], "{text}");
        }
    }

    #[test]
    fn a_link_that_leads_nowhere_fails() {
        let bad = "See [a](../missing.md#part) and [b](b.md).\n\n[c]: gone.md\n";
        let found = links(&made_up(&[("docs/a.md", bad), ("docs/b.md", "")]));
        let lines: Vec<_> = found.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [Some(1), Some(3)]);
        assert!(found[0].wrong.contains("../missing.md#part"));
        assert_eq!(links(&made_up(&[("a.md", "[out](../x.md)")])).len(), 1);
    }

    #[test]
    fn links_to_files_folders_parts_and_the_web_pass() {
        let good = "[a](../README.md) [b](.) [c](#part) [d](https://example.org/x) [e](./b.md)\n\
                    `[code](nowhere)`\n```\n[code](nowhere)\n```\n";
        let tree = made_up(&[("docs/a.md", good), ("docs/b.md", ""), ("README.md", "[d](docs/)")]);
        assert_eq!(links(&tree), []);
    }

    #[test]
    fn a_gap_in_the_records_fails() {
        let index = ("docs/decisions/README.md", "[1](0001-a.md) [2](0002-b.md) [3](0003-b.md)");
        let gap =
            made_up(&[index, ("docs/decisions/0001-a.md", ""), ("docs/decisions/0003-b.md", "")]);
        assert_eq!(decisions(&gap).len(), 1);
        let mended =
            made_up(&[index, ("docs/decisions/0001-a.md", ""), ("docs/decisions/0002-b.md", "")]);
        assert_eq!(decisions(&mended), []);
    }

    #[test]
    fn a_record_that_is_not_listed_fails() {
        let tree = made_up(&[("docs/decisions/0001-a.md", ""), ("docs/decisions/README.md", "")]);
        assert!(decisions(&tree)[0].wrong.contains("not listed"));
    }

    #[test]
    fn an_example_that_nobody_runs_is_found() {
        let of = |text: &str| examples(&made_up(&[("crates/a/src/lib.rs", text)])).len();
        assert_eq!(of("//! A.\n//!\n//! ```\n//! a();\n//! ```\n"), 1);
        assert_eq!(of("/// ```rust\n/// a();\n/// ```\nfn a() {}\n/// ```no_run\n/// ```\n"), 2);
        assert_eq!(of("/// ```text\n/// a();\n/// ```\n// ```\n"), 0);
    }
}
