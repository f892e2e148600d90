//! Whether a file of FOCUS rows keeps the standard, column by column.

use super::columns::{FeatureLevel, FocusColumn, OwnColumn};
use super::format;
use super::row::FocusRow;
use super::rules::ROW_RULES;
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// How many violations are listed; all are counted.
const LISTED: usize = 100;
/// A bill of a large company has ten million rows a month; a file beyond that is cut by whoever writes it.
const MOST_COLUMNS: usize = 1_000;

/// One rule that is broken in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FocusViolation {
    /// The line in the file; absent where the header is wrong.
    pub line: Option<u64>,
    /// A column of the standard, or the name that stands in the header.
    pub column: String,
    pub says: String,
}

/// What was found in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FocusFindings {
    pub rows: u64,
    /// The first of them.
    pub violations: Vec<FocusViolation>,
    pub count: u64,
    /// Columns of the standard with at least one.
    pub wrong_columns: BTreeSet<FocusColumn>,
}

impl FocusFindings {
    /// Columns of the standard without a violation, of a hundred; nothing can be said of a file without rows.
    pub fn columns_ok_pct(&self) -> Option<f64> {
        let all = FocusColumn::ALL.len();
        (self.rows > 0).then(|| 100.0 * (all - self.wrong_columns.len()) as f64 / all as f64)
    }

    fn add(
        &mut self,
        line: Option<u64>,
        column: Option<FocusColumn>,
        name: &str,
        says: impl Into<String>,
    ) {
        self.count += 1;
        self.wrong_columns.extend(column);
        if self.violations.len() < LISTED {
            self.violations.push(FocusViolation {
                line,
                column: name.to_owned(),
                says: says.into(),
            });
        }
    }
}

/// A file that cannot be read as a table.
#[derive(Debug, Error)]
pub enum FocusFileError {
    #[error("line {line}: {what}")]
    Broken { line: u64, what: String },
    #[error("{0} columns; at most {MOST_COLUMNS} are read")]
    TooWide(usize),
}

/// Checks a CSV file: its header, every cell and every rule between cells.
pub fn validate(text: &str) -> Result<FocusFindings, FocusFileError> {
    let mut reader = csv::ReaderBuilder::new().flexible(false).from_reader(text.as_bytes());
    let header = reader.headers().map_err(broken)?.clone();
    if header.len() > MOST_COLUMNS {
        return Err(FocusFileError::TooWide(header.len()));
    }
    let mut findings = FocusFindings::default();
    let places = places(&header, &mut findings);
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(broken)? {
        findings.rows += 1;
        let line = record.position().map_or(0, csv::Position::line);
        let mut row = FocusRow::default();
        for (column, place) in &places {
            row.set(*column, record.get(*place).unwrap_or_default());
        }
        check_row(&row, line, &mut findings);
    }
    Ok(findings)
}

fn broken(error: csv::Error) -> FocusFileError {
    let line = error.position().map_or(0, csv::Position::line);
    FocusFileError::Broken { line, what: error.to_string() }
}

/// Where each column of the standard stands.
fn places(
    header: &csv::StringRecord,
    findings: &mut FocusFindings,
) -> BTreeMap<FocusColumn, usize> {
    let mut places = BTreeMap::new();
    let mut last = None;
    let mut seen = BTreeSet::new();
    for (place, name) in header.iter().enumerate() {
        let column = FocusColumn::named(name);
        if !seen.insert(name) {
            findings.add(None, column, name, "comes twice");
        }
        match column {
            None if name.starts_with("x_") => {}
            None => findings.add(
                None,
                None,
                name,
                "is no column of the standard and does not begin with x_",
            ),
            Some(column) => {
                if last.is_some_and(|last| column < last) {
                    findings.add(None, Some(column), name, "is out of order");
                }
                last = last.max(Some(column));
                places.entry(column).or_insert(place);
            }
        }
    }
    for column in FocusColumn::ALL {
        let facts = column.facts();
        if facts.level == FeatureLevel::Mandatory && !places.contains_key(column) {
            findings.add(None, Some(*column), facts.name, "is mandatory and missing");
        }
    }
    places
}

fn check_row(row: &FocusRow, line: u64, findings: &mut FocusFindings) {
    for column in FocusColumn::ALL {
        let facts = column.facts();
        match row.get(*column) {
            None if facts.may_be_null => {}
            None => findings.add(Some(line), Some(*column), facts.name, "must not be null"),
            Some(text) => {
                if let Some(says) = format::wrong(facts.format, text) {
                    findings.add(Some(line), Some(*column), facts.name, says);
                }
            }
        }
    }
    for rule in ROW_RULES.iter().filter(|rule| !(rule.holds)(row)) {
        findings.add(Some(line), Some(rule.column), rule.column.name(), rule.says);
    }
}

/// Rows as a CSV file with all columns of the standard in its order, and ours behind them.
pub fn csv_text(rows: &[FocusRow]) -> String {
    let names = FocusColumn::ALL.iter().map(|column| column.name());
    let mut text = String::new();
    line(&mut text, names.chain(OwnColumn::ALL.iter().map(|column| column.name())));
    for row in rows {
        let cells = FocusColumn::ALL.iter().map(|column| row.get(*column).unwrap_or_default());
        line(
            &mut text,
            cells.chain(OwnColumn::ALL.iter().map(|column| row.own(*column).unwrap_or_default())),
        );
    }
    text
}

fn line<'a>(text: &mut String, cells: impl Iterator<Item = &'a str>) {
    for (index, cell) in cells.enumerate() {
        if index > 0 {
            text.push(',');
        }
        match cell.contains(['"', ',', '\n', '\r']) {
            true => text.extend(["\"", &cell.replace('"', "\"\""), "\""]),
            false => text.push_str(cell),
        }
    }
    text.push('\n');
}
