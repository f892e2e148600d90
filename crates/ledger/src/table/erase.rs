//! What must not be kept: rows that are too old, and names of a Tenant.

use super::action::{Add, Line};
use super::state::{TableFile, millis};
use super::{TRIES, TableLog, add};
use crate::LedgerError;
use crate::rows::{RowKey, Rows};
use crate::store::Store;
use flyball_core::units::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What stands where a Tenant's path stood.
pub const ERASED: &str = "erased";

/// Takes files out of the table whose rows all ended before then. Says how many.
pub async fn expire(
    store: &impl Store,
    log: &mut TableLog,
    before: Timestamp,
    now: Timestamp,
) -> Result<usize, LedgerError> {
    let before = before.as_micros().cast_signed();
    for _ in 0..TRIES {
        log.refresh(store).await?;
        let old = log.files().filter(|file| file.end.is_some_and(|end| end <= before));
        let lines: Vec<Line> =
            old.map(|file| Line::remove(&file.path, millis(now), true)).collect();
        let count = lines.len();
        if count == 0 || log.commit(store, "DELETE", lines, now).await? {
            return Ok(count);
        }
    }
    Err(LedgerError::Busy(TRIES))
}

/// Takes the path of a Tenant, those below it and their keys out of all rows. What they used stays, as nobody's, so that
/// sums still are what was paid. Says how many files were written again. Old files are there until [`super::vacuum`].
pub async fn erase(
    store: &impl Store,
    log: &mut TableLog,
    tenant: &str,
    now: Timestamp,
) -> Result<usize, LedgerError> {
    // What a file became, if it had any such rows: it is written once, however often somebody else commits in between.
    let mut written: BTreeMap<String, Option<Add>> = BTreeMap::new();
    for _ in 0..TRIES {
        log.refresh(store).await?;
        let mut lines = Vec::new();
        for file in log.files().filter(|file| may_have(file, tenant)) {
            if !written.contains_key(&file.path) {
                written.insert(file.path.clone(), rewrite(store, log, file, tenant, now).await?);
            }
            if let Some(Some(add)) = written.get(&file.path) {
                lines.push(Line::remove(&file.path, millis(now), true));
                lines.push(Line::add(add.clone()));
            }
        }
        let count = lines.len() / 2;
        if count == 0 || log.commit(store, "UPDATE", lines, now).await? {
            return Ok(count);
        }
    }
    Err(LedgerError::Busy(TRIES))
}

/// Puts a file without the Tenant, if it has any rows of it.
async fn rewrite(
    store: &impl Store,
    log: &TableLog,
    file: &TableFile,
    tenant: &str,
    now: Timestamp,
) -> Result<Option<Add>, LedgerError> {
    let rows = add::rows_of(store, log.table(), &file.path).await?;
    let erased = rows.map(|key| without(&rows, key, tenant));
    if erased == rows {
        return Ok(None);
    }
    if rows.sums() != erased.sums() {
        return Err(LedgerError::broken(&file.path, "its rows do not add up when erased"));
    }
    Ok(Some(add::put_merged(store, &erased, millis(now), true).await?))
}

/// Whether a file may have rows of a Tenant, by its first and last.
fn may_have(file: &TableFile, tenant: &str) -> bool {
    let below = format!("{tenant}0");
    // `0` is the character after `/`, so all paths below a Tenant are before it.
    file.tenants.as_ref().is_none_or(|(first, last)| *first < below && tenant <= last.as_str())
}

fn without(rows: &Rows, key: &RowKey, tenant: &str) -> RowKey {
    let mut key = key.clone();
    let Some(place) = rows.table().text("SubAccountId") else { return key };
    let rest = key.texts[place].strip_prefix(tenant);
    if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
        key.texts[place] = ERASED.into();
        if let Some(place) = rows.table().text("x_CredentialId") {
            key.texts[place] = Arc::default();
        }
    }
    key
}
