//! What came of it.

use super::folds::{self, Predicted, baselines, left_out, predictions, score};
use super::misses::misses;
use super::planned;
use super::rows::{self, Point, Points};
use super::rules::RULES;
use super::unknowns::{GLOBAL, Meant, OWN, fitted};
use crate::figures::Op;
use crate::page::{Measure, measure};
use crate::score::Score;
use crate::section::{Section, Split, Table};
use anyhow::Result;
use flyball_figures::quantile::quantile;
use flyball_perf::catalog::Catalog;
use flyball_perf::coefficients::Coefficients;
use flyball_perf::training::TrainingCoefficients;
use std::collections::BTreeMap;

/// Mean error of Calculon on its eight points, with efficiencies tuned on them (arXiv 2311.04233).
const CALCULON_MEAN: f64 = 3.65;
/// So many of the worst rows are shown.
const WORST: usize = 15;

/// Scores the training model against the text of training_points.csv. The coefficients that were
/// found on all development rows come along, for `--fit` to write.
pub(crate) fn section(text: &str, catalog: &Catalog) -> Result<(Section, Coefficients)> {
    let read = rows::read(text, catalog)?;
    let development: Vec<&Point> = read.points.iter().filter(|point| !point.sealed).collect();
    let sealed: Vec<&Point> = read.points.iter().filter(|point| point.sealed).collect();
    let found = fitted(&development)?;
    let coefficients = TrainingCoefficients::of(&found)?;
    let by_suite = left_out(&development, folds::suite)?;
    let by_part = left_out(&development, folds::family)?;
    let in_sample = predictions(&development, &coefficients, "in sample");
    let mut untouched = predictions(&sealed, &coefficients, "sealed");
    untouched.iter_mut().for_each(|one| one.fold = folds::suite(one.point));

    let mut splits = vec![split("training/suite-left-out", "pooled", &by_suite, |_| true)];
    for (name, keep) in GROUPS {
        splits.push(split("training/suite-left-out", name, &by_suite, keep));
    }
    splits.extend(by_fold(&by_suite, "training/suite-left-out"));
    splits.extend(by_fold(&by_part, "training/gpu-left-out"));
    splits.push(split("training", "in-sample", &in_sample, |_| true));
    let seal = |name: &str, keep: fn(&Point) -> bool| Split {
        sealed: true,
        ..split("training/sealed", name, &untouched, keep)
    };
    splits.push(seal("pooled", |_| true));
    splits.extend(GROUPS[..2].iter().map(|(name, keep)| seal(name, *keep)));
    let suites = by_fold(&untouched, "training/sealed");
    splits.extend(suites.into_iter().map(|split| Split { sealed: true, ..split }));
    let pooled = score(by_suite.iter());
    let figures = vec![
        figure("plan.train_step_median_pct", pooled.median_pct(), 8.0),
        figure("plan.train_step_p90_pct", pooled.p90_pct(), 20.0),
    ];
    let plans = planned::errors(&development, catalog)?;
    let tables = vec![
        planned::table(&plans),
        by_gpu(&by_suite),
        intervals(&by_suite, &untouched),
        calculon(&in_sample, &by_suite),
        coefficient_table(&found),
        rule_table(&read),
        worst(&by_suite),
    ];
    let section = Section {
        title: "Training step",
        intro: INTRO.to_owned(),
        splits,
        tables,
        misses: misses(),
        figures,
    };
    Ok((section, found))
}

const INTRO: &str = "Seconds per step from shape, layout and accelerator. Each suite is predicted \
    with coefficients found without it; the form was chosen while looking at these scores, so they \
    are slightly optimistic. Sealed suites were never fitted on or chosen by; a refusal counts as \
    100 %. Per-GPU factors are not fitted: accelerators differ by catalogue facts only.";

