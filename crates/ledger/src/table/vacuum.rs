//! Files that do not count any more.

use super::{TableLog, place};
use crate::LedgerError;
use crate::source::UsageBatch;
use crate::store::Store;
use flyball_core::units::{Micros, Timestamp};

/// Deletes files that have not counted for that long: those that were removed, and those that never were added, because
/// somebody else was faster or the program ended in between. Files of the inbox that wait stay. Says how many it deleted.
pub async fn vacuum(
    store: &impl Store,
    log: &mut TableLog,
    keep: Micros,
    now: Timestamp,
) -> Result<usize, LedgerError> {
    log.refresh(store).await?;
    let folder = place(log.table(), "");
    let before = now.saturating_sub(keep);
    let mut count = 0;
    for part in ["inbox/", "merged/"] {
        for object in store.list(&place(log.table(), part)).await? {
            let Some(path) = object.path.strip_prefix(&folder) else { continue };
            if object.modified < before && is_garbage(log, path, before) {
                store.delete(&object.path).await?;
                count += 1;
            }
        }
    }
    Ok(count)
}

fn is_garbage(log: &TableLog, path: &str, before: Timestamp) -> bool {
    let counts = log.state.files.contains_key(path);
    let waits = UsageBatch::of_path(path).is_some_and(|batch| !log.has(&batch));
    let removed = log.state.removed.get(path);
    let lately = removed.is_some_and(|at| *at >= super::state::millis(before));
    !counts && !waits && !lately
}
