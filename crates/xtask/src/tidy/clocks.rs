//! Tests and the clock.

use super::Finding;
use super::tree::Tree;

/// Rule: nothing is asserted to be quicker than some time.
///
/// How fast a machine is belongs to the machine: beside a build, what takes a millisecond takes a second,
/// and a test that was right is red. A bound that only ends a test which hangs has a name, and is a minute
/// or more.
pub(super) fn quicker_than(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, code) in tree.code() {
        for (number, line) in code.lines().enumerate() {
            let asserts = ["assert!(", "ensure!("].iter().any(|word| line.contains(word));
            let bounds =
                ["< Duration::from_", "<= Duration::from_"].iter().any(|b| line.contains(b));
            let elapsed = line.contains(".elapsed() <") && !line.contains("LONG");
            if asserts && (bounds || elapsed) {
                let wrong = "asserts that something is quick, which depends on the machine";
                let mend = "assert a count, an order or paused time, or give a bound against hanging \
                            the name LONG; speed belongs to `cargo xtask bench`";
                found.push(Finding::new(path, Some(number + 1), wrong, mend));
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
    fn a_bound_on_time_fails_and_one_against_hanging_does_not() {
        for text in [
            "assert!(began.elapsed() < quick);",
            "assert!(took >= a && took < Duration::from_secs(6), \"late\");",
            "ensure!(slowest <= Duration::from_millis(250), \"slow\");",
        ] {
            let tree = made_up(&[("crates/gateway/tests/it/a.rs", &format!("\n{text}\n"))]);
            assert_eq!(quicker_than(&tree)[0].line, Some(2), "{text}");
        }
        for text in [
            "assert!(began.elapsed() < LONG);",
            "assert!(took >= Duration::from_secs(5));",
            "while began.elapsed() < Duration::from_secs(2) {}",
            "// assert!(took < Duration::from_secs(1))",
        ] {
            assert_eq!(quicker_than(&made_up(&[("a.rs", text)])), [], "{text}");
        }
    }
}
