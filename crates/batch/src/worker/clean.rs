//! Takes away what a batch that is over does not need.

use super::Worker;
use crate::lease::Leases;
use crate::state::{BatchKey, OPEN, Record, StateError, all, erase, listed_segments, open_batch};
use flyball_core::units::{Micros, Timestamp};
use flyball_ledger::store::Store;

/// A batch that was announced and not begun for so long never will be.
const ABANDONED: Micros = Micros::from_seconds(60 * 60);

/// What others began, segments, and last the mark that it is open: whoever dies in between begins again.
pub(super) async fn clean<S: Store>(
    store: &S,
    key: &BatchKey,
    record: &Record,
) -> Result<(), StateError> {
    let ended = [&record.batch.output_file_id, &record.batch.error_file_id];
    for state in all(store, key).await? {
        let Some(ids) = state.record.ids else { continue };
        for id in [ids.output, ids.error] {
            if !ended.contains(&&Some(id.clone())) {
                erase(store, &key.tenant, &id).await?;
            }
        }
    }
    for segment in listed_segments(store, key).await? {
        store.delete(&segment.path).await?;
    }
    store.delete(&key.lease()).await?;
    Ok(store.delete(&key.open(record.deadline())).await?)
}

impl<S: Store, L: Leases> Worker<S, L> {
    /// A mark without a batch. Its batch may be about to come, so that only an old one goes.
    pub(super) async fn forget_open(
        &self,
        key: &BatchKey,
        now: Timestamp,
    ) -> Result<(), StateError> {
        for object in self.store.list(OPEN).await? {
            let is_this = open_batch(&object.path).is_some_and(|(_, open)| open == *key);
            if is_this && now.since(object.modified).is_some_and(|age| age >= ABANDONED) {
                self.store.delete(&object.path).await?;
            }
        }
        Ok(self.leases.release(key).await?)
    }
}
