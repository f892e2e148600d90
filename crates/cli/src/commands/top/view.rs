//! The tables that people see, in a pipe and on the live screen.

use super::answer::{Caller, Engine, Minute, Model, Top};
use crate::output::document::{Block, Cell, Column, Row, Table, Tone};
use crate::output::{Answer, Detail, Document, Exit, plural};

/// Names are cut so that a table stays within its width: a model may be called as a path.
const NAME: usize = 28;

impl Answer for Top {
    const KIND: &'static str = "Top";

    fn view(&self, detail: Detail) -> Document {
        document(self, detail)
    }

    /// What one of them did not tell is not known.
    fn exit(&self) -> Exit {
        if self.silent().next().is_some() { Exit::Unknown } else { Exit::Yes }
    }
}

fn document(top: &Top, detail: Detail) -> Document {
    let mut document = Document::new();
    let quiet = detail == Detail::Problems;
    document.push(Block::Line(headline(top)));
    let tables = [models(top, quiet), engines(top, quiet)];
    let callers = [slowest(top), heaviest(top)].into_iter().filter(|_| !quiet);
    for table in tables.into_iter().chain(callers).filter(|table| !table.rows.is_empty()) {
        document.push(Block::Gap);
        document.push(Block::Table(table));
    }
    document.push(Block::Gap);
    document.push(Block::Notes(notes(top)));
    document.push(Block::Line(verdict(top)));
    document
}

/// `21:20:00Z   2 gateways   12 requests under way   34 connections`.
pub(super) fn headline(top: &Top) -> String {
    let answered = top.gateways.len() - top.silent().count();
    let time = top.time.split_once('T').map_or(top.time.as_str(), |(_, time)| time);
    // Parts of a second are of no use to anybody.
    let time = time.split('.').next().unwrap_or(time).trim_end_matches('Z');
    format!(
        "{time}Z   {}   {} in flight   {}",
        plural(answered, "gateway"),
        plural(top.requests, "request"),
        plural(top.connections, "connection")
    )
}

/// What is wrong beside the tables.
pub(super) fn notes(top: &Top) -> Vec<String> {
    let mut notes: Vec<String> =
        top.silent().map(|(url, problem)| format!("! {url} is not in here: {problem}")).collect();
    for model in top.models.iter().filter(|model| model.held > 0) {
        let expected = match model.wake_seconds {
            Some(seconds) => format!("expected in {}", time(Some(seconds))),
            None => "expected at an unknown time".to_owned(),
        };
        let held = plural(model.held, "request");
        notes.push(format!("{} has no engine and holds {held}; one is {expected}", model.name));
    }
    for model in &top.models {
        if let Some(trouble) = &model.trouble {
            notes.push(format!("! {}: {trouble}", model.name));
        }
    }
    if !top.troubles.is_empty() {
        let words = top.troubles.iter().map(|trouble| match trouble.count {
            1 => trouble.what.replace('-', " "),
            count => format!("{} {count}", trouble.what.replace('-', " ")),
        });
        notes.push(format!("! gateway: {}", words.collect::<Vec<_>>().join(", ")));
    }
    if !top.refusals.is_empty() {
        let words = top.refusals.iter().map(|one| format!("{} {}", one.reason, one.count));
        let words = words.collect::<Vec<_>>().join(", ");
        notes.push(format!("! not answered in the last minute: {words}"));
    }
    notes
}

fn verdict(top: &Top) -> String {
    let bad = top.models.iter().filter(|model| model.needs_attention()).count();
    let count =
        format!("{}, {}", plural(top.models.len(), "model"), plural(top.engines.len(), "engine"));
    let trouble =
        !top.troubles.is_empty() || !top.refusals.is_empty() || top.silent().next().is_some();
    match bad {
        0 if trouble => format!("{count}, a gateway needs attention"),
        0 => format!("{count}, none needs attention"),
        1 => format!("{count}, 1 model needs attention"),
        _ => format!("{count}, {bad} models need attention"),
    }
}

pub(super) fn models(top: &Top, quiet: bool) -> Table {
    let mut table = Table::new(vec![
        Column::left("MODEL"),
        Column::right("READY"),
        Column::right("REQ/S"),
        Column::right("QUEUE"),
        Column::right("HELD"),
        Column::right("OLDEST"),
        Column::right("TTFT50"),
        Column::right("TTFT95"),
        Column::right("ITL50"),
        Column::right("ITL95"),
        Column::right("HIT"),
        Column::right("FAIL"),
    ]);
    let shown = top.models.iter().filter(|model| !quiet || model.needs_attention());
    table.rows = shown.map(model).collect();
    table
}

fn model(model: &Model) -> Row {
    let Model { open_engines, engines, queued, held, last_minute, .. } = model;
    let none_open = *open_engines == 0 && *engines > 0;
    let ready = Cell::toned(format!("{open_engines}/{engines}"), bad_if(none_open));
    let waits = *queued + *held > 0;
    let oldest = if waits { time(Some(model.oldest_wait_seconds)) } else { String::new() };
    let [first_p50, first_p95, token_p50, token_p95] = times(last_minute);
    marked(
        model.needs_attention(),
        [
            name(&model.name).into(),
            ready,
            format!("{:.1}", model.requests_per_second).into(),
            queued.to_string().into(),
            held.to_string().into(),
            oldest.into(),
            first_p50,
            first_p95,
            token_p50,
            token_p95,
            share(last_minute.prefix_hit_rate).into(),
            failures(last_minute),
        ],
    )
}

