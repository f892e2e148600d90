//! `docs/benchmarks.md`: sections that are measured apart and kept together.
//!
//! Each section is kept in `docs/benchmarks.json` with its date, so that a run of one of them
//! leaves the others as they were measured.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const KEPT: &str = "docs/benchmarks.json";
const PAGE: &str = "docs/benchmarks.md";

const HEAD: &str = "# Benchmarks of the simulator and the governor

Written by `cargo xtask bench backtest --figure`; do not edit. Each section says what was measured,
on what, and when. Figures against their targets: `cargo xtask figures`.
";

/// One measured section.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Section {
    pub(super) title: String,
    pub(super) date: jiff::civil::Date,
    /// Markdown.
    pub(super) text: String,
}

/// Puts sections, by their place, into the page, beside those that were measured before.
pub(super) fn keep(root: &Path, measured: BTreeMap<u8, Section>) -> Result<()> {
    let path = root.join(KEPT);
    let mut all: BTreeMap<u8, Section> = match fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text).with_context(|| format!("reading {KEPT}"))?,
        Err(_) => BTreeMap::new(),
    };
    all.extend(measured);
    let json = serde_json::to_string_pretty(&all).context("writing sections as JSON")?;
    fs::write(&path, json + "\n").with_context(|| format!("writing {KEPT}"))?;
    fs::write(root.join(PAGE), page(&all)).with_context(|| format!("writing {PAGE}"))
}

fn page(sections: &BTreeMap<u8, Section>) -> String {
    let mut page = HEAD.to_owned();
    for section in sections.values() {
        let Section { title, date, text } = section;
        page += &format!("\n## {title}\n\nMeasured {date}.\n\n{}\n", text.trim());
    }
    page
}
