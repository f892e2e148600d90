//! The body of every answer: one that is there, one that an engine gives, one that waits for a model.

use super::held::Held;
use crate::accept::{Busy, PIECE_BYTES, Reader};
use crate::forward::Relay;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The body of an answer, and the note that its connection is busy until it is gone.
pub(crate) struct Payload {
    what: What,
    busy: Option<Busy>,
    reader: Option<Box<Pieces>>,
}

/// What a stream of HTTP/2 has beside: who reads it, and what did not fit into the last piece.
struct Pieces {
    reader: Arc<Reader>,
    rest: Bytes,
}

enum What {
    Whole(Option<Bytes>),
    Relay(Box<Relay>),
    Held(Box<Held>),
}

impl Payload {
    /// An answer that is there.
    pub(crate) const fn whole(body: Bytes) -> Self {
        Self::new(What::Whole(Some(body)))
    }

    /// An engine's. In a box already, because a future that waits for it would carry it.
    pub(crate) const fn relay(relay: Box<Relay>) -> Self {
        Self::new(What::Relay(relay))
    }

    /// That of a request whose model wakes.
    pub(crate) fn held(held: Held) -> Self {
        Self::new(What::Held(Box::new(held)))
    }

    const fn new(what: What) -> Self {
        Self { what, busy: None, reader: None }
    }

    /// Keeps the connection busy until this body is gone.
    pub(crate) fn keep(mut self, busy: Busy) -> Self {
        self.busy = Some(busy);
        self
    }

    /// Goes in pieces that this client is seen to read.
    pub(crate) fn for_reader(mut self, reader: Arc<Reader>) -> Self {
        reader.offer();
        self.reader = Some(Box::new(Pieces { reader, rest: Bytes::new() }));
        self
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        match &mut self.what {
            What::Whole(body) => Poll::Ready(body.take().map(Ok)),
            What::Relay(relay) => relay.poll_next(cx),
            What::Held(held) => held.poll_next(cx),
        }
    }

    fn rest(&self) -> usize {
        self.reader.as_ref().map_or(0, |pieces| pieces.rest.len())
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let Some(mut pieces) = self.reader.take() else {
            return self.poll_next(cx).map(|next| next.map(|next| next.map(Frame::data)));
        };
        let next = match pieces.rest.is_empty() {
            true => self.poll_next(cx),
            false => Poll::Ready(Some(Ok(std::mem::take(&mut pieces.rest)))),
        };
        let next = next.map_ok(|mut piece| {
            pieces.rest = piece.split_off(piece.len().min(PIECE_BYTES));
            piece
        });
        match next {
            Poll::Pending => pieces.reader.waits(),
            Poll::Ready(_) => pieces.reader.offer(),
        }
        self.reader = Some(pieces);
        next.map(|next| next.map(|next| next.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        let over = match &self.what {
            What::Whole(body) => body.as_ref().is_none_or(Bytes::is_empty),
            What::Relay(relay) => relay.is_over(),
            What::Held(held) => held.is_over(),
        };
        over && self.rest() == 0
    }

    fn size_hint(&self) -> SizeHint {
        match &self.what {
            What::Whole(body) => {
                let left = body.as_ref().map_or(0, Bytes::len) + self.rest();
                SizeHint::with_exact(left as u64)
            }
            What::Relay(relay) => relay.size_hint(),
            What::Held(_) => SizeHint::new(),
        }
    }
}
