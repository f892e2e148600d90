//! Figures that stories measure. `cargo xtask e2e --figure` names the file and records what is in it.

use anyhow::{Context, Result};
use std::io::Write as _;

/// Where figures are noted, if somebody asked for them.
const FIGURES_FILE: &str = "FLYBALL_E2E_FIGURES";

/// Whether somebody asked for figures, for which a story runs its long form.
pub fn is_long() -> bool {
    std::env::var_os(FIGURES_FILE).is_some()
}

/// Notes a figure: its name, value, unit and target, such as `=100`. Nothing happens unless somebody
/// asked for figures.
pub fn figure(name: &str, value: f64, unit: &str, target: &str) -> Result<()> {
    let Ok(path) = std::env::var(FIGURES_FILE) else { return Ok(()) };
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.create(true).append(true).open(&path).context("opening the figures")?;
    let line = serde_json::json!({ "name": name, "value": value, "unit": unit, "target": target });
    Ok(writeln!(file, "{line}")?)
}
