//! Serving: how well the step model predicts published latency and throughput.
//!
//! The modules are the steps in order: `rows` reads, `rules` (with `layouts` and `formats`) says what
//! a row means or why it is left out, `predict` (with `room`) asks the model, `calibrate` finds its
//! coefficients, `holdouts` predicts rows from others, `scored` keeps it all, `ranking` and
//! `intervals` ask what a planner's user would, and `report` writes it down.

mod baselines;
mod calibrate;
mod formats;
mod holdouts;
mod intervals;
mod layouts;
mod misses;
mod picks;
mod predict;
mod ranking;
mod report;
mod room;
mod rows;
mod rules;
mod scope;
mod scored;
mod tables;
#[cfg(test)]
mod tests;

use super::section::Section;
use anyhow::Result;
use flyball_perf::coefficients::Coefficients;
use scored::Scored;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What came of scoring.
pub(super) struct ServingScore {
    pub(super) section: Section,
    /// Files of the catalogue as this fit would write them.
    pub(super) files: [(&'static str, String); 2],
    /// What the coefficients that ship differ in.
    pub(super) unlike: Option<String>,
}

/// What the report says about serving, and the two files that a fit writes, by their name in
/// `catalog/coefficients`.
pub(super) fn section() -> Result<ServingScore> {
    let scored = Scored::new()?;
    let intervals = intervals::text(&scored, &intervals::measure(&scored));
    let files = [("serving.toml", text(&scored.fitted)), ("intervals.toml", intervals)];
    let section = report::section(&scored)?;
    Ok(ServingScore { section, files, unlike: unlike_shipped(&scored.fitted) })
}

/// What the coefficients that ship differ in from those that were fitted just now.
fn unlike_shipped(fitted: &Coefficients) -> Option<String> {
    let shipped: BTreeMap<String, f64> = Coefficients::serving().named().collect();
    let fitted: BTreeMap<String, f64> = fitted.named().collect();
    if !shipped.keys().eq(fitted.keys()) {
        return Some("the coefficients that ship have other names than the fitted ones".to_owned());
    }
    // A fit stops a little earlier or later on another machine.
    let (name, fitted) =
        fitted.iter().find(|(name, fitted)| (shipped[*name] / *fitted - 1.0).abs() >= 0.01)?;
    Some(format!("{name} ships as {} and is fitted as {fitted}", shipped[name]))
}

/// Coefficients as they stand in the catalogue: six digits, because the seventh is noise.
fn text(coefficients: &Coefficients) -> String {
    let mut text = String::from(
        "# Written by `cargo xtask accuracy --fit`. What each one means stands in\n\
         # crates/perf/src/serving/factors.rs.\n[global]\n",
    );
    let line = |text: &mut String, name: &str, value: f64| {
        let _ = if value < 0.01 {
            writeln!(text, "{name} = {value:.5e}")
        } else {
            writeln!(text, "{name} = {value:.5}")
        };
    };
    for (name, value) in &coefficients.global {
        line(&mut text, name, *value);
    }
    for (kind, owners) in
        [("engine", &coefficients.engine), ("accelerator", &coefficients.accelerator)]
    {
        for (owner, values) in owners {
            let _ = writeln!(text, "\n[{kind}.{owner}]");
            for (name, value) in values {
                line(&mut text, name, *value);
            }
        }
    }
    text
}
