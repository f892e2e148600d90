//! The traces, read in place beside the checkout.

use super::worlds::Source;
use anyhow::{Context, Result, bail};
use flyball_simulator::traffic::lengths;
use flyball_simulator::traffic::load::{self, Traffic};
use std::path::{Path, PathBuf};

/// The folder of public data: `FLYBALL_SHARED`, or `../shared` beside the checkout.
pub(super) fn folder(root: &Path) -> PathBuf {
    std::env::var_os("FLYBALL_SHARED").map_or_else(|| root.join("../shared"), PathBuf::from)
}

/// The same, if it has the traces.
pub(super) fn shared(root: &Path) -> Result<PathBuf> {
    let folder = folder(root);
    if folder.join("traces").is_dir() {
        return Ok(folder);
    }
    bail!(
        "no traces at {}; hint: docs/data.md says where to get them; set FLYBALL_SHARED to the folder that has `traces/`",
        folder.display()
    )
}

/// The three ServeGen models of two weeks.
pub(super) fn servegen(root: &Path) -> Result<Vec<Source>> {
    let folder = shared(root)?.join("traces");
    let table = folder.join("servegen_lengths.csv");
    let lengths = lengths::tables("servegen_lengths.csv", &load::bytes(&table)?)?;
    let path = folder.join("servegen_rates.tar.gz");
    let loaded = load::open(&path).with_context(|| format!("reading {}", path.display()))?;
    let mut sources = Vec::new();
    for part in loaded.parts {
        let name = part.model.unwrap_or_default();
        let Traffic::Rates(mut rates) = part.traffic else { continue };
        rates.mask_gaps();
        let short = name.rsplit('/').next().unwrap_or(&name).to_owned();
        if name.starts_with("language/") {
            let tokens = lengths.get(&name).with_context(|| format!("no lengths of {name}"))?;
            sources.push(Source { name: short, rates, tokens: tokens.means() });
        }
    }
    Ok(sources)
}
