//! Tables beside the scores.

use super::calibrate::{ACCELERATOR, ENGINE, GLOBAL, Meaning};
use super::holdouts::{FAR, Left};
use super::intervals::{Measured, Widths};
use super::picks::Ranked;
use super::ranking::{BOUNDS, Picks};
use super::scope::Scope;
use super::scored::Scored;
use crate::score::Score;
use crate::section::Table;
use std::collections::BTreeMap;

pub(super) fn all(
    scored: &Scored,
    widths: &Measured,
    coverage: &BTreeMap<String, (usize, usize)>,
    picks: &Ranked,
) -> Vec<Table> {
    vec![
        rules(scored),
        quarantined(scored),
        coefficients(scored),
        ranking(picks),
        rungs(widths),
        covered(coverage),
        worst(scored),
    ]
}

fn table(title: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Table {
    let columns = columns.iter().map(|&column| column.to_owned()).collect();
    Table { title: title.to_owned(), columns, rows }
}

fn rules(scored: &Scored) -> Table {
    let judged = &scored.judged;
    let read = judged
        .read_as
        .iter()
        .map(|(rule, rows)| vec![(*rule).to_owned(), rows.to_string(), String::new()]);
    let refused = Scope::ALL.into_iter().map(|scope| {
        let of = |sealed| judged.refused.get(&(scope, sealed)).copied().unwrap_or(0).to_string();
        vec![scope.why().to_owned(), of(false), of(true)]
    });
    let rows = read.chain(refused).collect();
    table("Rules and the rows they changed (N) or left out (S)", &["Rule", "Rows", "Sealed"], rows)
}

fn quarantined(scored: &Scored) -> Table {
    let line = |one: &super::holdouts::Quarantined| {
        vec![
            one.family.clone(),
            one.rows.to_string(),
            format!("{:+.2}", one.median),
            format!("{:.0} %", 100.0 * one.one_sided),
        ]
    };
    let title = format!("Quarantined families (median ln(predicted / measured) beyond {:.2})", FAR);
    let rows = scored.quarantine.iter().map(line).collect();
    table(&title, &["Family", "Rows", "Median", "To one side"], rows)
}

fn coefficients(scored: &Scored) -> Table {
    let line = |owner: &str, one: &Meaning, value: f64| {
        vec![
            format!("{owner}{}", one.name),
            format!("{value:.4e}"),
            format!("{} to {}", one.low, one.high),
            one.what.to_owned(),
        ]
    };
    let fitted = &scored.fitted;
    let mut rows: Vec<Vec<String>> = Vec::new();
    for one in &GLOBAL {
        rows.extend(fitted.global.get(one.name).map(|value| line("", one, *value)));
    }
    for (group, meanings) in
        [(&fitted.engine, &ENGINE[..]), (&fitted.accelerator, &ACCELERATOR[..])]
    {
        for (owner, values) in group {
            for one in meanings {
                let value = values.get(one.name);
                rows.extend(value.map(|value| line(&format!("{owner}."), one, *value)));
            }
        }
    }
    table("Coefficients", &["Name", "Value", "Bounds", "Meaning"], rows)
}

fn ranking(picks: &Ranked) -> Table {
    let line = |who: &str, picks: &Picks| {
        let mut cells = vec![who.to_owned()];
        cells.extend(picks.0.iter().map(|(right, compared)| format!("{right}/{compared}")));
        cells.push(format!("{:.1} % of {}", picks.pct(), picks.compared()));
        cells
    };
    let rows = vec![
        line("ours, by the chance of meeting the bound", &picks.ours),
        line("ours, where only the number of GPUs is chosen", &picks.ours_by_gpus),
        line("ours, by a plain threshold", &picks.threshold),
        line("roofline, by a plain threshold", &picks.roofline),
        line("ours, where aiconfigurator answers", &picks.ours_there),
        line("aiconfigurator, by a plain threshold", &picks.peer),
        line("aiconfigurator, by our chance of meeting the bound", &picks.peer_weighed),
    ];
    let bounds = BOUNDS.map(|bound| format!("{:.0} ms", 1e3 * bound));
    let mut columns = vec!["Chooser"];
    columns.extend(bounds.iter().map(String::as_str));
    columns.push("All");
    table("Layouts picked within 5 % of the best, by bound on the time per token", &columns, rows)
}

fn rungs(widths: &Measured) -> Table {
    let mut rows = Vec::new();
    let all = [("TPOT", &widths.tpot), ("saturation", &widths.saturation), ("TTFT", &widths.ttft)];
    for (name, kinds) in all {
        for (kind, Widths(rungs)) in ["dense", "MoE"].into_iter().zip(kinds) {
            let cell = |[low, high]: [f64; 2]| {
                format!("{:+.0} to {:+.0} %", 100.0 * low.exp_m1(), 100.0 * high.exp_m1())
            };
            let mut cells = vec![format!("{name}, {kind}")];
            cells.extend(rungs.map(cell));
            rows.push(cells);
        }
    }
    let columns = ["Quantity", "own data", "same GPU", "other GPU"];
    table("Intervals that hold nine in ten held-out measurements", &columns, rows)
}

fn covered(coverage: &BTreeMap<String, (usize, usize)>) -> Table {
    let share = |all: usize, inside: usize| format!("{:.1} %", 100.0 * inside as f64 / all as f64);
    let line = |(suite, (all, inside)): (&String, &(usize, usize))| {
        vec![suite.clone(), all.to_string(), share(*all, *inside)]
    };
    let mut rows: Vec<Vec<String>> = coverage.iter().map(line).collect();
    let (all, inside) = coverage.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let verdict = match 100.0 * inside as f64 / all as f64 {
        pct if pct > 93.0 => "all: wider than the 87 to 93 % that a good interval has",
        pct if pct < 87.0 => "all: narrower than the 87 to 93 % that a good interval has",
        _ => "all: within the 87 to 93 % that a good interval has",
    };
    rows.push(vec![verdict.to_owned(), all.to_string(), share(all, inside)]);
    table("Sealed rows inside their interval", &["Suite and rung", "Rows", "Inside"], rows)
}

/// Families by how many of their rows are more than 20 % off when their series is held out.
fn worst(scored: &Scored) -> Table {
    let mut families: BTreeMap<&str, (Score, usize)> = BTreeMap::new();
    let rows = scored.sorted.latency.iter().zip(scored.predicted(Left::Series));
    for (one, predicted) in rows.filter(|(one, _)| scored.clean(one)) {
        let (score, far) = families.entry(&one.row.family).or_default();
        score.add(Some(*predicted), one.row.measured);
        *far += usize::from((predicted / one.row.measured - 1.0).abs() > 0.2);
    }
    let mut listed: Vec<(&str, (Score, usize))> = families.into_iter().collect();
    listed.sort_by_key(|(_, (_, far))| std::cmp::Reverse(*far));
    let line = |(family, (score, far)): (&str, (Score, usize))| {
        vec![
            family.to_owned(),
            score.rows().to_string(),
            far.to_string(),
            format!("{:+.0} %", score.bias_pct()),
        ]
    };
    let rows = listed.into_iter().take(15).map(line).collect();
    let columns = ["Family", "Rows", "More than 20 % off", "Median error"];
    table("Families with most rows far off, series held out", &columns, rows)
}