type Group = (&'static str, fn(&Point) -> bool);

const GROUPS: [Group; 5] = [
    ("dense", |point| !point.experts),
    ("with-experts", |point| point.experts),
    ("fp8", |point| {
        point.question.as_ref().is_some_and(|a| a.run.math != flyball_perf::precision::Math::Half)
    }),
    ("pipeline", |point| point.question.as_ref().is_some_and(|a| a.layout.pipeline > 1)),
    ("from-128-gpus", |point| point.row.n_gpus >= 128.0),
];

fn split(prefix: &str, name: &str, predicted: &[Predicted<'_>], keep: fn(&Point) -> bool) -> Split {
    let chosen = || predicted.iter().filter(|one| keep(one.point));
    Split {
        key: format!("{prefix}/{name}"),
        score: score(chosen()),
        sealed: false,
        baselines: baselines(chosen()),
    }
}

fn by_fold(predicted: &[Predicted<'_>], prefix: &str) -> Vec<Split> {
    let mut folds: BTreeMap<&'static str, Vec<&Predicted<'_>>> = BTreeMap::new();
    for one in predicted {
        folds.entry(one.fold).or_default().push(one);
    }
    folds
        .into_iter()
        .map(|(fold, own)| Split {
            key: format!("{prefix}/{fold}"),
            score: score(own.iter().copied()),
            sealed: false,
            baselines: baselines(own.iter().copied()),
        })
        .collect()
}

fn figure(name: &'static str, value: f64, target: f64) -> Measure {
    measure(name, value, "%", Op::AtMost, target)
}

fn words<const N: usize>(columns: [&str; N]) -> Vec<String> {
    columns.map(str::to_owned).to_vec()
}

fn score_cells(score: &Score) -> [String; 5] {
    [
        score.rows().to_string(),
        format!("{:.1}", score.median_pct()),
        format!("{:.1}", score.p90_pct()),
        format!("{:.1}", score.mean_pct()),
        format!("{:+.1}", score.bias_pct()),
    ]
}

fn by_gpu(predicted: &[Predicted<'_>]) -> Table {
    let mut groups: BTreeMap<&str, Score> = BTreeMap::new();
    for one in predicted {
        let group = groups.entry(&one.point.row.hardware).or_default();
        group.add(one.seconds, one.point.seconds);
    }
    let row = |(name, score): (&str, Score)| {
        std::iter::once(name.to_owned()).chain(score_cells(&score)).collect()
    };
    Table {
        title: "By accelerator, suite left out".to_owned(),
        columns: words(["accelerator", "rows", "median %", "p90 %", "mean %", "bias %"]),
        rows: groups.into_iter().map(row).collect(),
    }
}

/// The interval that the left-out errors give, and how many sealed rows lie inside.
fn intervals(predicted: &[Predicted<'_>], sealed: &[Predicted<'_>]) -> Table {
    let log = |one: &Predicted<'_>| one.seconds.map(|seconds| (one.point.seconds / seconds).ln());
    let row = |(name, keep): &Group| {
        let mut logs: Vec<f64> =
            predicted.iter().filter(|one| keep(one.point)).filter_map(log).collect();
        let (low, high) = (quantile(&mut logs, 0.05), quantile(&mut logs, 0.95));
        let untouched: Vec<f64> =
            sealed.iter().filter(|one| keep(one.point)).filter_map(log).collect();
        let inside = untouched.iter().filter(|log| (low..=high).contains(log)).count();
        vec![
            (*name).to_owned(),
            format!("{low:+.3} to {high:+.3}"),
            format!("{inside} of {}", untouched.len()),
        ]
    };
    Table {
        title: "90 % of ln(measured / predicted), suite left out".to_owned(),
        columns: words(["rows", "interval", "sealed rows inside"]),
        rows: GROUPS[..2].iter().map(row).collect(),
    }
}

fn calculon(in_sample: &[Predicted<'_>], left_out: &[Predicted<'_>]) -> Table {
    let own = |predicted: &[Predicted<'_>]| {
        let rows = predicted.iter().filter(|one| one.point.row.suite == "megatron-seqpar-a100");
        format!("{:.2}", score(rows).mean_pct())
    };
    let row = |name: &str, mean: String| vec![name.to_owned(), mean];
    Table {
        title: "The eight points that Calculon publishes".to_owned(),
        columns: words(["who", "mean error %"]),
        rows: vec![
            row("Calculon, tuned on these eight", format!("{CALCULON_MEAN:.2}")),
            row("this model, the eight among all rows of the fit", own(in_sample)),
            row("this model, their suite left out", own(left_out)),
        ],
    }
}

fn coefficient_table(found: &Coefficients) -> Table {
    let row = |owner: &str, meant: &Meant, value: f64| {
        vec![
            owner.to_owned(),
            meant.name.to_owned(),
            format!("{value:.4e}"),
            format!("{} to {}", meant.low, meant.high),
            meant.meaning.to_owned(),
        ]
    };
    let mut rows: Vec<Vec<String>> = Vec::new();
    for meant in &GLOBAL {
        rows.extend(found.global.get(meant.name).map(|value| row("all", meant, *value)));
    }
    for (meant, _) in &OWN {
        for (owner, values) in &found.engine {
            rows.extend(values.get(meant.name).map(|value| row(owner, meant, *value)));
        }
    }
    Table {
        title: "Coefficients".to_owned(),
        columns: words(["of", "name", "value", "bounds", "meaning"]),
        rows,
    }
}

fn rule_table(read: &Points) -> Table {
    let row = |(rule, text): &(&'static str, &'static str)| {
        let touched = read.touched.0.get(rule).copied().unwrap_or(0);
        vec![(*rule).to_owned(), touched.to_string(), (*text).to_owned()]
    };
    Table {
        title: "Rules for what rows leave out".to_owned(),
        columns: words(["rule", "rows", "what stands in"]),
        rows: RULES.iter().map(row).collect(),
    }
}

fn worst(predicted: &[Predicted<'_>]) -> Table {
    let error = |one: &Predicted<'_>| {
        one.seconds.map_or(-1.0, |seconds| seconds / one.point.seconds - 1.0) * 100.0
    };
    let mut sorted: Vec<&Predicted<'_>> = predicted.iter().collect();
    sorted.sort_by(|a, b| error(b).abs().total_cmp(&error(a).abs()));
    let row = |one: &&Predicted<'_>| {
        let layout = one
            .point
            .question
            .as_ref()
            .map_or_else(String::new, |question| question.layout.to_string());
        vec![
            one.point.row.id.clone(),
            one.point.row.suite.clone(),
            one.point.row.model.clone(),
            one.point.row.hardware.clone(),
            layout,
            format!("{:+.1}", error(one)),
        ]
    };
    Table {
        title: "Worst rows, suite left out".to_owned(),
        columns: words(["row", "suite", "model", "accelerator", "layout", "error %"]),
        rows: sorted.iter().take(WORST).map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> String {
        let root = crate::checkout::root().unwrap();
        std::fs::read_to_string(root.join("validation/training_points.csv")).unwrap()
    }

    #[test]
    fn the_shipped_coefficients_are_the_ones_that_the_rows_give() {
        let read = rows::read(&text(), &Catalog::builtin()).unwrap();
        let development: Vec<&Point> = read.points.iter().filter(|point| !point.sealed).collect();
        let found = fitted(&development).unwrap();
        let shipped = Coefficients::training();
        assert_eq!(found.named().count(), shipped.named().count());
        for ((name, found), (_, shipped)) in found.named().zip(shipped.named()) {
            assert!((found / shipped - 1.0).abs() < 1e-3, "{name}: {found}, shipped {shipped}");
        }
    }

    #[test]
    fn scoring_reaches_what_the_form_was_chosen_for() {
        let (section, found) = section(&text(), &Catalog::builtin()).unwrap();
        for split in &section.splits {
            let [rows, median, p90, mean, bias] = score_cells(&split.score);
            let base: Vec<String> = split
                .baselines
                .iter()
                .map(|(name, score)| format!("{name} {:.1}", score.median_pct()))
                .collect();
            println!(
                "{:60} {rows:>4} {median:>6} {p90:>6} {mean:>6} {bias:>6}  {}",
                split.key,
                base.join(", ")
            );
        }
        for table in &section.tables {
            println!("\n{}\n{}", table.title, table.columns.join(" | "));
            table.rows.iter().for_each(|row| println!("{}", row.join(" | ")));
        }
        println!("{}", toml::to_string(&found).unwrap());
        for figure in &section.figures {
            println!("{} {:.2} ({})", figure.name, figure.value, figure.target);
            assert!(figure.target.is_met(figure.value), "{} {}", figure.name, figure.value);
        }
    }
}
