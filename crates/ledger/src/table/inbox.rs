//! From the inbox into the table.

use super::action::Line;
use super::state::millis;
use super::{TRIES, TableLog, add, place};
use crate::LedgerError;
use crate::files;
use crate::rows::Rows;
use crate::source::UsageBatch;
use crate::store::Store;
use flyball_core::units::Timestamp;
use std::collections::BTreeMap;

/// Files of one commit. What is left comes with the next.
const MOST_FILES: usize = 500;

/// What a commit did.
#[derive(Debug, Default)]
pub struct Committed {
    /// Files that it added.
    pub files: usize,
    /// Their rows.
    pub rows: usize,
    /// Files that cannot be read. What their source wrote later waits behind them until somebody has looked.
    pub refused: Vec<LedgerError>,
}

/// Adds the files of the inbox that are not in the table, each source in its order and without gaps.
pub async fn commit_inbox(
    store: &impl Store,
    log: &mut TableLog,
    now: Timestamp,
) -> Result<Committed, LedgerError> {
    // A file is read once, however often somebody else commits in between.
    let mut read: BTreeMap<UsageBatch, Result<(usize, Rows), LedgerError>> = BTreeMap::new();
    for _ in 0..TRIES {
        log.refresh(store).await?;
        let batches = waiting(store, log).await?;
        read.retain(|batch, _| batches.contains(batch));
        for batch in &batches {
            if !read.contains_key(batch) {
                read.insert(batch.clone(), read_batch(store, log, batch).await?);
            }
        }
        let (lines, rows) = lines(log, &read, now);
        let files = lines.iter().filter(|line| line.add.is_some()).count();
        if files == 0 || log.commit(store, "WRITE", lines, now).await? {
            let refused = read.into_values().filter_map(Result::err).collect();
            return Ok(Committed { files, rows, refused });
        }
    }
    Err(LedgerError::Busy(TRIES))
}

/// The batches in the inbox that come next, in order.
async fn waiting(store: &impl Store, log: &TableLog) -> Result<Vec<UsageBatch>, LedgerError> {
    let folder = place(log.table(), "");
    let objects = store.list(&place(log.table(), "inbox/")).await?;
    let paths = objects.iter().filter_map(|object| object.path.strip_prefix(&folder));
    let mut batches: Vec<UsageBatch> =
        paths.filter_map(UsageBatch::of_path).filter(|batch| !log.has(batch)).collect();
    batches.sort_unstable();
    let mut next: BTreeMap<String, u64> = BTreeMap::new();
    batches.retain(|batch| {
        let source = batch.source.as_str().to_owned();
        let next = next.entry(source).or_insert_with(|| log.committed(&batch.source) + 1);
        // One behind a gap waits: a number says that all before it are there.
        let fits = *next == batch.sequence;
        *next += u64::from(fits);
        fits
    });
    batches.truncate(MOST_FILES);
    Ok(batches)
}

/// The rows of a file. That a file is broken is an answer; that the store gives none is an error.
async fn read_batch(
    store: &impl Store,
    log: &TableLog,
    batch: &UsageBatch,
) -> Result<Result<(usize, Rows), LedgerError>, LedgerError> {
    let path = batch.path();
    let bytes = store.get(&place(log.table(), &path)).await?;
    // Vacuumed since it was listed, because somebody else committed and merged it: the next look at the log says so.
    let bytes = bytes.ok_or_else(|| LedgerError::broken(&path, "the file is not there any more"));
    Ok(bytes.and_then(|bytes| {
        let size = bytes.len();
        let rows = files::read(log.table(), bytes);
        rows.map(|rows| (size, rows)).map_err(|error| LedgerError::broken(&path, error))
    }))
}

fn lines(
    log: &TableLog,
    read: &BTreeMap<UsageBatch, Result<(usize, Rows), LedgerError>>,
    now: Timestamp,
) -> (Vec<Line>, usize) {
    let mut up_to: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut lines, mut count) = (Vec::new(), 0);
    for (batch, file) in read {
        let Ok((size, rows)) = file else { continue };
        let source = batch.source.as_str();
        let before = up_to.get(source).copied().unwrap_or_else(|| log.committed(&batch.source));
        if batch.sequence != before + 1 {
            continue;
        }
        up_to.insert(source, batch.sequence);
        lines.push(Line::add(add::add(&batch.path(), *size, rows, millis(now), true)));
        count += rows.len();
    }
    let txn = |(source, version): (&&str, &u64)| {
        Line::txn(source, i64::try_from(*version).unwrap_or(i64::MAX), millis(now))
    };
    lines.extend(up_to.iter().map(txn));
    (lines, count)
}
