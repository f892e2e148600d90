//! A batch stream makes room for others: its connection is cut, so that its engine is free of it, and when it has another
//! turn an engine goes on from the text so far.

use super::Relay;
use bytes::Bytes;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// Between two comments while it waits. Load balancers and clients that cut silent connections do so after 30 s or more.
const COMMENT: Duration = Duration::from_secs(5);

/// The wait of a stream that made room.
pub(super) struct Waits {
    since: Instant,
    comment: Pin<Box<Sleep>>,
}

impl Waits {
    fn now() -> Self {
        Self { since: Instant::now(), comment: Box::pin(tokio::time::sleep(COMMENT)) }
    }

    /// What the client reads meanwhile, now and then.
    pub(super) fn poll_comment(&mut self, context: &mut Context<'_>) -> Poll<Bytes> {
        std::task::ready!(self.comment.as_mut().poll(context));
        self.comment.as_mut().reset((Instant::now() + COMMENT).into());
        // Asks to be woken at the next one.
        let _ = self.comment.as_mut().poll(context);
        let waited = self.since.elapsed().as_secs();
        let text = format!(": flyball: made room for others; waiting, {waited} s so far\n\n");
        Poll::Ready(text.into())
    }
}

impl Relay {
    /// Whether it was told to make room, and did.
    pub(super) fn makes_room(&mut self, context: &Context<'_>) -> bool {
        let Some(turn) = &self.answering.sending.admitted.turn else { return false };
        if turn.poll_make_room(context).is_pending() {
            return false;
        }
        let tokens = self.tokens();
        let engine = self.answering.engine().endpoint.engine;
        let goes_on = |text: &&str| {
            let seam = self.seam.as_ref();
            seam.is_some_and(|seam| seam.resumable.could_go_on(text, tokens, engine))
        };
        let text = self.seam.as_ref().and_then(|seam| seam.so_far.text());
        let text = text.filter(|_| self.failure.is_none()).filter(goes_on).map(ToOwned::to_owned);
        let Some(text) = text else {
            // Somebody else makes room.
            turn.stands();
            return false;
        };
        self.stop_for_others(text, tokens);
        true
    }

    fn stop_for_others(&mut self, text: String, tokens: u64) {
        self.cut();
        self.partial.clear();
        let turn = self.answering.sending.admitted.turn.take();
        self.answering.sending.admitted.makes_room();
        let (Some(seam), Some(turn)) = (&mut self.seam, turn) else { return };
        seam.tokens = tokens;
        let worker = Arc::clone(&self.worker);
        seam.asking =
            Some(Box::pin(seam.resumable.clone().go_on_later(worker, text, tokens, turn)));
        seam.waits = Some(Waits::now());
    }
}
