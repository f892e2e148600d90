//! How long files and functions may be.
//!
//! Written size rules that nothing checks do not hold. The limits are for production code: tests
//! may be as long as the cases they list, within reason.

use super::Finding;
use super::source::{functions, line_of, test_items};
use super::tree::Tree;

const FILE_LINES: usize = 600;
const MAIN_LINES: usize = 40;
const FUNCTION_LINES: usize = 80;
const TEST_FUNCTION_LINES: usize = 150;

/// A file that may be longer than the rest, and why.
struct Exception {
    path: &'static str,
    lines: usize,
    reason: &'static str,
}

/// Keep this short; each entry is a debt that everybody sees.
const EXCEPTIONS: &[Exception] = &[];

/// Rule: a file has at most 600 production lines, a `main.rs` at most 40.
pub(super) fn files(tree: &Tree) -> Vec<Finding> {
    files_with(tree, EXCEPTIONS)
}

fn files_with(tree: &Tree, exceptions: &[Exception]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, code) in tree.code() {
        if is_test_file(path) {
            continue;
        }
        let lines = production_lines(code);
        let is_main = path.ends_with("/main.rs");
        let usual = if is_main { MAIN_LINES } else { FILE_LINES };
        let exception = exceptions.iter().find(|exception| exception.path == path);
        let limit = exception.map_or(usual, |exception| exception.lines);
        if lines > limit {
            let wrong = format!("{lines} production lines, more than {limit}");
            let mend = if is_main {
                "leave only start-up in main.rs and move the rest into modules"
            } else {
                "split it where a reader would look for the parts"
            };
            found.push(Finding::new(path, None, wrong, mend));
        }
        if let Some(exception) = exception.filter(|_| lines <= usual) {
            let wrong = format!("an exception is no longer needed ({})", exception.reason);
            let mend = "remove it from EXCEPTIONS in crates/xtask/src/tidy/sizes.rs";
            found.push(Finding::new(path, None, wrong, mend));
        }
    }
    found
}

/// Rule: a function has at most 80 lines, in tests at most 150.
pub(super) fn functions_in_limits(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, code) in tree.code() {
        let tests = test_items(code);
        for function in functions(code) {
            let first = line_of(code, function.bytes.start);
            let lines = line_of(code, function.bytes.end) - first + 1;
            let in_tests = is_test_file(path)
                || tests.iter().any(|range| range.contains(&function.bytes.start));
            let limit = if in_tests { TEST_FUNCTION_LINES } else { FUNCTION_LINES };
            if lines > limit {
                let wrong = format!("fn {} has {lines} lines, more than {limit}", function.name);
                let mend = "give its steps names and make each a function";
                found.push(Finding::new(path, Some(first), wrong, mend));
            }
        }
    }
    found
}

/// Unit tests live in `tests.rs` or an inline module, integration tests under `tests/`.
pub(super) fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/") || path.starts_with("tests/")
}

fn production_lines(code: &str) -> usize {
    let span =
        |range: &std::ops::Range<usize>| line_of(code, range.end) - line_of(code, range.start) + 1;
    let in_tests: usize = test_items(code).iter().map(span).sum();
    code.lines().count().saturating_sub(in_tests)
}

#[cfg(test)]
mod tests {
    use super::super::tree::made_up;
    use super::*;

    const LIB: &str = "crates/perf/src/lib.rs";

    fn with(path: &str, text: &str) -> Tree {
        made_up(&[(path, text)])
    }

    #[test]
    fn a_long_file_fails_and_its_tests_do_not_count() {
        let found = files(&with(LIB, &"const A: u8 = 0;\n".repeat(601)));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].wrong, "601 production lines, more than 600");
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "// case\n".repeat(500));
        let mended = format!("{}{tests}", "const A: u8 = 0;\n".repeat(600));
        assert_eq!(files(&with(LIB, &mended)), []);
        assert_eq!(files(&with("crates/perf/src/tests.rs", &"// x\n".repeat(900))), []);
    }

    #[test]
    fn a_main_that_does_more_than_start_fails() {
        let path = "crates/cli/src/main.rs";
        assert_eq!(files(&with(path, &"\n".repeat(41))).len(), 1);
        assert_eq!(files(&with(path, &"\n".repeat(40))), []);
    }

    #[test]
    fn an_exception_holds_until_it_is_not_needed() {
        let exceptions = [Exception { path: LIB, lines: 700, reason: "a table of 650 rows" }];
        assert_eq!(files_with(&with(LIB, &"\n".repeat(650)), &exceptions), []);
        assert_eq!(files_with(&with(LIB, &"\n".repeat(701)), &exceptions).len(), 1);
        let short = files_with(&with(LIB, &"\n".repeat(10)), &exceptions);
        assert!(short[0].wrong.contains("no longer needed"));
    }

    #[test]
    fn a_long_function_fails_and_a_test_may_be_longer() {
        let body = |lines: usize| format!("fn long() {{\n{}}}\n", "    step();\n".repeat(lines));
        let found = functions_in_limits(&with(LIB, &format!("//! Doc.\n{}", body(79))));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, Some(2));
        assert_eq!(found[0].wrong, "fn long has 81 lines, more than 80");
        assert_eq!(functions_in_limits(&with(LIB, &body(78))), []);
        let test = |lines| format!("#[cfg(test)]\nmod tests {{\n{}}}\n", body(lines));
        assert_eq!(functions_in_limits(&with(LIB, &test(148))), []);
        assert_eq!(functions_in_limits(&with(LIB, &test(149))).len(), 1);
    }
}
