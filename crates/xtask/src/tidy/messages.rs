//! Log lines, errors and reasons in one list, so that they are read side by side.
//!
//! The list is `docs/reference/messages.md`; `UPDATE=1 cargo xtask tidy` writes it.

use super::Finding;
use super::source::{test_items, words};
use super::tree::Tree;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::Range;

/// Where the list is.
pub(super) const PAGE: &str = "docs/reference/messages.md";

/// Crates whose texts only developers see.
const TOOLS: &[&str] = &["accuracy", "bench", "e2e", "figures", "proving", "xtask"];

/// One closed list of sentences.
const REASONS: &str = "crates/core/src/reason.rs";

/// Words for which `docs/glossary.md` has others.
const PRIVATE: &[&str] = &["anew", "heard", "mend", "told", "whoever", "wish", "wished"];

/// Sections of the page, with what a text follows in the code.
const KINDS: [(&str, &str); 6] = [
    ("Log lines: error", "error!("),
    ("Log lines: warn", "warn!("),
    ("Log lines: info", "info!("),
    ("Log lines: debug", "debug!("),
    ("Errors", "#[error("),
    ("Reasons", "=>"),
];

/// A text with its section and its crate. A set, so that a text that moves changes nothing.
type Messages = BTreeSet<(usize, String, String)>;

/// Rule: the list has every message of the code.
pub(super) fn listed(tree: &Tree) -> Vec<Finding> {
    if tree.text(PAGE) == Some(page(tree).as_str()) {
        return Vec::new();
    }
    let wrong = "does not list the messages of the code";
    vec![Finding::new(PAGE, None, wrong, "UPDATE=1 cargo xtask tidy writes it; read what changed")]
}

/// Rule: messages have the words of the glossary.
pub(super) fn field_words(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (_, _, text) in messages(tree) {
        let lower = text.to_lowercase();
        if let Some((_, word)) = words(&lower).find(|(_, word)| PRIVATE.contains(word)) {
            let wrong = format!("`{word}` is not a word of the field: {text}");
            found.push(Finding::new(PAGE, None, wrong, "take the word of docs/glossary.md"));
        }
    }
    found
}

/// The list as a page.
pub(super) fn page(tree: &Tree) -> String {
    let all = messages(tree);
    let mut page = "# Messages\n\n\
        *Generated from the code. `UPDATE=1 cargo xtask tidy` writes it.*\n\n\
        Values in braces are filled in. `flyball explain` describes codes and reasons.\n"
        .to_owned();
    for (index, (title, _)) in KINDS.iter().enumerate() {
        let _ = write!(page, "\n## {title}\n\n| Crate | Text |\n|---|---|\n");
        for (_, name, text) in all.iter().filter(|(kind, ..)| *kind == index) {
            let _ = writeln!(page, "| {name} | {} |", text.replace('|', "\\|"));
        }
    }
    page
}

fn messages(tree: &Tree) -> Messages {
    let mut found = Messages::new();
    for (path, code) in tree.code() {
        let (Some(name), Some(text)) = (product(path), tree.text(path)) else { continue };
        let tests = test_items(code);
        for (kind, (_, mark)) in KINDS.iter().enumerate() {
            let is_other = |at: usize| {
                let inside = code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
                inside || tests.iter().any(|test| test.contains(&at))
            };
            for (at, _) in code.match_indices(mark).filter(|(at, _)| !is_other(*at)) {
                let from = at + mark.len();
                let text = match *mark {
                    "=>" if path != REASONS => None,
                    "=>" => literals(text, code, from..end_of_line(text, from)).next(),
                    "#[error(" => literals(text, code, from..closing(code, from)).next(),
                    // Fields of a log line stand before its message.
                    _ => literals(text, code, from..closing(code, from)).last(),
                };
                found.extend(text.map(|text| (kind, name.to_owned(), text)));
            }
        }
    }
    found
}

/// The crate of a file whose texts users see.
fn product(path: &str) -> Option<&str> {
    let (name, file) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let is_test = file.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "testing"));
    (!is_test && !TOOLS.contains(&name)).then_some(name)
}

/// The bracket that closes the one before `from`; literals of the code are blank.
fn closing(code: &str, from: usize) -> usize {
    let mut depth = 1;
    for (offset, byte) in code.as_bytes()[from..].iter().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return from + offset;
        }
    }
    code.len()
}

fn end_of_line(text: &str, from: usize) -> usize {
    text[from..].find('\n').map_or(text.len(), |length| from + length)
}

/// Strings of the text, where the code is blank.
fn literals(text: &str, code: &str, within: Range<usize>) -> impl Iterator<Item = String> {
    let (text, code) = (text.as_bytes(), code.as_bytes());
    let mut at = within.start;
    std::iter::from_fn(move || {
        at += text[at..within.end].iter().zip(&code[at..]).position(|two| two == (&b'"', &b' '))?;
        let start = at + 1;
        at = start;
        while at < within.end && text[at] != b'"' {
            at += if text[at] == b'\\' { 2 } else { 1 };
        }
        let literal = String::from_utf8_lossy(&text[start..at.min(within.end)]).into_owned();
        at = (at + 1).min(within.end);
        Some(unwrapped(&literal))
    })
}

/// A literal in one line, as it is printed.
fn unwrapped(literal: &str) -> String {
    let lines = literal.split("\\\n").enumerate();
    let whole: String =
        lines.map(|(line, part)| if line == 0 { part } else { part.trim_start() }).collect();
    whole.replace("\\\"", "\"").replace("\\\\", "\\").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::tree::made_up;
    use super::*;

    const CODE: &str = "#[error(\"no answer in {0} \\\n     s\")]\nstruct A;\n\
        fn a() { tracing::warn!(act = \"x\", \"it was told \\\"b\\\"\"); }\n\
        #[cfg(test)]\nmod tests {\n fn b() { warn!(\"not listed\"); }\n}\n";

    #[test]
    fn log_lines_and_errors_are_listed_without_tests_and_tools() {
        let tree = made_up(&[("crates/cli/src/a.rs", CODE), ("crates/bench/src/a.rs", CODE)]);
        let texts: Vec<_> =
            messages(&tree).into_iter().map(|(kind, _, text)| (kind, text)).collect();
        let expected = [(1, "it was told \"b\""), (4, "no answer in {0} s")];
        assert_eq!(texts, expected.map(|(kind, text)| (kind, text.to_owned())));
    }

    #[test]
    fn a_list_that_lacks_one_and_a_private_word_fail() {
        let tree = made_up(&[("crates/cli/src/a.rs", CODE)]);
        assert_eq!((listed(&tree).len(), field_words(&tree).len()), (1, 1));
        let good = CODE.replace("told", "sent");
        let page = page(&made_up(&[("crates/cli/src/a.rs", good.as_str())]));
        let tree = made_up(&[("crates/cli/src/a.rs", good.as_str()), (PAGE, page.as_str())]);
        assert_eq!((listed(&tree), field_words(&tree)), (Vec::new(), Vec::new()));
    }
}
