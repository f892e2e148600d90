//! The findings and their mutations, as they stand in `trust/findings`, and rules of later code in `trust/rules`.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::fs;
use std::path::Path;

const FOLDER: &str = "trust/findings";
/// Rules of code that came after the reading: what each prevents, and mutations that take it out.
const RULES: &str = "trust/rules";

/// Something that was found wrong.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Finding {
    /// Its number, and a letter where one finding has several ways to happen.
    pub(super) number: String,
    pub(super) severity: Severity,
    /// What was wrong, in a sentence.
    pub(super) wrong: String,
    /// How it was mended, in a sentence. Absent while it is open.
    #[serde(default)]
    pub(super) mended: Option<String>,
    /// Whether only words were wrong, which no test can hold.
    #[serde(default)]
    pub(super) only_words: bool,
    /// How to take the mend out again.
    #[serde(default)]
    pub(super) mutations: Vec<Mutation>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    Critical,
    High,
    Medium,
    Low,
}

/// A change that takes a mend out, and the test that must fail then.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mutation {
    /// What the code does with it.
    pub(super) effect: String,
    /// The file, from the root.
    pub(super) file: String,
    /// What stands there exactly once.
    pub(super) text: String,
    /// What is put in its place.
    pub(super) becomes: String,
    /// The folder of the crate whose test fails.
    pub(super) package: String,
    #[serde(default)]
    pub(super) target: TestTarget,
    /// The test, by its whole path.
    pub(super) test: String,
}

/// Which of a package's test programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum TestTarget {
    #[default]
    Lib,
    It,
    Bins,
}

impl Finding {
    /// Whether it is mended, and whether its return would be noticed.
    pub(super) fn is_open(&self) -> bool {
        self.mended.is_none() || (self.mutations.is_empty() && !self.only_words)
    }
}

impl Mutation {
    /// The text of its file with the mend taken out. The text must stand there exactly once: a list
    /// that no longer fits the code would take nothing out and prove nothing.
    pub(super) fn applied(&self, text: &str) -> Result<String> {
        let times = text.matches(&self.text).count();
        ensure!(
            times == 1,
            "{}: this stands there {times} times and not once:\n{}\n\nhint: bring the mutation in \
             {FOLDER} up to date with the code",
            self.file,
            self.text
        );
        ensure!(self.text != self.becomes, "{}: the mutation changes nothing", self.file);
        Ok(text.replacen(&self.text, &self.becomes, 1))
    }
}

/// All findings, in order of their numbers.
pub(super) fn read(root: &Path) -> Result<Vec<Finding>> {
    of(&root.join(FOLDER))
}

/// The rules of later code, each in the form of a finding: what would be wrong without it.
pub(super) fn rules(root: &Path) -> Result<Vec<Finding>> {
    of(&root.join(RULES))
}

fn of(folder: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let finding: Finding =
            toml::from_str(&text).with_context(|| format!("in {}", path.display()))?;
        findings.push(finding);
    }
    findings.sort_by_key(|finding| place(&finding.number));
    Ok(findings)
}

/// 6a comes after 5 and before 10.
fn place(number: &str) -> (u32, String) {
    let digits = number.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
    (digits.parse().unwrap_or(u32::MAX), number[digits.len()..].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn mutation(text: &str) -> Mutation {
        let words = "effect = 'e'\nfile = 'f'\nbecomes = 'b'\npackage = 'core'\ntest = 'a::b'";
        toml::from_str(&format!("text = '{text}'\n{words}")).unwrap()
    }

    #[test]
    fn a_text_that_does_not_stand_there_exactly_once_is_an_error() {
        assert_eq!(mutation("one").applied("of one kind").unwrap(), "of b kind");
        assert!(mutation("one").applied("none, or one").is_err());
        assert!(mutation("two").applied("none").is_err());
        assert!(mutation("b").applied("b").is_err(), "it changes nothing");
    }

    #[test]
    fn letters_sort_within_their_number() {
        let mut all = ["10", "6b", "6a", "5", "7"];
        all.sort_by_key(|number| place(number));
        assert_eq!(all, ["5", "6a", "6b", "7", "10"]);
    }

    #[test]
    fn every_finding_of_the_reading_is_on_the_list_once() {
        let root = crate::checkout::root().unwrap();
        let numbers: Vec<String> =
            read(&root).unwrap().into_iter().map(|finding| finding.number).collect();
        let four = ["6a", "6b", "6c", "6d"].map(str::to_owned);
        let expected =
            (1..=5).map(|n| n.to_string()).chain(four).chain((7..=27).map(|n| n.to_string()));
        assert_eq!(numbers, expected.collect::<Vec<_>>());
    }

    #[test]
    fn every_mutation_fits_the_code_and_names_a_test_that_exists() {
        let root = crate::checkout::root().unwrap();
        let mut tests = BTreeSet::new();
        for finding in read(&root).unwrap().into_iter().chain(rules(&root).unwrap()) {
            for mutation in &finding.mutations {
                let text = fs::read_to_string(root.join(&mutation.file));
                let text = text.unwrap_or_else(|error| panic!("{}: {error}", mutation.file));
                if let Err(error) = mutation.applied(&text) {
                    panic!("finding {}: {error:#}", finding.number);
                }
                tests.insert((mutation.package.clone(), function(&mutation.test)));
            }
        }
        for (package, function) in tests {
            let found = sources(&root.join("crates").join(&package))
                .iter()
                .any(|text| text.contains(&format!("fn {function}(")));
            assert!(found, "no test {function} in crates/{package}");
        }
    }

    /// The last part of a test's path.
    fn function(test: &str) -> String {
        test.rsplit("::").next().unwrap_or(test).to_owned()
    }

    fn sources(folder: &Path) -> Vec<String> {
        let mut texts = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                texts.extend(sources(&path));
            } else if path.extension().is_some_and(|end| end == "rs") {
                texts.push(fs::read_to_string(path).unwrap());
            }
        }
        texts
    }
}
