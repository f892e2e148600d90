//! The states of a batch in order.

use super::{BatchKey, Record, StateError};
use flyball_ledger::store::{PutOutcome, Store};

/// A state and its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredRecord {
    pub(crate) number: u32,
    pub(crate) record: Record,
}

/// What a batch is now.
pub(crate) async fn newest<S: Store>(
    store: &S,
    key: &BatchKey,
) -> Result<Option<StoredRecord>, StateError> {
    let listed = store.list(&key.states()).await?;
    let Some(last) = listed.last() else { return Ok(None) };
    read(store, key, &last.path).await
}

/// Everything that it was.
pub(crate) async fn all<S: Store>(
    store: &S,
    key: &BatchKey,
) -> Result<Vec<StoredRecord>, StateError> {
    let mut found = Vec::new();
    for object in store.list(&key.states()).await? {
        found.extend(read(store, key, &object.path).await?);
    }
    Ok(found)
}

async fn read<S: Store>(
    store: &S,
    key: &BatchKey,
    path: &str,
) -> Result<Option<StoredRecord>, StateError> {
    let number = path.strip_prefix(&key.states()).and_then(|name| name.strip_suffix(".json"));
    let number = number.and_then(|digits| digits.parse().ok());
    let number = number.ok_or_else(|| StateError::damaged(path, "its name is no number"))?;
    let Some(bytes) = store.get(path).await? else { return Ok(None) };
    let record = serde_json::from_slice(&bytes).map_err(|why| StateError::damaged(path, why))?;
    Ok(Some(StoredRecord { number, record }))
}

/// Makes this the state after that of `number`, unless there is one already. Whoever gets no answer does not know, and reads.
pub(crate) async fn put_next<S: Store>(
    store: &S,
    key: &BatchKey,
    number: Option<u32>,
    record: Record,
) -> Result<Option<StoredRecord>, StateError> {
    let number = number.map_or(0, |number| number + 1);
    let path = key.state(number);
    let bytes = serde_json::to_vec(&record).map_err(|why| StateError::damaged(&path, why))?;
    Ok(match store.put_new(&path, bytes.into()).await? {
        PutOutcome::Created => Some(StoredRecord { number, record }),
        PutOutcome::Exists => None,
    })
}
