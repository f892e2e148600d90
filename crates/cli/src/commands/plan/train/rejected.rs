//! What is out, and why.

use flyball_perf::search::train::{TrainPlan, TrainQuestion};
use schemars::JsonSchema;
use serde::Serialize;

use crate::output::document::{Column, Row, Table};

/// More than a screenful of reasons hides the ones that matter; the JSON has all of them.
const SHOWN: usize = 10;

/// Layouts of one accelerator rejected for one kind of reason.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RejectedClassView {
    accelerator: String,
    /// Other layouts of this accelerator work; only these are rejected.
    part_is_possible: bool,
    /// One word.
    reason: &'static str,
    /// How many layouts.
    count: usize,
    /// The one that came closest.
    example: String,
    because: String,
}

/// Every class, closest first.
pub(super) fn views(question: &TrainQuestion<'_>, plan: &TrainPlan) -> Vec<RejectedClassView> {
    let mut possible = vec![false; question.parts.len()];
    for choice in &plan.ranked {
        possible[choice.part] = true;
    }
    plan.rejected
        .iter()
        .map(|class| RejectedClassView {
            accelerator: question.parts[class.part].accelerator.id.to_string(),
            part_is_possible: possible[class.part],
            reason: class.reason.word(),
            count: class.count,
            example: class.layout.to_string(),
            because: class.reason.to_string(),
        })
        .collect()
}

/// Of parts that are out, what came closest; of the others, the links that are traps.
pub(super) fn tables(classes: &[RejectedClassView]) -> Vec<Table> {
    let mut seen: Vec<&str> = Vec::new();
    let shown: Vec<&RejectedClassView> = classes
        .iter()
        .filter(|class| {
            let first = !seen.contains(&class.accelerator.as_str());
            seen.push(&class.accelerator);
            if class.part_is_possible { class.reason == "link" } else { first }
        })
        .take(SHOWN)
        .collect();
    [("REJECTED", false), ("AVOID", true)]
        .into_iter()
        .map(|(title, possible)| {
            let of = shown.iter().filter(|class| class.part_is_possible == possible);
            table(title, of.copied())
        })
        .filter(|table| !table.rows.is_empty())
        .collect()
}

fn table<'a>(title: &'static str, classes: impl Iterator<Item = &'a RejectedClassView>) -> Table {
    let mut table = Table::new(vec![
        Column::left(title),
        Column::right("LAYOUTS"),
        Column::left("BECAUSE"),
        Column::left("FOR-EXAMPLE"),
    ]);
    table.rows.extend(classes.map(|class| {
        Row::new([
            class.accelerator.clone(),
            class.count.to_string(),
            class.because.clone(),
            class.example.clone(),
        ])
    }));
    table
}
