//! Names and opening words of files and modules.

use super::Finding;
use super::sizes::is_test_file;
use super::source::{line_of, test_items, words};
use super::tree::Tree;
use std::collections::BTreeMap;

/// Names that say nothing, and so end up holding everything.
const HEAPS: &[&str] = &["util", "utils", "common", "helpers", "misc"];

const HEAP_MEND: &str = "name it after what it holds, or move each piece to where it is used";

/// Rule: no file, folder or module is named after a heap.
pub(super) fn heap_names(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for path in tree.paths() {
        let stem_of = |part: &str| part.split('.').next().unwrap_or(part).to_owned();
        if let Some(heap) = path.split('/').map(stem_of).find(|part| HEAPS.contains(&&**part)) {
            let wrong = format!("`{heap}` says nothing about what is inside");
            found.push(Finding::new(path, None, wrong, HEAP_MEND));
        }
    }
    for (path, code) in tree.code() {
        let pairs = words(code).zip(words(code).skip(1));
        for ((at, _), (_, name)) in
            pairs.filter(|((_, word), (_, name))| *word == "mod" && HEAPS.contains(name))
        {
            let wrong = format!("module `{name}` says nothing about what is inside");
            found.push(Finding::new(path, Some(line_of(code, at)), wrong, HEAP_MEND));
        }
    }
    found
}

/// Words for which the field has others; `docs/glossary.md` says which.
const PRIVATE: &[&str] = &["seat", "seats", "lane", "lanes", "wish", "wishes", "wished"];

/// The same in names of few words outside tests; a longer name is a sentence, and may have any.
const NOT_IN_NAMES: &[&str] = &["told", "heard", "unheard", "said", "kept"];

/// The same where it is the whole name: `look_ahead` and `look_up` are words of the field.
const NOT_ALONE: &[&str] = &["look", "looks"];

/// From so many words on a name is a sentence.
const SENTENCE_WORDS: usize = 4;

/// Names of stored forms, which files and answers that exist have.
const STORED_NAMES: &[&str] = &["ToldCapacity", "kept_percent"];

/// Rule: code speaks the words of the glossary.
pub(super) fn private_words(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, code) in tree.code() {
        let tests = test_items(code);
        let is_tested =
            |at: usize| is_test_file(path) || tests.iter().any(|item| item.contains(&at));
        let is_wrong =
            |at: usize, word: &str| is_private(word) || (!is_tested(at) && is_private_name(word));
        for (at, word) in words(code).filter(|(at, word)| is_wrong(*at, word)) {
            let wrong = format!("`{word}` is not a word of the field");
            let mend = "take the word of docs/glossary.md";
            found.push(Finding::new(path, Some(line_of(code, at)), wrong, mend));
        }
    }
    found
}

/// Whether a word in it is private everywhere.
fn is_private(word: &str) -> bool {
    word.to_ascii_lowercase().split('_').any(|part| PRIVATE.contains(&part))
}

/// Whether it is a name, and no sentence, with a word that is private in names.
fn is_private_name(word: &str) -> bool {
    let parts = parts(word);
    let has = |private: &[&str]| parts.iter().any(|part| private.contains(&part.as_str()));
    !STORED_NAMES.contains(&word)
        && parts.len() < SENTENCE_WORDS
        && (has(NOT_IN_NAMES) || parts.len() == 1 && has(NOT_ALONE))
}

