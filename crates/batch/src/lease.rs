//! Who works at a batch, so that not two do.
//!
//! A lease saves work and proves nothing: what is proven are the numbers of states. In a cluster it can be a Lease of
//! Kubernetes (not yet); where there is only a store, it is an object that its holder writes anew.

use crate::state::BatchKey;
use flyball_core::units::{Micros, Timestamp};
use flyball_ledger::store::{ObjectStoreError, Store};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Its holder says so often that it is there.
const RENEW: Micros = Micros::from_seconds(5);

/// Whoever sees nothing of a holder for so long, by a clock of its own, takes its place.
const EXPIRE: Micros = Micros::from_seconds(20);

/// Leases of batches.
pub(crate) trait Leases: Send + Sync {
    /// Takes the lease of a batch or renews it. False if somebody else has it.
    fn hold(
        &self,
        key: &BatchKey,
        now: Timestamp,
    ) -> impl Future<Output = Result<bool, ObjectStoreError>> + Send;

    /// Gives it to whoever wants it.
    fn release(&self, key: &BatchKey) -> impl Future<Output = Result<(), ObjectStoreError>> + Send;
}

/// Leases that are objects.
#[derive(Debug)]
pub(crate) struct StoreLeases<S> {
    store: Arc<S>,
    /// Who asks. No two processes have the same, and none has it twice.
    name: String,
    seen: Mutex<BTreeMap<BatchKey, Seen>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LeaseObject {
    holder: String,
    /// Times that it was renewed.
    renewals: u64,
}

/// What a lease was, and since when.
#[derive(Clone, Debug)]
struct Seen {
    lease: LeaseObject,
    since: Timestamp,
}

impl<S: Store> StoreLeases<S> {
    pub(crate) fn new(store: Arc<S>, name: &str) -> Self {
        Self { store, name: name.to_owned(), seen: Mutex::default() }
    }

    fn seen(&self, key: &BatchKey) -> Option<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn note(&self, key: &BatchKey, seen: Option<Seen>) {
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match seen {
            Some(seen) => all.insert(key.clone(), seen),
            None => all.remove(key),
        };
    }

    async fn write(
        &self,
        key: &BatchKey,
        renewals: u64,
        now: Timestamp,
    ) -> Result<(), ObjectStoreError> {
        let lease = LeaseObject { holder: self.name.clone(), renewals };
        let bytes = serde_json::to_vec(&lease).unwrap_or_default();
        self.store.put(&key.lease(), bytes.into()).await?;
        self.note(key, Some(Seen { lease, since: now }));
        Ok(())
    }
}

impl<S: Store> Leases for StoreLeases<S> {
    async fn hold(&self, key: &BatchKey, now: Timestamp) -> Result<bool, ObjectStoreError> {
        let seen = self.seen(key);
        if let Some(seen) = &seen
            && seen.lease.holder == self.name
            && now.apart(seen.since) < RENEW
        {
            return Ok(true);
        }
        // What cannot be read is nobody's.
        let stored = self.store.get(&key.lease()).await?;
        let stored = stored.and_then(|bytes| serde_json::from_slice::<LeaseObject>(&bytes).ok());
        let Some(lease) = stored else {
            return self.write(key, 0, now).await.map(|()| true);
        };
        if lease.holder == self.name {
            return self.write(key, lease.renewals + 1, now).await.map(|()| true);
        }
        match seen {
            Some(seen) if seen.lease == lease && now.apart(seen.since) >= EXPIRE => {
                self.write(key, 0, now).await.map(|()| true)
            }
            Some(seen) if seen.lease == lease => Ok(false),
            _ => {
                self.note(key, Some(Seen { lease, since: now }));
                Ok(false)
            }
        }
    }

    async fn release(&self, key: &BatchKey) -> Result<(), ObjectStoreError> {
        self.note(key, None);
        self.store.delete(&key.lease()).await
    }
}
