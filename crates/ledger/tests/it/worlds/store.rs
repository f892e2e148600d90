//! A store in memory that refuses, is away, is full, and does what it says it did not.

use super::fault::Life;
use bytes::Bytes;
use flyball_core::units::Timestamp;
use flyball_ledger::store::{ObjectStoreError, PutOutcome, Store, StoredObject};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;

/// A process's way to the store.
#[derive(Clone, Debug)]
pub(crate) struct VirtualStore {
    pub(crate) bucket: Arc<Mutex<Bucket>>,
    pub(crate) life: Life,
}

#[derive(Debug)]
pub(crate) struct Bucket {
    pub(crate) objects: BTreeMap<String, (Bytes, Timestamp)>,
    pub(crate) now: Timestamp,
    rng: Pcg64Mcg,
    pub(crate) faults: Faults,
    /// Calls that got no answer although they were done.
    pub(crate) lied: u64,
}

/// What goes wrong with it now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// Nobody can reach it, or it is not there.
    pub(crate) away: bool,
    /// Nothing more has room.
    pub(crate) full: bool,
    /// Of a hundred calls, those that are done and get no answer.
    pub(crate) lies: u32,
    /// Of a hundred calls, those that are not done.
    pub(crate) drops: u32,
}

impl Bucket {
    pub(crate) fn new(seed: u64, now: Timestamp) -> Self {
        let rng = Pcg64Mcg::seed_from_u64(seed);
        Self { objects: BTreeMap::new(), now, rng, faults: Faults::default(), lied: 0 }
    }
}

impl VirtualStore {
    /// Does a step, unless the process ends before or right after it. Others may do theirs in between.
    async fn step<T>(
        &self,
        path: &str,
        puts: bool,
        step: impl FnOnce(&mut Bucket) -> T + Send,
    ) -> Result<T, ObjectStoreError> {
        let lost =
            |why: &str| ObjectStoreError::NoAnswer { path: path.to_owned(), why: why.to_owned() };
        let refused =
            |why: &str| ObjectStoreError::Refused { path: path.to_owned(), why: why.to_owned() };
        let mut waited = false;
        poll_fn(
            |_| if std::mem::replace(&mut waited, true) { Poll::Ready(()) } else { Poll::Pending },
        )
        .await;
        self.life.half().map_err(|_| lost("the process ended"))?;
        let done = {
            let mut bucket = self.bucket.lock().unwrap();
            let Faults { away, full, lies, drops } = bucket.faults;
            let chance = bucket.rng.random_range(0..100);
            if away {
                return Err(refused("no such bucket"));
            } else if full && puts {
                return Err(refused("full"));
            } else if chance < drops {
                return Err(lost("dropped"));
            }
            let done = step(&mut bucket);
            if chance >= 100 - lies {
                bucket.lied += 1;
                Err(lost("done, and the answer lost"))
            } else {
                Ok(done)
            }
        };
        self.life.half().map_err(|_| lost("the process ended"))?;
        done
    }
}

impl Store for VirtualStore {
    async fn put_new(&self, path: &str, bytes: Bytes) -> Result<PutOutcome, ObjectStoreError> {
        self.step(path, true, |bucket| {
            if bucket.objects.contains_key(path) {
                return PutOutcome::Exists;
            }
            let now = bucket.now;
            bucket.objects.insert(path.to_owned(), (bytes, now));
            PutOutcome::Created
        })
        .await
    }

    async fn put(&self, path: &str, bytes: Bytes) -> Result<(), ObjectStoreError> {
        self.step(path, true, |bucket| {
            let now = bucket.now;
            bucket.objects.insert(path.to_owned(), (bytes, now));
        })
        .await
    }

    async fn get(&self, path: &str) -> Result<Option<Bytes>, ObjectStoreError> {
        self.step(path, false, |bucket| bucket.objects.get(path).map(|(bytes, _)| bytes.clone()))
            .await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<StoredObject>, ObjectStoreError> {
        self.step(prefix, false, |bucket| {
            let from = bucket.objects.range(prefix.to_owned()..);
            let found = from.take_while(|(path, _)| path.starts_with(prefix));
            found
                .map(|(path, (bytes, modified))| StoredObject {
                    path: path.clone(),
                    size: bytes.len() as u64,
                    modified: *modified,
                })
                .collect()
        })
        .await
    }

    async fn delete(&self, path: &str) -> Result<(), ObjectStoreError> {
        self.step(path, false, |bucket| drop(bucket.objects.remove(path))).await
    }
}
