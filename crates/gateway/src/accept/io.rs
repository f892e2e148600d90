//! The clock of a client's connection: nobody may send a head slowly, stay without asking, or not
//! read what is there.
//!
//! The timer is set when the connection first waits, and set again only when it rings, not for each
//! request: most connections never hear it.

use crate::settings::Timeouts;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// Requests of a connection that are not answered to their end.
#[derive(Debug)]
pub(crate) struct Clock {
    busy: AtomicU32,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Busy {
    clock: Arc<Clock>,
}

impl Clock {
    pub(crate) const fn new() -> Self {
        Self { busy: AtomicU32::new(0) }
    }

    /// Silence is not counted on this connection.
    pub(crate) fn stay_busy(&self) {
        self.busy.store(1, Ordering::Relaxed);
    }
}

impl Busy {
    pub(crate) fn begin(clock: &Arc<Clock>) -> Self {
        clock.busy.fetch_add(1, Ordering::Relaxed);
        Self { clock: Arc::clone(clock) }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.clock.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A client's connection with its clock.
pub(crate) struct ClientIo<S> {
    stream: S,
    clock: Arc<Clock>,
    head: Duration,
    keep_alive: Duration,
    unread: Duration,
    /// Since when the client is silent without owing an answer, and whether a head has begun.
    silent: Option<(Instant, bool)>,
    /// Since when the client takes nothing.
    stuck: Option<Instant>,
    bell: Option<Pin<Box<Sleep>>>,
}

impl<S> ClientIo<S> {
    pub(crate) fn new(stream: S, clock: Arc<Clock>, timeouts: &Timeouts) -> Self {
        Self {
            stream,
            clock,
            head: Duration::from_millis(timeouts.head_ms),
            keep_alive: Duration::from_millis(timeouts.keep_alive_ms),
            unread: Duration::from_millis(timeouts.client_idle_ms),
            silent: None,
            stuck: None,
            bell: None,
        }
    }

    /// When this connection has waited long enough.
    fn deadline(&self) -> Option<Instant> {
        let silent =
            self.silent.map(|(since, head)| since + if head { self.head } else { self.keep_alive });
        let stuck = self.stuck.map(|since| since + self.unread);
        match (silent, stuck) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, other) => one.or(other),
        }
    }

    /// Ready when it has.
    fn poll_bell(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let Some(deadline) = self.deadline() else { return Poll::Pending };
        let bell =
            self.bell.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline.into())));
        // A bell set for an earlier wait rings early, which is harmless; one set for later is not.
        if bell.deadline() > deadline.into() {
            bell.as_mut().reset(deadline.into());
        }
        while bell.as_mut().poll(cx).is_ready() {
            if Instant::now() >= deadline {
                return Poll::Ready(io::ErrorKind::TimedOut.into());
            }
            bell.as_mut().reset(deadline.into());
        }
        Poll::Pending
    }

    fn note_silence(&mut self) {
        if self.clock.busy.load(Ordering::Relaxed) > 0 {
            self.silent = None;
        } else if self.silent.is_none() {
            self.silent = Some((Instant::now(), false));
        }
    }

    fn note_bytes(&mut self) {
        if self.clock.busy.load(Ordering::Relaxed) > 0 {
            self.silent = None;
        } else if !self.silent.is_some_and(|(_, head)| head) {
            self.silent = Some((Instant::now(), true));
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ClientIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buffer) {
            Poll::Ready(done) => {
                if buffer.filled().len() > before {
                    self.note_bytes();
                }
                Poll::Ready(done)
            }
            Poll::Pending => {
                self.note_silence();
                Poll::Ready(Err(ready!(self.poll_bell(cx))))
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ClientIo<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.after_write(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.after_write(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<S> ClientIo<S> {
    fn after_write(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        self.stuck.get_or_insert_with(Instant::now);
        Poll::Ready(Err(ready!(self.poll_bell(cx))))
    }
}
