//! Small files of a time that is over become one.

use super::action::Line;
use super::state::{TableFile, millis};
use super::{TRIES, TableLog, add};
use crate::LedgerError;
use crate::rows::{RowKey, Rows};
use crate::store::Store;
use flyball_core::units::{Micros, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// So long after its end most of an hour is there. What comes later is merged again.
pub const SEALED_AFTER: Micros = Micros::from_minutes(10);

/// Of what time files become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeSpan {
    /// An hour.
    Hour,
    /// A day of UTC.
    Day,
}

impl MergeSpan {
    const fn micros(self) -> i64 {
        let hours = match self {
            Self::Hour => 1,
            Self::Day => 24,
        };
        Micros::HOUR.get().cast_signed() * hours
    }
}

/// Merges the first span that is over and has several files: rows of an hour that differ in nothing but their source or
/// their part of the hour become one. Says how many files became one; 0 if there was nothing to do.
pub async fn merge(
    store: &impl Store,
    log: &mut TableLog,
    span: MergeSpan,
    now: Timestamp,
) -> Result<usize, LedgerError> {
    for _ in 0..TRIES {
        log.refresh(store).await?;
        let Some(files) = due(log, span, now) else { return Ok(0) };
        let mut rows = Rows::new(log.table());
        let mut before = vec![0_i128; log.table().measures.len()];
        for file in &files {
            let read = add::rows_of(store, log.table(), &file.path).await?;
            before.iter_mut().zip(read.sums()).for_each(|(sum, one)| *sum += one);
            rows.add_all(&read.map(|key| by_hour(&read, key)));
        }
        if rows.sums() != before {
            let first = files.first().map_or("", |file| &file.path);
            return Err(LedgerError::broken(first, "its rows do not add up when merged"));
        }
        let merged = add::put_merged(store, &rows, millis(now), false).await?;
        let gone = files.iter().map(|file| Line::remove(&file.path, millis(now), false));
        let mut lines: Vec<Line> = gone.collect();
        let count = files.len();
        lines.push(Line::add(merged));
        if log.commit(store, "OPTIMIZE", lines, now).await? {
            return Ok(count);
        }
    }
    Err(LedgerError::Busy(TRIES))
}

/// The files of the first span that is over and has more than one.
fn due(log: &TableLog, span: MergeSpan, now: Timestamp) -> Option<Vec<TableFile>> {
    let sealed = now.saturating_sub(SEALED_AFTER).as_micros().cast_signed();
    let mut spans: BTreeMap<i64, Vec<TableFile>> = BTreeMap::new();
    for file in log.files() {
        let (Some(start), Some(end)) = (file.start, file.end) else { continue };
        let of = start.div_euclid(span.micros());
        if end.max((of + 1) * span.micros()) <= sealed {
            spans.entry(of).or_default().push(file.clone());
        }
    }
    spans.into_values().find(|files| files.len() > 1)
}

/// The hour that a row is in, and no source.
fn by_hour(rows: &Rows, key: &RowKey) -> RowKey {
    let hour = MergeSpan::Hour.micros();
    let start = key.start.div_euclid(hour) * hour;
    let mut texts = key.texts.clone();
    if let Some(place) = rows.table().text("x_Source") {
        texts[place] = Arc::default();
    }
    RowKey { start, end: start + hour, estimated: key.estimated, texts }
}
