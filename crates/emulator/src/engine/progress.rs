//! How far a request is, as the connection sees it.

use futures::task::AtomicWaker;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll};

/// Written by the engine's thread, read by the connection. A counter and not a queue: a client that
/// reads slowly costs no memory.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    emitted: AtomicU32,
    cached: AtomicU32,
    lost: AtomicBool,
    /// Fewer tokens interest nobody.
    target: u32,
    /// Whether it is in the list of those to wake.
    listed: AtomicBool,
    waker: AtomicWaker,
}

/// The engine went away under a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the engine has stopped; hint: send the request to another one")]
pub(crate) struct Lost;

impl Progress {
    /// Nothing is out, and nobody shall be woken before so many tokens are.
    pub(super) fn new(target: u32) -> Self {
        Self { target, ..Self::default() }
    }

    /// Tokens out.
    pub(crate) fn emitted(&self) -> u32 {
        self.emitted.load(Ordering::Acquire)
    }

    /// Prompt tokens that were found in the cache.
    pub(crate) fn cached(&self) -> u32 {
        self.cached.load(Ordering::Acquire)
    }

    /// More than `seen` tokens, when they are there.
    pub(crate) fn poll_more(&self, seen: u32, cx: &mut Context<'_>) -> Poll<Result<u32, Lost>> {
        let ready = || match self.emitted() {
            emitted if emitted > seen => Some(Ok(emitted)),
            _ if self.lost.load(Ordering::Acquire) => Some(Err(Lost)),
            _ => None,
        };
        if let Some(ready) = ready() {
            return Poll::Ready(ready);
        }
        self.waker.register(cx.waker());
        // It may have moved before the waker was there.
        ready().map_or(Poll::Pending, Poll::Ready)
    }

    /// Waits until so many tokens are out.
    pub(crate) async fn reach(&self, tokens: u32) -> Result<(), Lost> {
        let before = tokens.saturating_sub(1);
        poll_fn(|cx| self.poll_more(before, cx)).await.map(|_| ())
    }

    /// So many tokens are out now, and leave or wait for more. True if somebody should be woken and is not in the list
    /// yet.
    pub(super) fn set_emitted(&self, tokens: u32, leaves: bool) -> bool {
        self.emitted.store(tokens, Ordering::Release);
        leaves && tokens >= self.target && !self.listed.swap(true, Ordering::AcqRel)
    }

    pub(super) fn set_cached(&self, tokens: u32) {
        self.cached.store(tokens, Ordering::Release);
    }

    pub(super) fn set_lost(&self) {
        self.lost.store(true, Ordering::Release);
        self.waker.wake();
    }

    pub(super) fn wake(&self) {
        // A swap and not a store: it must see what was written before the last listing.
        self.listed.swap(false, Ordering::AcqRel);
        self.waker.wake();
    }
}
