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
use std::fmt::Write as _;

/// What the report says about serving, and the two files that a fit writes, by their name in
/// `catalog/coefficients`.
pub(super) fn section() -> Result<(Section, [(&'static str, String); 2])> {
    let scored = Scored::new()?;
    let intervals = intervals::text(&scored, &intervals::measure(&scored));
    let files = [("serving.toml", text(&scored.fitted)), ("intervals.toml", intervals)];
    Ok((report::section(&scored)?, files))
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
