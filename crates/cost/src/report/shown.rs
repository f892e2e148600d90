//! A report as a table, as CSV and as JSON.

use super::ask::{CostReport, CostSums};
use crate::civil::time_text;
use crate::uses::{GpuUse, Spent};
use flyball_core::units::{GpuMicros, Micros};
use serde_json::{Map, Value, json as value};
use std::sync::Arc;

/// GPU-hours with two decimals, rounded down.
pub(super) fn hours(time: GpuMicros) -> String {
    let hundredths = time.get() / (Micros::HOUR.get() / 100);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Dollars with cents; what has no price is said, and nothing is shown as zero for want of one.
pub(super) fn dollars(sums: &CostSums) -> String {
    money_of(Spent { money: sums.money(), ..sums.spent.paid() })
}

pub(super) fn money_of(spent: Spent) -> String {
    match (spent.unpriced.is_zero(), spent.money.is_zero()) {
        (true, _) => format!("{:.2}", spent.money),
        (false, true) => "unknown".to_owned(),
        (false, false) => {
            format!("{:.2} + unknown for {} GPU-hours", spent.money, hours(spent.unpriced))
        }
    }
}

/// Where a row has nothing in a dimension.
const NOBODY: &str = "(none)";

fn named(name: Option<&Arc<str>>) -> &str {
    name.map_or(NOBODY, |name| name)
}

/// For people. The last line says what the numbers are of.
pub fn table(report: &CostReport) -> String {
    let by = &report.question.by;
    let mut lines =
        vec![by.iter().map(|dimension| dimension.name().to_uppercase()).collect::<Vec<_>>()];
    let heads = [
        "GPU-HOURS",
        "ALLOCATED",
        "USEFUL",
        "IDLE",
        "REQUESTS",
        "INPUT",
        "CACHED",
        "OUTPUT",
        "COST USD",
    ];
    lines[0].extend(heads.map(str::to_owned));
    for group in &report.groups {
        let mut cells: Vec<String> =
            group.names.iter().map(|name| named(name.as_ref()).to_owned()).collect();
        cells.extend(numbers(&group.sums));
        lines.push(cells);
    }
    let mut cells = vec!["total".to_owned()];
    cells.resize(by.len().max(1), String::new());
    cells.truncate(by.len());
    cells.extend(numbers(&report.total));
    lines.push(cells);
    let shown = match report.groups.len() == report.group_count {
        true => format!("{} groups", report.group_count),
        false => format!(
            "groups {} to {} of {}; the total is of all",
            report.question.offset + 1,
            report.question.offset + report.groups.len(),
            report.group_count
        ),
    };
    let (from, to) = (time_text(report.question.from), time_text(report.question.to));
    format!("{}{shown}, {from} to {to} (UTC)\n", aligned(&lines, by.len()))
}

fn numbers(sums: &CostSums) -> Vec<String> {
    let served = &sums.served;
    let times = [sums.spent.paid(), sums.spent.allocated(), sums.spent.useful(), sums.spent.idle()];
    let counts = [served.requests, served.input, served.cached_input, served.output];
    let cells =
        times.iter().map(|spent| hours(spent.time)).chain(counts.map(|count| count.to_string()));
    cells.chain([dollars(sums)]).collect()
}

/// Columns of equal width: names to the left, numbers to the right, the last as it is.
pub(super) fn aligned(lines: &[Vec<String>], names: usize) -> String {
    let count = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        lines
            .iter()
            .filter_map(|line| line.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let mut text = String::new();
    for line in lines {
        let mut shown = String::new();
        for (column, cell) in line.iter().enumerate() {
            let width = width(column);
            shown.push_str(&match column {
                _ if column < names || column + 1 == count => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            shown.push_str("  ");
        }
        text.push_str(shown.trim_end());
        text.push('\n');
    }
    text
}

/// One line a group, exact amounts, a column for each use; the total is not among them.
pub fn csv(report: &CostReport) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let by = &report.question.by;
    let mut head: Vec<String> = by.iter().map(|dimension| dimension.name().to_owned()).collect();
    let counts =
        ["requests", "missed_requests", "input_tokens", "cached_input_tokens", "output_tokens"];
    head.extend(counts.map(str::to_owned));
    head.extend(["gpu_seconds", "cost_usd", "host_usd", "unpriced_gpu_seconds"].map(str::to_owned));
    for use_ in GpuUse::ALL {
        let name = use_.name().replace('-', "_");
        head.extend([format!("{name}_gpu_seconds"), format!("{name}_usd")]);
    }
    // Into memory, so that nothing can fail but memory itself.
    let mut write = |cells: Vec<String>| writer.write_record(&cells).unwrap_or_default();
    write(head);
    for group in &report.groups {
        let sums = &group.sums;
        let paid = sums.spent.paid();
        let mut cells: Vec<String> =
            group.names.iter().map(|name| name.as_deref().unwrap_or_default().to_owned()).collect();
        let served = &sums.served;
        cells.extend(
            [served.requests, served.missed, served.input, served.cached_input, served.output]
                .map(|count| count.to_string()),
        );
        cells.extend([
            seconds(paid.time),
            exact(Spent { money: sums.money(), ..paid }).unwrap_or_default(),
            sums.host.to_string(),
            seconds(paid.unpriced),
        ]);
        for use_ in GpuUse::ALL {
            let spent = sums.spent.on(use_);
            cells.extend([seconds(spent.time), exact(spent).unwrap_or_default()]);
        }
        write(cells);
    }
    writer
        .into_inner()
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default()
}

/// GPU-seconds with all their decimals.
fn seconds(time: GpuMicros) -> String {
    format!("{}.{:06}", time.get() / 1_000_000, time.get() % 1_000_000)
}

/// The known money; nothing where none is known of time that costs.
fn exact(spent: Spent) -> Option<String> {
    (spent.unpriced.is_zero() || !spent.money.is_zero()).then(|| spent.money.to_string())
}

/// For programs: amounts are texts, because they are exact and a number in JSON is not.
pub fn json(report: &CostReport) -> Value {
    let by: Vec<&str> = report.question.by.iter().map(|dimension| dimension.name()).collect();
    let group = |group: &super::CostGroup| {
        let names: Map<String, Value> = by
            .iter()
            .zip(&group.names)
            .map(|(dimension, name)| {
                ((*dimension).to_owned(), name.as_deref().map_or(Value::Null, Value::from))
            })
            .collect();
        let mut all = sums(&group.sums);
        all.insert("group".to_owned(), Value::Object(names));
        Value::Object(all)
    };
    value!({
        "by": by,
        "from": time_text(report.question.from),
        "to": time_text(report.question.to),
        "timeZone": "UTC",
        "currency": "USD",
        "offset": report.question.offset,
        "groupCount": report.group_count,
        "groups": report.groups.iter().map(group).collect::<Vec<_>>(),
        "total": sums(&report.total),
    })
}

fn sums(sums: &CostSums) -> Map<String, Value> {
    let served = &sums.served;
    let spent = |spent: Spent| {
        value!({
            "gpuSeconds": seconds(spent.time),
            "cost": exact(spent),
            "unpricedGpuSeconds": seconds(spent.unpriced),
        })
    };
    let uses: Map<String, Value> =
        sums.spent.iter().map(|(use_, one)| (use_.name().to_owned(), spent(one))).collect();
    let all = value!({
        "requests": served.requests,
        "missedRequests": served.missed,
        "inputTokens": served.input,
        "cachedInputTokens": served.cached_input,
        "outputTokens": served.output,
        "cost": exact(Spent { money: sums.money(), ..sums.spent.paid() }),
        "hostCost": sums.host.to_string(),
        "paid": spent(sums.spent.paid()),
        "allocated": spent(sums.spent.allocated()),
        "useful": spent(sums.spent.useful()),
        "uses": uses,
    });
    match all {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
