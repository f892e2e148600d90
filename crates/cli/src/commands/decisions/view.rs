//! Past decisions for people.

use flyball_resources::admin_api::Entry;
use jiff::Timestamp;

use crate::moment::clock_of;
use crate::output::document::{Block, Column, Row, Table};
use crate::output::{Document, plural};

pub(super) fn view(decisions: &[Entry], asked_at: &str) -> Document {
    let now = asked_at.parse().unwrap_or(Timestamp::MAX);
    let mut document = Document::new();
    if decisions.is_empty() {
        document.push(Block::Line("no decision that fits is remembered".to_owned()));
        return document;
    }
    document.push(past(decisions, now, true));
    document.push(Block::Gap);
    let models: std::collections::BTreeSet<&str> =
        decisions.iter().map(|entry| entry.model.as_str()).collect();
    document.push(Block::Line(format!(
        "{} of {}   more: flyball why NAME --at TIME",
        plural(decisions.len(), "decision"),
        plural(models.len(), "model"),
    )));
    document
}

/// A table of decisions, with their models if they are of several.
pub(crate) fn past(decisions: &[Entry], now: Timestamp, named: bool) -> Block {
    let mut columns = vec![Column::left("TIME")];
    if named {
        columns.push(Column::left("MODEL"));
    }
    columns.extend([
        Column::right("FROM"),
        Column::right("TO"),
        Column::right("READY"),
        Column::right("HPA"),
        Column::left("REASON"),
        Column::left("BOUND"),
        Column::left("MODE"),
    ]);
    let count = |count: Option<i32>| count.map_or("–".to_owned(), |count| count.to_string());
    let row = |entry: &Entry| {
        let mut cells = vec![clock_of(&entry.receipt.at, now)];
        if named {
            cells.push(entry.model.clone());
        }
        cells.extend([
            count(entry.from),
            count(entry.to),
            count(entry.ready),
            count(entry.receipt.hpa_would_want),
            entry.receipt.reason.clone(),
            entry.receipt.bound.clone(),
            entry.mode.clone(),
        ]);
        Row::new(cells)
    };
    Block::Table(Table { rows: decisions.iter().map(row).collect(), ..Table::new(columns) })
}
