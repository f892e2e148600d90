//! `docs/benchmarks.md` and those of the gateway, of admission and of the live cluster: sections that
//! are measured apart and kept together.
//!
//! Each section is kept in a JSON file beside its page with its date, so that a run of one of them
//! leaves the others as they were measured.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A page, and what it is made from.
#[derive(Clone, Copy)]
pub(super) struct Document {
    kept: &'static str,
    page: &'static str,
    head: &'static str,
}

pub(super) const BACKTEST: Document = Document {
    kept: "docs/benchmarks.json",
    page: "docs/benchmarks.md",
    head: "# Benchmarks of the simulator and the governor

Written by `cargo xtask bench backtest --figure`; do not edit. Each section says what was measured,
on what, and when. Figures against their targets: `cargo xtask figures`.
",
};

pub(super) const RECORDED: Document = Document {
    kept: "docs/benchmarks-recorded.json",
    page: "docs/benchmarks-recorded.md",
    head: "# The governor on recorded traffic

Written by `cargo xtask bench recorded --figure`; do not edit. Figures against their targets:
`cargo xtask figures`.
",
};

pub(super) const GATEWAY: Document = Document {
    kept: "docs/benchmarks-gateway.json",
    page: "docs/benchmarks-gateway.md",
    head: "# Benchmarks of the gateway

Written by `cargo xtask bench gateway --figure`; do not edit. Everything runs on one machine, over
loopback, in one run: the gateway with everything on, and the others at their fastest reasonable
settings (`crates/xtask/src/bench/gateway/templates`). Figures against their targets:
`cargo xtask figures`.
",
};

pub(super) const ADMISSION: Document = Document {
    kept: "docs/benchmarks-admission.json",
    page: "docs/benchmarks-admission.md",
    head: "# Benchmarks of admission

Written by `cargo xtask bench admission --figure`; do not edit. Callers, gateways and emulated
engines share one machine and its loopback; peers get the same load in the same run. Figures against
their targets: `cargo xtask figures`.
",
};

pub(super) const LIVE: Document = Document {
    kept: "docs/benchmarks-live.json",
    page: "docs/benchmarks-live.md",
    head: "# Benchmarks on a live cluster

Written by `cargo xtask bench live --figure`; do not edit. `--redraw` makes it again from the series
in `docs/live`. Figures against their targets: `cargo xtask figures`.
",
};

/// One measured section.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Section {
    pub(super) title: String,
    pub(super) date: jiff::civil::Date,
    /// Markdown.
    pub(super) text: String,
}

impl Document {
    /// Puts sections, by their place, into the page, beside those that were measured before.
    pub(super) fn keep(&self, root: &Path, measured: BTreeMap<u8, Section>) -> Result<()> {
        let Self { kept, page, .. } = self;
        let path = root.join(kept);
        let mut all: BTreeMap<u8, Section> = match fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).with_context(|| format!("reading {kept}"))?,
            Err(_) => BTreeMap::new(),
        };
        all.extend(measured);
        let json = serde_json::to_string_pretty(&all).context("writing sections as JSON")?;
        fs::write(&path, json + "\n").with_context(|| format!("writing {kept}"))?;
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
