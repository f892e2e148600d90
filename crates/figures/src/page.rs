//! Pages of measured sections: `docs/benchmarks.md` and its like.
//!
//! Sections are measured apart and kept together: each is in a JSON file beside its page with its date, so that a run of
//! one of them leaves the others as they were measured. A section brings its figures, which are printed, written where
//! that is asked for, and held against what is on record.

#![expect(clippy::print_stdout, reason = "what was measured is for who runs it")]

use crate::day::Day;
use crate::figures::{self, FigureTarget, Op};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A page, and what it is made from.
#[derive(Clone, Copy, Debug)]
pub struct Document {
    /// The file that the sections are stored in, from the root.
    pub store: &'static str,
    /// The page itself, from the root.
    pub page: &'static str,
    /// Heading and first paragraph.
    pub head: &'static str,
}

/// What a section measured.
#[derive(Debug)]
pub struct Measured {
    /// Markdown.
    pub text: String,
    /// What is written down of it.
    pub figures: Vec<Measure>,
}

/// One figure that was measured.
#[derive(Clone, Debug)]
pub struct Measure {
    /// Dotted, as its file is called.
    pub name: &'static str,
    /// What came out.
    pub value: f64,
    /// Of the value and of its target.
    pub unit: &'static str,
    /// What was promised.
    pub target: FigureTarget,
}

/// One figure that should be at most, or at least, its target.
pub const fn measure(
    name: &'static str,
    value: f64,
    unit: &'static str,
    op: Op,
    target: f64,
) -> Measure {
    Measure { name, value, unit, target: FigureTarget { op, value: target } }
}

/// A page of sections, and the command that measures them.
#[derive(Debug)]
pub struct MeasuredPage {
    document: Document,
    command: String,
    /// Write figures and page.
    writes: bool,
    sections: BTreeMap<u8, Section>,
    worse: Vec<String>,
}

/// One measured section.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    title: String,
    date: Day,
    /// Markdown.
    text: String,
}

impl MeasuredPage {
    /// A page without sections yet. It writes figures and itself only if that is asked for.
    pub fn new(document: Document, command: &str, writes: bool) -> Self {
        let command = command.to_owned();
        Self { document, command, writes, sections: BTreeMap::new(), worse: Vec::new() }
    }

    /// Prints a section, and keeps it and its figures.
    pub fn add(&mut self, root: &Path, place: u8, title: &str, measured: Measured) -> Result<()> {
        println!("## {title}\n\n{}", measured.text);
        for one in &measured.figures {
            let verdict = if one.target.is_met(one.value) { "met" } else { "missed" };
            println!("{} = {} {} ({verdict})", one.name, one.value, one.unit);
            if self.writes {
                one.write(&self.command)?;
            }
            self.worse.extend(one.is_worse_than_recorded(root));
        }
        let title = title.to_owned();
        self.sections.insert(place, Section { title, date: Day::today(), text: measured.text });
        Ok(())
    }

    /// Writes the page; with `strict` a figure that became worse is an error.
    pub fn finish(self, root: &Path, strict: bool) -> Result<()> {
        if self.writes {
            self.document.keep(root, self.sections)?;
        }
        let worse = self.worse;
        ensure!(!strict || worse.is_empty(), "worse than on record:\n{}", worse.join("\n"));
        Ok(())
    }
}

impl Measure {
    /// Writes it to `docs/figures`.
    pub fn write(&self, command: &str) -> Result<()> {
        figures::write(self.name, self.value, self.unit, self.target, command).map(drop)
    }

    /// A sentence if the target is missed by more than what is on record, with a twentieth of
    /// tolerance.
    fn is_worse_than_recorded(&self, root: &Path) -> Option<String> {
        if self.target.is_met(self.value) {
            return None;
        }
        let recorded = figures::recorded(root, self.name)?;
        let worse = match self.target.op {
            Op::AtMost => self.value > 1.05 * recorded,
            Op::AtLeast => self.value < 0.95 * recorded,
            Op::Exactly => (self.value - recorded).abs() > f64::EPSILON,
        };
        worse.then(|| format!("{}: {} {}, on record {recorded}", self.name, self.value, self.unit))
    }
}

impl Document {
    /// Puts sections, by their place, into the page, beside those that were measured before.
    fn keep(&self, root: &Path, measured: BTreeMap<u8, Section>) -> Result<()> {
        let Self { store, page, .. } = self;
        let path = root.join(store);
        let mut all: BTreeMap<u8, Section> = match fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).with_context(|| format!("reading {store}"))?,
            Err(_) => BTreeMap::new(),
        };
        all.extend(measured);
        let json = serde_json::to_string_pretty(&all).context("writing sections as JSON")?;
        fs::write(&path, json + "\n").with_context(|| format!("writing {store}"))?;
        fs::write(root.join(page), self.text(&all)).with_context(|| format!("writing {page}"))
    }

    fn text(&self, sections: &BTreeMap<u8, Section>) -> String {
        let mut page = self.head.to_owned();
        for section in sections.values() {
            let Section { title, date, text } = section;
            page += &format!("\n## {title}\n\nMeasured {date}.\n\n{}\n", text.trim());
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: Document = Document { store: "a.json", page: "a.md", head: "# A\n" };

    fn section(day: &str, text: &str) -> Section {
        Section { title: text.to_owned(), date: day.parse().unwrap(), text: text.to_owned() }
    }

    #[test]
    fn a_section_that_is_measured_again_leaves_the_others() {
        let root = tempfile::tempdir().unwrap();
        let first = [(0, section("2026-01-02", "one")), (1, section("2026-01-02", "two"))];
        DOCUMENT.keep(root.path(), first.into()).unwrap();
        DOCUMENT.keep(root.path(), [(1, section("2026-03-04", "new"))].into()).unwrap();
        let page = fs::read_to_string(root.path().join("a.md")).unwrap();
        let expected = "# A\n\n## one\n\nMeasured 2026-01-02.\n\none\n\n## new\n\nMeasured 2026-03-04.\n\nnew\n";
        assert_eq!(page, expected);
    }

    #[test]
    fn only_what_misses_its_target_by_more_than_is_on_record_is_worse() {
        let root = tempfile::tempdir().unwrap();
        let figure = r#"{"name":"a","value":20,"unit":"s","target":{"op":"<=","value":10},
            "command":"c","date":"2026-01-02"}"#;
        let folder = root.path().join("docs/figures");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("a.json"), figure).unwrap();
        let worse = |name, value| {
            measure(name, value, "s", Op::AtMost, 10.0).is_worse_than_recorded(root.path())
        };
        assert_eq!(worse("a", 22.0), Some("a: 22 s, on record 20".to_owned()));
        assert_eq!(worse("a", 20.5), None, "a twentieth is noise");
        assert_eq!(worse("a", 9.0), None);
        assert_eq!(worse("b", 99.0), None, "nothing is on record");
    }
}
