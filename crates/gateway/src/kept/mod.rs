//! Answers that are kept and given again to the same request of the same caller.
//!
//! Only for models that ask for it, and only where the answer would be the same again: temperature 0,
//! one answer, the very same bytes. `key` says what is the same, `gather` collects an answer while it
//! goes to its client, `store` keeps it within its bytes and its time.
//!
//! Start at [`look`].

mod gather;
mod key;
mod store;

pub(crate) use gather::Gather;
pub(crate) use key::{Key, may_be};

use crate::aim::Job;
use crate::finished::RequestOutcome;
use crate::fleet::Millis;
use crate::forward::Record;
use crate::serve::Shared;
use crate::settings::ResponseCache;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::Store;

/// The longest answer that is kept. Nobody reads a megabyte of text twice.
const ANSWER_BYTES: usize = 1 << 20;

/// All kept answers, for all threads.
#[derive(Debug)]
pub(crate) struct Kept {
    store: Mutex<Store>,
    /// Bytes of all that are kept, and again of all that are being gathered.
    most_bytes: AtomicUsize,
    ttl_ms: AtomicU64,
    gathered: AtomicUsize,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Kept {
    pub(crate) fn new(settings: &ResponseCache) -> Self {
        let kept = Self {
            store: Mutex::default(),
            most_bytes: AtomicUsize::new(0),
            ttl_ms: AtomicU64::new(0),
            gathered: AtomicUsize::new(0),
        };
        kept.follow(settings);
        kept
    }

    /// Takes in changed settings.
    pub(crate) fn follow(&self, settings: &ResponseCache) {
        self.most_bytes.store(settings.bytes, Relaxed);
        self.ttl_ms.store(settings.ttl_s.saturating_mul(1_000), Relaxed);
        self.store().shrink_to(settings.bytes);
    }

    /// Bytes of all that are kept.
    pub(crate) fn bytes(&self) -> usize {
        self.store().bytes()
    }

    fn find(&self, key: &Key, now: Millis) -> Option<Arc<Answer>> {
        self.store().find(key, now, self.ttl_ms.load(Relaxed))
    }

    fn put(&self, key: Key, answer: Answer, now: Millis) {
        self.store().put(key, answer, now, self.most_bytes.load(Relaxed));
    }

    /// Held for a microsecond or two: bodies are not copied under it.
    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The kept answer to a request. If there is none and its answer may be kept, the record gathers it.
pub(crate) fn look(
    shared: &Arc<Shared>,
    job: &Job,
    record: &mut Record,
) -> Option<Response<Bytes>> {
    let key = job.kept?;
    let asked_anew = key::says(&job.headers, "no-cache");
    let found = if asked_anew { None } else { shared.kept.find(&key, shared.now()) };
    let Some(answer) = found else {
        record.keep = Some(Gather::new(Arc::clone(shared), key));
        return None;
    };
    let mut response = Response::new(answer.body.clone());
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers.clone();
    response.headers_mut().insert("x-flyball-cache", HeaderValue::from_static("hit"));
    record.cached = true;
    record.status = answer.status.as_u16();
    record.first = Some(record.age());
    record.bytes_out = answer.body.len() as u64;
    // No engine used a token.
    record.estimated = false;
    record.finish(RequestOutcome::Answered, None);
    Some(response)
}
