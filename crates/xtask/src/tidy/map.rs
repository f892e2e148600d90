//! ARCHITECTURE.md's code map and `crates/` name each other.
//!
//! A map that lists crates that are gone, or misses crates that are there, is worse than none:
//! readers stop trusting it.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::tree::{Tree, under_crates};

const MAP: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Code map";
const LONGEST: usize = 200;

struct Row {
    line: usize,
    not_yet: bool,
}

/// Rule: the code map is complete, true and short.
pub(super) fn code_map(tree: &Tree) -> Vec<Finding> {
    let Some(text) = tree.text(MAP) else {
        return vec![Finding::new(MAP, None, "missing", "write the map of the code")];
    };
    let mut found = Vec::new();
    let lines = text.lines().count();
    if lines > LONGEST {
        let wrong = format!("{lines} lines, more than {LONGEST}: a map must be readable at once");
        found.push(Finding::new(MAP, Some(LONGEST + 1), wrong, "move detail into docs/"));
    }
    let rows = rows(text);
    let folders: BTreeSet<&str> = tree.paths().filter_map(under_crates).map(|(f, _)| f).collect();
    for folder in &folders {
        if !rows.contains_key(folder) {
            let wrong = format!("crates/{folder} is not in the code map");
            let mend = format!("add a row \"| `{folder}` | … |\" under \"{HEADING}\"");
            found.push(Finding::new(MAP, None, wrong, mend));
        }
    }
    for (name, row) in &rows {
        let exists = folders.contains(name);
        if exists && row.not_yet {
            let wrong = format!("`{name}` is marked \"not yet\", but crates/{name} exists");
            found.push(Finding::new(MAP, Some(row.line), wrong, "remove the mark"));
        }
        if !exists && !row.not_yet {
            let wrong = format!("`{name}` is in the code map, but crates/{name} does not exist");
            let mend = "mark the row \"not yet\", or remove it";
            found.push(Finding::new(MAP, Some(row.line), wrong, mend));
        }
    }
    found
}

/// The rows "| `name` | …" between the heading and the next one.
fn rows<'a>(text: &'a str) -> BTreeMap<&'a str, Row> {
    let lines = text.lines().enumerate().skip_while(|(_, line)| *line != HEADING).skip(1);
    let section = lines.take_while(|(_, line)| !line.starts_with("## "));
    let row = |(index, line): (usize, &'a str)| {
        let name = line.strip_prefix("| `")?.split_once('`')?.0;
        Some((name, Row { line: index + 1, not_yet: line.contains("not yet") }))
    };
    section.filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::made_up;
    use super::*;

    fn wrong_with(map: &str) -> Vec<String> {
        let tree = made_up(&[
            ("ARCHITECTURE.md", map),
            ("crates/core/Cargo.toml", ""),
            ("crates/perf/Cargo.toml", ""),
        ]);
        code_map(&tree).into_iter().map(|finding| finding.wrong).collect()
    }

    const GOOD: &str = "# Map\n## Code map\n| `core` | words |\n| `perf` | speed |\n\
                        | `ledger` | money (not yet) |\n## Other\n| `here` | ignored |\n";

    #[test]
    fn a_crate_that_the_map_does_not_name_fails() {
        let found = wrong_with(&GOOD.replace("| `perf` | speed |\n", ""));
        assert_eq!(found, ["crates/perf is not in the code map"]);
        assert!(wrong_with(GOOD).is_empty());
    }

    #[test]
    fn a_row_without_a_folder_must_say_not_yet() {
        let found = wrong_with(&GOOD.replace(" (not yet)", ""));
        assert_eq!(found, ["`ledger` is in the code map, but crates/ledger does not exist"]);
    }

    #[test]
    fn a_crate_that_exists_must_not_say_not_yet() {
        let found = wrong_with(&GOOD.replace("speed", "speed (not yet)"));
        assert_eq!(found, ["`perf` is marked \"not yet\", but crates/perf exists"]);
    }

    #[test]
    fn a_long_or_missing_map_fails() {
        assert!(wrong_with(&format!("{GOOD}{}", "\n".repeat(200)))[0].contains("207 lines"));
        assert_eq!(code_map(&made_up(&[]))[0].wrong, "missing");
    }
}
