//! `docs/trust.md`: every finding in a line, written from the list.

use super::list::{self, Finding, Severity};
use crate::figures::{self, FigureTarget, Op};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const PAGE: &str = "docs/trust.md";

const HEAD: &str = "\
# What was found wrong, and what holds it

In November 2026 the code was read by somebody who wanted to break it. This is every finding, how it
was mended, and the tests that fail if the mend is taken out again: `cargo xtask trust mutations` takes
each out in a copy of the checkout and sees that its test fails. Generated from `trust/findings` by
`cargo xtask trust findings`; [a record](decisions/0041-trust.md) says why it is done this way.
";

const RULES_HEAD: &str = "
## Rules of later code

The same for code that was written since, from `trust/rules`: what each prevents, how, and the tests that fail if it is
taken out.

| | Without it | With it | Held by |
|---|---|---|---|
";

/// Writes the page, and counts what is open.
pub(super) fn run(root: &Path, figure: bool) -> Result<()> {
    let findings = list::read(root)?;
    let path = root.join(PAGE);
    fs::write(&path, page(&findings, &list::rules(root)?))
        .with_context(|| format!("writing {PAGE}"))?;
    let open: Vec<&Finding> = findings.iter().filter(|finding| finding.is_open()).collect();
    for finding in &open {
        println!("open: {} {}", finding.number, finding.wrong);
    }
    println!("findings: {}, {} open; {PAGE} is written", findings.len(), open.len());
    if figure {
        let target = FigureTarget { op: Op::Exactly, value: 0.0 };
        let command = "cargo xtask trust findings --figure";
        figures::write("trust.findings_open", open.len() as f64, "findings", target, command)?;
    }
    Ok(())
}

fn page(findings: &[Finding], rules: &[Finding]) -> String {
    let mut text = HEAD.to_owned();
    let severities = [Severity::Critical, Severity::High, Severity::Medium, Severity::Low];
    for severity in severities {
        let rows: Vec<&Finding> = findings.iter().filter(|one| one.severity == severity).collect();
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(
            text,
            "\n## {severity:?}\n\n| | Wrong | Mended | Held by |\n|---|---|---|---|"
        );
        for finding in rows {
            let mended = finding.mended.as_deref().unwrap_or("not yet");
            let (number, wrong) = (&finding.number, &finding.wrong);
            let _ = writeln!(text, "| {number} | {wrong} | {mended} | {} |", held_by(finding));
        }
    }
    if !rules.is_empty() {
        text.push_str(RULES_HEAD);
    }
    for rule in rules {
        let (wrong, held) = (&rule.wrong, rule.mended.as_deref().unwrap_or("not yet"));
        let _ = writeln!(text, "| {} | {wrong} | {held} | {} |", rule.number, held_by(rule));
    }
    text
}

/// The tests, each once.
fn held_by(finding: &Finding) -> String {
    let tests = finding.mutations.iter().map(|one| format!("{}: `{}`", one.package, one.test));
    let tests: BTreeSet<String> = tests.collect();
    tests.into_iter().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_the_list() {
        let root = crate::checkout::root().unwrap();
        let committed = fs::read_to_string(root.join(PAGE)).unwrap_or_default();
        let expected = page(&list::read(&root).unwrap(), &list::rules(&root).unwrap());
        assert!(committed == expected, "run: cargo xtask trust findings");
    }

    #[test]
    fn a_finding_without_a_mend_or_without_a_mutation_is_open() {
        let finding = |rest: &str| -> Finding {
            toml::from_str(&format!("number = '1'\nseverity = 'low'\nwrong = 'w'\n{rest}")).unwrap()
        };
        let mutation = "[[mutations]]\neffect = 'e'\nfile = 'f'\ntext = 'x'\nbecomes = 'y'\n\
                        package = 'core'\ntest = 'a::b'\n";
        assert!(finding("").is_open());
        assert!(finding("mended = 'm'").is_open());
        assert!(finding(mutation).is_open());
        let mended = finding(&format!("mended = 'm'\n{mutation}{mutation}"));
        assert!(!mended.is_open());
        let shown = page(std::slice::from_ref(&mended), std::slice::from_ref(&mended));
        assert_eq!(shown.matches("| 1 | w | m | core: `a::b` |").count(), 2);
    }
}
