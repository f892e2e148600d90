//! Collects an answer while it goes to its client.

use super::{ANSWER_BYTES, Answer, AnswerCache, Key};
use bytes::BytesMut;
use flyball_fleet::Millis;
use http::{HeaderMap, StatusCode};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// An answer that is to be kept if it ends well. Dropped before, nothing is kept.
pub(crate) struct Gather {
    cache: Arc<AnswerCache>,
    key: Key,
    status: StatusCode,
    headers: HeaderMap,
    /// Copied, because a piece keeps the whole buffer alive into which it was read.
    body: BytesMut,
    /// Too long, or too much is being gathered.
    spilled: bool,
}

impl Gather {
    /// Of an answer with this head, without what belongs to one request only; `None` of a failure.
    pub(crate) fn new(
        cache: &Arc<AnswerCache>,
        key: Key,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Option<Self> {
        let gather = || {
            let (cache, headers) = (Arc::clone(cache), headers.clone());
            Self { cache, key, status, headers, body: BytesMut::new(), spilled: false }
        };
        status.is_success().then(gather)
    }

    /// More of the answer.
    pub(crate) fn add(&mut self, piece: &[u8]) {
        if self.spilled {
            return;
        }
        let cache = &self.cache;
        let gathered = cache.gathered.fetch_add(piece.len(), Relaxed) + piece.len();
        self.body.extend_from_slice(piece);
        if self.body.len() > ANSWER_BYTES || gathered > cache.most_bytes.load(Relaxed) {
            self.let_go();
            self.spilled = true;
        }
    }

    /// The answer has ended well at this time: it is kept.
    pub(crate) fn keep(mut self, now: Millis) {
        if self.spilled {
            return;
        }
        let (status, headers) = (self.status, std::mem::take(&mut self.headers));
        // In a buffer of its own length, which is what is counted.
        let body = bytes::Bytes::copy_from_slice(&self.body);
        self.cache.put(self.key, Answer { status, headers, body }, now);
    }

    fn let_go(&mut self) {
        let body = std::mem::take(&mut self.body);
        self.cache.gathered.fetch_sub(body.len(), Relaxed);
    }
}

impl Drop for Gather {
    fn drop(&mut self) {
        self.let_go();
    }
}
