//! A run may not be worse than the one that was committed.

use super::section::Section;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Points of error by which a split may get worse: less than rounding and refitting move it.
const TOLERANCE: f64 = 0.5;

#[derive(Debug, Default, Serialize, Deserialize)]
struct Committed {
    splits: BTreeMap<String, Numbers>,
    /// Figures by name. Times are not held: they belong to the machine.
    #[serde(default)]
    figures: BTreeMap<String, f64>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Numbers {
    rows: usize,
    answered: usize,
    median_pct: f64,
    p90_pct: f64,
}

pub(super) fn write(path: &Path, sections: &[Section]) -> Result<()> {
    let text = serde_json::to_string_pretty(&numbers(sections)).context("scores as JSON")?;
    fs::write(path, text + "\n").with_context(|| format!("writing {}", path.display()))
}

/// Fails and names every split that got worse.
pub(super) fn check(path: &Path, sections: &[Section]) -> Result<()> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let committed: Committed = serde_json::from_str(&text).context("docs/accuracy.json")?;
    let worse = compare(&committed, &numbers(sections));
    if worse.is_empty() {
        println!("accuracy: {} splits, none worse than committed", committed.splits.len());
        return Ok(());
    }
    bail!(
        "the model got worse:\n  {}\n\nhint: mend it; if the new scores are right, run cargo xtask \
         accuracy and commit docs/accuracy.md and docs/accuracy.json with the reason",
        worse.join("\n  ")
    )
}

fn compare(committed: &Committed, now: &Committed) -> Vec<String> {
    let mut worse = Vec::new();
    for (key, before) in &committed.splits {
        let Some(after) = now.splits.get(key) else {
            worse.push(format!("{key} is not scored any more"));
            continue;
        };
        if after.rows < before.rows || after.answered < before.answered {
            worse.push(format!(
                "{key}: answers {} of {} rows, before {} of {}",
                after.answered, after.rows, before.answered, before.rows
            ));
        }
        for (what, was, is) in [
            ("median", before.median_pct, after.median_pct),
            ("p90", before.p90_pct, after.p90_pct),
        ] {
            if is > was + TOLERANCE {
                worse.push(format!("{key}: {what} {is:.1} %, before {was:.1} %"));
            }
        }
    }
    for (name, was) in &committed.figures {
        match now.figures.get(name) {
            None => worse.push(format!("{name} is not measured any more")),
            Some(is) => {
                // More is better of these two; of all others less is.
                let more =
                    ["plan.ranking_within5_pct", "plan.answered_pct"].contains(&name.as_str());
                let lost = if more { was - is } else { is - was };
                // Too many or too few inside: both are worse than the promised nine in ten.
                let coverage = name == "plan.interval_coverage_pct";
                let outside =
                    coverage && !(87.0..=93.0).contains(is) && (87.0..=93.0).contains(was);
                if outside || !coverage && lost > TOLERANCE {
                    worse.push(format!("{name}: {is:.2}, before {was:.2}"));
                }
            }
        }
    }
    worse
}

fn numbers(sections: &[Section]) -> Committed {
    let hundredths = |value: f64| (value * 100.0).round() / 100.0;
    let splits = sections.iter().flat_map(|section| &section.splits).map(|split| {
        let numbers = Numbers {
            rows: split.score.rows(),
            answered: split.score.rows() - split.score.refused(),
            median_pct: hundredths(split.score.median_pct()),
            p90_pct: hundredths(split.score.p90_pct()),
        };
        (split.key.clone(), numbers)
    });
    let figures = sections.iter().flat_map(|section| &section.figures);
    let held = figures.filter(|figure| !["ns", "ms"].contains(&figure.unit));
    Committed {
        splits: splits.collect(),
        figures: held.map(|figure| (figure.name.to_owned(), hundredths(figure.value))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(rows: usize, answered: usize, median_pct: f64) -> Committed {
        let numbers = Numbers { rows, answered, median_pct, p90_pct: 20.0 };
        let splits = [("speed/all".to_owned(), numbers)].into();
        Committed { splits, figures: BTreeMap::new() }
    }

    #[test]
    fn half_a_point_is_noise_and_more_is_worse() {
        assert!(compare(&one(10, 10, 7.0), &one(10, 10, 7.4)).is_empty());
        let worse = compare(&one(10, 10, 7.0), &one(10, 10, 7.6));
        assert_eq!(worse, ["speed/all: median 7.6 %, before 7.0 %"]);
    }

    #[test]
    fn figures_are_held_the_right_way_round() {
        let of = |name: &str, value: f64| Committed {
            splits: BTreeMap::new(),
            figures: [(name.to_owned(), value)].into(),
        };
        let worse =
            |name: &str, was: f64, is: f64| !compare(&of(name, was), &of(name, is)).is_empty();
        assert!(worse("plan.false_fits", 0.0, 1.0));
        assert!(worse("plan.ranking_within5_pct", 87.0, 86.0));
        assert!(!worse("plan.ranking_within5_pct", 87.0, 95.0));
        assert!(worse("plan.interval_coverage_pct", 91.0, 97.0));
        assert!(!worse("plan.interval_coverage_pct", 91.0, 88.0));
    }

    #[test]
    fn answering_less_is_worse_even_if_what_is_answered_is_better() {
        let worse = compare(&one(10, 10, 7.0), &one(10, 8, 3.0));
        assert_eq!(worse, ["speed/all: answers 8 of 10 rows, before 10 of 10"]);
        let gone = compare(&one(10, 10, 7.0), &Committed::default());
        assert_eq!(gone, ["speed/all is not scored any more"]);
    }
}