/// The words of a name, in lower case: `ToldCapacity` has two, as `told_capacity` has.
fn parts(word: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut before = '_';
    for letter in word.chars() {
        if letter == '_' || (letter.is_uppercase() && before.is_lowercase()) {
            parts.push(String::new());
        }
        if let Some(last) = parts.last_mut().filter(|_| letter != '_') {
            last.extend(letter.to_lowercase());
        }
        before = letter;
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Rule: a public type name has one meaning in the workspace.
pub(super) fn one_meaning(tree: &Tree) -> Vec<Finding> {
    let mut places: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    for (path, code) in tree.code() {
        if !path.starts_with("crates/") || !path.contains("/src/") {
            continue;
        }
        let all: Vec<(usize, &str)> = words(code).collect();
        for three in all.windows(3) {
            let [(at, first), (_, kind), (_, name)] = three else { continue };
            // `pub(crate)` has a bracket behind it, and is nobody else's business.
            let is_public = *first == "pub" && code[at + 3..].starts_with(' ');
            // `$type` of a macro is not a name.
            let is_name = name.starts_with(|first: char| first.is_ascii_uppercase());
            if is_public && is_name && matches!(*kind, "struct" | "enum" | "trait" | "type") {
                places.entry((*name).to_owned()).or_default().push((path, line_of(code, *at)));
            }
        }
    }
    let doubled = places.into_iter().filter(|(_, places)| places.len() > 1);
    let finding = |(name, places): (String, Vec<(&str, usize)>)| {
        let others: Vec<&str> = places[1..].iter().map(|(path, _)| *path).collect();
        let wrong = format!("`{name}` is also a type of {}", others.join(" and "));
        Finding::new(places[0].0, Some(places[0].1), wrong, "say in each name what it is of")
    };
    doubled.map(finding).collect()
}

/// Rule: each `lib.rs`, `mod.rs` and `main.rs` opens with a `//!` comment.
pub(super) fn module_docs(tree: &Tree) -> Vec<Finding> {
    let opens_a_module = |path: &str| {
        let file = path.rsplit('/').next().unwrap_or(path);
        matches!(file, "lib.rs" | "mod.rs" | "main.rs")
    };
    let silent = tree.texts().filter(|(path, text)| {
        opens_a_module(path)
            && text.lines().next().is_none_or(|first| {
                first.strip_prefix("//!").is_none_or(|words| words.trim().is_empty())
            })
    });
    let finding = |(path, _)| {
        let wrong = "does not start with a //! comment";
        let mend = "say what it does, what it does not know, and where to start reading";
        Finding::new(path, Some(1), wrong, mend)
    };
    silent.map(finding).collect()
}

/// Rule: nothing asks whether it is being simulated.
///
/// The simulator and production call the same functions; effects are absent, not switched off.
pub(super) fn simulation_switch(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, code) in tree.code() {
        let switch = |(at, word): &(usize, &str)| {
            let rest = code[at + word.len()..].trim_start().strip_prefix(':').map(str::trim_start);
            *word == "is_simulation"
                || *word == "simulation" && rest.is_some_and(|rest| rest.starts_with("bool"))
        };
        for (at, word) in words(code).filter(switch) {
            let wrong = format!("`{word}` asks whether this is a simulation");
            let mend = "pass the value that differs (now, a source, a sink) as an argument";
            found.push(Finding::new(path, Some(line_of(code, at)), wrong, mend));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tree::made_up;
    use super::*;

    #[test]
    fn a_heap_fails_as_file_folder_or_module() {
        for path in ["crates/perf/src/utils.rs", "crates/common/src/lib.rs", "docs/misc/a.md"] {
            assert_eq!(heap_names(&made_up(&[(path, "")])).len(), 1, "{path}");
        }
        let inline = made_up(&[("a.rs", "// mod util\n\npub(crate) mod helpers {}\n")]);
        assert_eq!(heap_names(&inline)[0].line, Some(3));
        let mended = [("crates/perf/src/utilisation.rs", "mod kv_cache;\n")];
        assert_eq!(heap_names(&made_up(&mended)), []);
    }

    #[test]
    fn a_private_word_fails_in_code_and_not_in_text() {
        for text in ["struct Seat;", "fn a(lane: u8) {}", "let main_lane = 1;"] {
            assert_eq!(private_words(&made_up(&[("a.rs", text)])).len(), 1, "{text}");
        }
        let mended = "// a seat\nlet plane = \"lane\";";
        assert_eq!(private_words(&made_up(&[("a.rs", mended)])), []);
    }

    #[test]
    fn names_that_tell_or_look_fail_outside_tests_and_sentences() {
        for text in [
            "let told = 1;",
            "fn a(heard_at: u8) {}",
            "enum A { Told }",
            "struct KeptBytes;",
            "const LOOK: u8 = 1;",
            "a.said()",
        ] {
            assert_eq!(private_words(&made_up(&[("a.rs", text)])).len(), 1, "{text}");
        }
        for text in [
            "fn what_is_told_is_heard() {}",
            "#[cfg(test)]\nmod tests {\n let told = 1;\n}",
            "let look_ahead = names::look_up(table);",
            "enum KindForm { ToldCapacity }",
            "let sad = folded;",
        ] {
            assert_eq!(private_words(&made_up(&[("a.rs", text)])), [], "{text}");
        }
        assert_eq!(private_words(&made_up(&[("crates/a/src/tests.rs", "let told = 1;")])), []);
    }

    #[test]
    fn two_public_types_of_one_name_fail_and_private_ones_do_not() {
        let of = |second: &str| {
            one_meaning(&made_up(&[
                ("crates/a/src/lib.rs", "pub struct Engine;\n"),
                ("crates/b/src/lib.rs", second),
            ]))
        };
        let found = of("pub enum Engine {}\n");
        assert_eq!((found.len(), found[0].line), (1, Some(1)));
        assert!(found[0].wrong.contains("crates/b/src/lib.rs"), "{}", found[0].wrong);
        for fine in [
            "pub(crate) struct Engine;",
            "struct Engine;",
            "// pub struct Engine;",
            "pub fn engine() {}",
        ] {
            assert_eq!(of(fine), [], "{fine}");
        }
    }

    #[test]
    fn a_module_without_opening_words_fails() {
        for text in ["", "//!\n", "use a::b;\n//! Late.\n"] {
            let tree = made_up(&[("crates/perf/src/lib.rs", text)]);
            assert_eq!(module_docs(&tree).len(), 1, "{text:?}");
        }
        let tree = made_up(&[("crates/perf/src/lib.rs", "//! Speed.\n"), ("src/a.rs", "")]);
        assert_eq!(module_docs(&tree), []);
    }

    #[test]
    fn a_simulation_switch_fails_and_words_about_it_do_not() {
        for text in ["struct A { simulation: bool }", "fn a(simulation :\n bool) {}"] {
            assert_eq!(simulation_switch(&made_up(&[("a.rs", text)])).len(), 1, "{text}");
        }
        let called = "//! A.\nfn a() { if world.is_simulation() {} }\n";
        assert_eq!(simulation_switch(&made_up(&[("a.rs", called)]))[0].line, Some(2));
        let words = "//! No `simulation: bool`.\nstruct A { simulation: Run }\n";
        assert_eq!(simulation_switch(&made_up(&[("a.rs", words)])), []);
    }
}
