//! Takes away files that are over, parts of files that never came to be, and what came too late.

use crate::forms::{FileObject, seconds};
use crate::state::{OPEN, StateError, erase, newest, open_batch};
use flyball_core::units::{Micros, Timestamp};
use flyball_ledger::store::Store;
use std::collections::BTreeSet;

/// Parts without a file for so long belong to nobody: no upload and no merge takes a day.
const ORPHANED: Micros = Micros::from_seconds(24 * 60 * 60);

/// Erases what is over, and says how many files.
pub(crate) async fn sweep<S: Store>(store: &S, now: Timestamp) -> Result<u64, StateError> {
    let in_use = in_use(store).await?;
    let mut erased = 0;
    let mut there = BTreeSet::new();
    for object in store.list("files/").await? {
        let Some((tenant, id)) = names(&object.path) else { continue };
        let Some(bytes) = store.get(&object.path).await? else { continue };
        let file: Option<FileObject> = serde_json::from_slice(&bytes).ok();
        let is_over = file.is_some_and(|file| file.is_over(seconds(now)));
        let name = (tenant.to_owned(), id.to_owned());
        if is_over && !in_use.contains(&name) {
            erase(store, tenant, id).await?;
            erased += 1;
        } else {
            there.insert(name);
        }
    }
    for part in store.list("parts/").await? {
        let Some((tenant, id)) = names(&part.path) else { continue };
        let is_old = now.since(part.modified).is_some_and(|age| age >= ORPHANED);
        if is_old && !there.contains(&(tenant.to_owned(), id.to_owned())) {
            store.delete(&part.path).await?;
        }
    }
    late_segments(store, now).await?;
    Ok(erased)
}

/// Results that somebody stored who did not know that the batch is over.
async fn late_segments<S: Store>(store: &S, now: Timestamp) -> Result<(), StateError> {
    let open = store.list(OPEN).await?;
    let open: BTreeSet<_> = open.iter().filter_map(|object| open_batch(&object.path)).collect();
    let open: BTreeSet<String> = open.into_iter().map(|(_, key)| key.segments()).collect();
    for object in store.list("batches/").await? {
        let folder = object.path.rfind('/').map_or("", |end| &object.path[..=end]);
        let is_old = now.since(object.modified).is_some_and(|age| age >= ORPHANED);
        if folder.ends_with("/segments/") && is_old && !open.contains(folder) {
            store.delete(&object.path).await?;
        }
    }
    Ok(())
}

/// Inputs of batches that are not over.
async fn in_use<S: Store>(store: &S) -> Result<BTreeSet<(String, String)>, StateError> {
    let mut found = BTreeSet::new();
    for object in store.list(OPEN).await? {
        let Some((_, key)) = open_batch(&object.path) else { continue };
        if let Some(stored) = newest(store, &key).await? {
            found.insert((key.tenant, stored.record.batch.input_file_id));
        }
    }
    Ok(found)
}

/// The tenant and the file of a path.
fn names(path: &str) -> Option<(&str, &str)> {
    let mut parts = path.split('/').skip(1);
    let (tenant, file) = (parts.next()?, parts.next()?);
    Some((tenant, file.trim_end_matches(".json")))
}
