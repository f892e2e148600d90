//! A store in memory that fails as it is asked to.

use bytes::Bytes;
use flyball_core::units::Timestamp;
use flyball_ledger::store::{ObjectStoreError, PutOutcome, Store, StoredObject};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard};

/// What is in it. Handles share it.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) all: BTreeMap<String, (Bytes, Timestamp)>,
    pub(super) now: Timestamp,
}

/// How one process sees it.
#[derive(Clone, Debug)]
pub(super) struct Handle {
    objects: Arc<Mutex<Objects>>,
    faults: Arc<Mutex<Faults>>,
}

/// What goes wrong.
#[derive(Debug)]
struct Faults {
    random: Pcg64Mcg,
    /// Of a thousand calls, so many have no answer.
    lost: u32,
    calls: u64,
    /// The call at which the process dies, and whether it is done.
    death: Option<(u64, bool)>,
}

/// How a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    Fine,
    /// No answer; done or not.
    Lost(bool),
    /// The process dies; done or not.
    Death(bool),
}

impl Handle {
    pub(super) fn new(objects: &Arc<Mutex<Objects>>, seed: u64, lost: u32) -> Self {
        let random = Pcg64Mcg::seed_from_u64(seed);
        let faults = Faults { random, lost, calls: 0, death: None };
        Self { objects: Arc::clone(objects), faults: Arc::new(Mutex::new(faults)) }
    }

    pub(super) fn die_at(&self, call: u64, is_done: bool) {
        self.faults.lock().unwrap().death = Some((call, is_done));
    }

    pub(super) fn calls(&self) -> u64 {
        self.faults.lock().unwrap().calls
    }

    fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap()
    }

    fn course(&self) -> Course {
        let mut faults = self.faults.lock().unwrap();
        let call = faults.calls;
        faults.calls += 1;
        if let Some((death, is_done)) = faults.death
            && call >= death
        {
            return Course::Death(is_done);
        }
        let lost = faults.lost;
        match faults.random.random_range(0..1_000) < lost {
            true => Course::Lost(faults.random.random()),
            false => Course::Fine,
        }
    }

    async fn call<T>(
        &self,
        path: &str,
        done: impl FnOnce(&mut Objects) -> T,
    ) -> Result<T, ObjectStoreError> {
        let course = self.course();
        let answer = match course {
            Course::Lost(false) | Course::Death(false) => None,
            _ => Some(done(&mut self.objects())),
        };
        match (course, answer) {
            (Course::Death(_), _) => pending().await,
            (Course::Fine, Some(answer)) => Ok(answer),
            _ => Err(ObjectStoreError::NoAnswer { path: path.to_owned(), why: "lost".to_owned() }),
        }
    }
}

impl Store for Handle {
    async fn put_new(&self, path: &str, bytes: Bytes) -> Result<PutOutcome, ObjectStoreError> {
        self.call(path, |objects| {
            if objects.all.contains_key(path) {
                return PutOutcome::Exists;
            }
            let now = objects.now;
            objects.all.insert(path.to_owned(), (bytes, now));
            PutOutcome::Created
        })
        .await
    }

    async fn put(&self, path: &str, bytes: Bytes) -> Result<(), ObjectStoreError> {
        self.call(path, |objects| {
            let now = objects.now;
            objects.all.insert(path.to_owned(), (bytes, now));
        })
        .await
    }

    async fn get(&self, path: &str) -> Result<Option<Bytes>, ObjectStoreError> {
        self.call(path, |objects| objects.all.get(path).map(|(bytes, _)| bytes.clone())).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<StoredObject>, ObjectStoreError> {
        self.call(prefix, |objects| {
            let from = objects.all.range(prefix.to_owned()..);
            let below = from.take_while(|(path, _)| path.starts_with(prefix));
            let object = |(path, (bytes, modified)): (&String, &(Bytes, Timestamp))| StoredObject {
                path: path.clone(),
                size: bytes.len() as u64,
                modified: *modified,
            };
            below.map(object).collect()
        })
        .await
    }

    async fn delete(&self, path: &str) -> Result<(), ObjectStoreError> {
        self.call(path, |objects| {
            objects.all.remove(path);
        })
        .await
    }
}