pub(super) fn engines(top: &Top, quiet: bool) -> Table {
    let mut table = Table::new(vec![
        Column::left("ENGINE"),
        Column::left("MODEL"),
        Column::left("STATE"),
        Column::right("OURS"),
        Column::right("RUNNING"),
        Column::right("WAITING"),
        Column::right("KV"),
    ]);
    let shown = top.engines.iter().filter(|engine| !quiet || engine.needs_attention());
    table.rows = shown.map(engine).collect();
    table
}

fn engine(engine: &Engine) -> Row {
    let count = |count: Option<u32>| count.map(|n| n.to_string()).unwrap_or_default();
    marked(
        engine.needs_attention(),
        [
            name(&engine.name).into(),
            name(&engine.model).into(),
            Cell::toned(engine.state.clone(), bad_if(engine.needs_attention())),
            engine.in_flight.to_string().into(),
            count(engine.running).into(),
            count(engine.waiting).into(),
            share(engine.kv_used).into(),
        ],
    )
}

pub(super) fn slowest(top: &Top) -> Table {
    callers("SLOWEST-CALLER", &top.slowest_callers)
}

pub(super) fn heaviest(top: &Top) -> Table {
    callers("HEAVIEST-CALLER", &top.heaviest_callers)
}

fn callers(title: &str, callers: &[Caller]) -> Table {
    let mut table = Table::new(vec![
        Column::left(title).at_least(15),
        Column::right("REQ/S"),
        Column::right("IN/MIN"),
        Column::right("OUT/MIN"),
        Column::right("HIT"),
        Column::right("TTFT50"),
        Column::right("TTFT95"),
        Column::right("FAIL"),
    ]);
    table.rows = callers.iter().map(caller).collect();
    table
}

fn caller(caller: &Caller) -> Row {
    let minute = &caller.last_minute;
    let [first_p50, first_p95, ..] = times(minute);
    marked(
        minute.refused + minute.failed > 0,
        [
            name(&caller.name).into(),
            format!("{:.1}", caller.requests_per_second).into(),
            large(minute.input_tokens).into(),
            large(minute.output_tokens).into(),
            share(minute.prefix_hit_rate).into(),
            first_p50,
            first_p95,
            failures(minute),
        ],
    )
}

fn marked<const N: usize>(needs_attention: bool, cells: [Cell; N]) -> Row {
    Row { mark: needs_attention.then_some('!'), ..Row::new(cells) }
}

fn failures(minute: &Minute) -> Cell {
    let count = minute.refused + minute.failed;
    Cell::toned(count.to_string(), bad_if(count > 0))
}

fn bad_if(bad: bool) -> Tone {
    if bad { Tone::Bad } else { Tone::Plain }
}

fn times(minute: &Minute) -> [Cell; 4] {
    [
        minute.first_token_p50_seconds,
        minute.first_token_p95_seconds,
        minute.per_token_p50_seconds,
        minute.per_token_p95_seconds,
    ]
    .map(|seconds| time(seconds).into())
}

/// `640us`, `38ms`, `1.9s`, `3m`: without a blank, so that a column can be cut out.
fn time(seconds: Option<f64>) -> String {
    let Some(seconds) = seconds else { return String::new() };
    match seconds {
        s if s < 0.001 => format!("{:.0}us", s * 1e6),
        s if s < 1.0 => format!("{:.0}ms", s * 1e3),
        s if s < 60.0 => format!("{s:.1}s"),
        s => format!("{:.0}m", s / 60.0),
    }
}

fn share(share: Option<f64>) -> String {
    share.map(|share| format!("{:.0}%", share * 100.0)).unwrap_or_default()
}

/// `950`, `12.3k`, `4.5M`.
fn large(count: u64) -> String {
    match count as f64 {
        n if n < 1e3 => count.to_string(),
        n if n < 1e6 => format!("{:.1}k", n / 1e3),
        n => format!("{:.1}M", n / 1e6),
    }
}

/// The end of a name tells two apart: `namespace/deployment-7f9c-x2x4q`.
fn name(name: &str) -> String {
    let letters = name.chars().count();
    if letters <= NAME {
        return name.to_owned();
    }
    let (head, tail) = (NAME / 2 - 1, NAME - NAME / 2 - 1);
    let start: String = name.chars().take(head).collect();
    let end: String = name.chars().skip(letters - tail).collect();
    format!("{start}..{end}")
}

#[cfg(test)]
#[test]
fn numbers_are_short_and_names_keep_both_ends() {
    let times = [0.00064, 0.038, 1.94, 190.0].map(|seconds| time(Some(seconds)));
    assert_eq!(times, ["640us", "38ms", "1.9s", "3m"]);
    assert_eq!([950, 12_345, 4_500_000].map(large), ["950", "12.3k", "4.5M"]);
    let long = name("serving/qwen-coder-30b-7f9c-x2x4q");
    assert_eq!((long.as_str(), long.chars().count()), ("serving/qwen-..0b-7f9c-x2x4q", NAME));
    assert_eq!(name("qwen"), "qwen");
}
