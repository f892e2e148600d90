//! Who builds what decisions are made on.

use super::Finding;
use super::source::{line_of, words};
use super::tree::Tree;

/// Where a snapshot may be built: by the estimator, and by those who test what it is read by.
const BUILDERS: &[&str] = &["crates/estimator/src/", "crates/core/src/testing/"];

/// Rule: nothing but the estimator builds a `Snapshot`.
///
/// The simulator and the operator each built their own once, from rates that were counted in different ways, and a
/// live run differed from its replay by 15 % for a reason that nobody found.
pub(super) fn built(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    let sources = tree.code().filter(|(path, _)| {
        !path.contains("/tests/") && !BUILDERS.iter().any(|builder| path.starts_with(builder))
    });
    for (path, code) in sources {
        for (at, _) in words(code).filter(|(_, word)| *word == "Snapshot") {
            let before = code[..at].trim_end();
            let names_a_type =
                ["->", " for", "struct", "impl"].iter().any(|word| before.ends_with(word));
            let opens = code[at + "Snapshot".len()..].trim_start().starts_with('{');
            if opens && !names_a_type {
                let wrong = "builds a `Snapshot`";
                let mend = "give readings to `flyball_estimator::Estimator`, so that a replay sees what production sees";
                found.push(Finding::new(path, Some(line_of(code, at)), wrong, mend));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tree::made_up;
    use super::*;

    #[test]
    fn a_snapshot_that_is_built_elsewhere_fails() {
        let text = "fn a() -> Snapshot {\n    let seen = Snapshot { taken_at };\n}\n";
        let tree = made_up(&[("crates/operator/src/observe/snapshot.rs", text)]);
        assert_eq!(built(&tree).iter().map(|one| one.line).collect::<Vec<_>>(), [Some(2)]);
        for path in ["crates/estimator/src/lib.rs", "crates/governor/tests/it/worlds.rs"] {
            assert_eq!(built(&made_up(&[(path, text)])), [], "{path}");
        }
    }

    #[test]
    fn words_about_a_snapshot_do_not() {
        let text = "struct Snapshot {}\nimpl Snapshot {}\nimpl A for Snapshot {}\n// Snapshot {}\n";
        assert_eq!(built(&made_up(&[("crates/core/src/snapshot/mod.rs", text)])), []);
    }
}
