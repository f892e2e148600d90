//! Names and opening words of files and modules.

use super::Finding;
use super::source::{code_only, line_of, words};
use super::tree::Tree;

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
    for (path, text) in tree.texts_ending(".rs") {
        let code = code_only(text);
        let pairs = words(&code).zip(words(&code).skip(1));
        for ((at, _), (_, name)) in
            pairs.filter(|((_, word), (_, name))| *word == "mod" && HEAPS.contains(name))
        {
            let wrong = format!("module `{name}` says nothing about what is inside");
            found.push(Finding::new(path, Some(line_of(&code, at)), wrong, HEAP_MEND));
        }
    }
    found
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
    for (path, text) in tree.texts_ending(".rs") {
        let code = code_only(text);
        let switch = |(at, word): &(usize, &str)| {
            let rest = code[at + word.len()..].trim_start().strip_prefix(':').map(str::trim_start);
            *word == "is_simulation"
                || *word == "simulation" && rest.is_some_and(|rest| rest.starts_with("bool"))
        };
        for (at, word) in words(&code).filter(switch) {
            let wrong = format!("`{word}` asks whether this is a simulation");
            let mend = "pass the value that differs (now, a source, a sink) as an argument";
            found.push(Finding::new(path, Some(line_of(&code, at)), wrong, mend));
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
