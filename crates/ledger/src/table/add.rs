//! A file as the log adds it, and its rows.

use super::action::Add;
use super::place;
use crate::LedgerError;
use crate::files;
use crate::rows::Rows;
use crate::store::{PutOutcome, Store};
use flyball_core::units::Timestamp;
use flyball_resources::usage::{CHARGE_PERIOD_END, CHARGE_PERIOD_START, LedgerTable};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// What the log says of a file with these rows.
pub(super) fn add(path: &str, size: usize, rows: &Rows, now_ms: i64, data_change: bool) -> Add {
    Add {
        path: path.to_owned(),
        partition_values: BTreeMap::new(),
        size: i64::try_from(size).unwrap_or(i64::MAX),
        modification_time: now_ms,
        data_change,
        stats: Some(stats(rows).to_string()),
        others: Map::new(),
    }
}

/// Rows, and the ends of times and Tenants, so that readers leave files out.
fn stats(rows: &Rows) -> Value {
    let start = |of: fn(i64, i64) -> i64| rows.iter().map(|(key, _)| key.start).reduce(of);
    let end = |of: fn(i64, i64) -> i64| rows.iter().map(|(key, _)| key.end).reduce(of);
    let tenants = || {
        let place = rows.table().text("SubAccountId");
        place.into_iter().flat_map(|place| rows.iter().map(move |(key, _)| &*key.texts[place]))
    };
    json!({
        "numRecords": rows.len(),
        "minValues": ends(start(i64::min), end(i64::min), tenants().min()),
        "maxValues": ends(start(i64::max), end(i64::max), tenants().max()),
        "nullCount": { CHARGE_PERIOD_START: 0, CHARGE_PERIOD_END: 0, "SubAccountId": 0 },
    })
}

fn ends(start: Option<i64>, end: Option<i64>, tenant: Option<&str>) -> Value {
    let mut ends = Map::new();
    if let (Some(start), Some(end), Some(tenant)) = (start, end, tenant) {
        ends.insert(CHARGE_PERIOD_START.to_owned(), time(start).into());
        ends.insert(CHARGE_PERIOD_END.to_owned(), time(end).into());
        // Readers compare texts as they stand: a long one would have to be cut by rules of its own.
        if tenant.len() <= 1_024 {
            ends.insert("SubAccountId".to_owned(), tenant.into());
        }
    }
    ends.into()
}

/// Milliseconds, as Delta has times in statistics. All of ours are whole minutes.
fn time(micros: i64) -> String {
    let text = Timestamp::from_micros(micros.max(0).cast_unsigned()).to_string();
    format!("{}Z", &text[..text.len().saturating_sub(4)])
}

/// The rows of a file of the table.
pub(super) async fn rows_of(
    store: &impl Store,
    table: &'static LedgerTable,
    path: &str,
) -> Result<Rows, LedgerError> {
    let bytes = store.get(&place(table, path)).await?;
    let bytes = bytes.ok_or_else(|| LedgerError::broken(path, "the file is not there"))?;
    files::read(table, bytes).map_err(|error| LedgerError::broken(path, error))
}

/// Puts a file that replaces others, and says how it is added. The time is in its name: a file that somebody left behind
/// long ago, and that may be deleted at any moment, never has it.
pub(super) async fn put_merged(
    store: &impl Store,
    rows: &Rows,
    now_ms: i64,
    data_change: bool,
) -> Result<Add, LedgerError> {
    let bytes = files::write(rows).map_err(|error| LedgerError::broken("merged", error))?;
    let hash = Sha256::digest(&bytes);
    let name: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let path = format!("merged/{now_ms}-{name}.parquet");
    let size = bytes.len();
    match store.put_new(&place(rows.table(), &path), bytes).await? {
        PutOutcome::Created | PutOutcome::Exists => {}
    }
    Ok(add(&path, size, rows, now_ms, data_change))
}
