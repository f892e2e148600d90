//! Answers that are kept and given again to the same request of the same caller.
//!
//! Only for models that ask for it, and only where the answer would be the same again: temperature 0,
//! one answer, the very same bytes. `key` says what is the same, `gather` collects an answer while it
//! goes to its client, `store` keeps it within its bytes and its time.
//!
//! Start at [`AnswerCache`].

mod gather;
mod key;
mod store;

pub(crate) use gather::Gather;
pub(crate) use key::{Key, may_be};

use crate::settings::ResponseCache;
use bytes::Bytes;
use flyball_fleet::Millis;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::Store;

/// The longest answer that is kept. Nobody reads a megabyte of text twice.
const ANSWER_BYTES: usize = 1 << 20;

/// All kept answers, for all threads.
#[derive(Debug)]
pub(crate) struct AnswerCache {
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

impl Answer {
    /// It is given again.
    pub(crate) fn response(&self) -> Response<Bytes> {
        let mut response = Response::new(self.body.clone());
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers.clone();
        response.headers_mut().insert("x-flyball-cache", HeaderValue::from_static("hit"));
        response
    }
}

impl AnswerCache {
    pub(crate) fn new(settings: &ResponseCache) -> Self {
        let cache = Self {
            store: Mutex::default(),
            most_bytes: AtomicUsize::new(0),
            ttl_ms: AtomicU64::new(0),
            gathered: AtomicUsize::new(0),
        };
        cache.follow(settings);
        cache
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

    /// The kept answer to a request with these headers, unless that asks for a new one.
    pub(crate) fn find(&self, key: &Key, headers: &HeaderMap, now: Millis) -> Option<Arc<Answer>> {
        if key::has_directive(headers, "no-cache") {
            return None;
        }
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
