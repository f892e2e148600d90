//! Passes an answer on, piece by piece, and watches it.
//!
//! Of a stream, only whole events are passed on: if the engine breaks off in the middle of one, the
//! client reads a whole error event and not the half of something else. `seam` lets another engine go
//! on where that is possible, `later` lets a batch request make room for others, `paid` stops a stream whose money ends.

mod later;
mod paid;
mod seam;

use super::answering::Answering;
use super::attempt::Stream;
use super::connection::Connection;
use super::continued::{Joined, Resumable};
use super::worker::Worker;
use crate::answer::{Dialect, Problem};
use crate::finished::RequestOutcome;
use crate::phase::Open;
use crate::sse::{Usage, Watcher, finish_of, usage_of};
use bytes::{Bytes, BytesMut};
use flyball_fleet::Flight;
use http_body::{Body as _, SizeHint};
use hyper::body::Incoming;
use paid::Meter;
use seam::Seam;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// How often a quiet stream looks at the clock, at its engine and at the door.
const TICK: Duration = Duration::from_secs(1);

/// Silence of an engine that is lost, after which its streams are given up.
const LOST: Duration = Duration::from_secs(3);

/// Bytes at the end of a whole answer among which its usage stands.
const TAIL_BYTES: usize = 4 << 10;

/// Pieces that came at once are passed on together up to so many bytes. More would be copied for
/// nothing: pieces of this size cost little each.
const TOGETHER_BYTES: usize = 16 << 10;

/// An answer under way to a client.
pub(crate) struct Relay {
    worker: Arc<Worker>,
    body: Incoming,
    connection: Option<Connection>,
    /// Until it is over.
    flight: Option<Flight>,
    answering: Open<Answering>,
    ready: VecDeque<Bytes>,
    ready_bytes: usize,
    /// The beginning of an event whose end has not come.
    partial: BytesMut,
    watcher: Option<Watcher>,
    tail: Option<Bytes>,
    /// While another engine could go on if this one broke off.
    seam: Option<Box<Seam>>,
    /// Since another engine has.
    joined: Option<Joined>,
    /// Where it is paid for as it goes.
    meter: Meter,
    /// Whether an event that says what it came to is for us alone.
    hides_usage: bool,
    /// What the engine said about its own failure, not passed on yet.
    failure: Option<Bytes>,
    length: SizeHint,
    idle: Duration,
    last_event: Instant,
    check: Option<Pin<Box<Sleep>>>,
    over: bool,
}

impl Relay {
    pub(super) fn new(
        worker: Arc<Worker>,
        stream: Stream,
        flight: Flight,
        mut answering: Open<Answering>,
        idle: Duration,
        resumable: Option<Resumable>,
    ) -> Self {
        let Stream { body, connection, first, between_events, watcher } = stream;
        let length = if watcher.is_some() { SizeHint::new() } else { body.size_hint() };
        let hides_usage = answering.sending.admitted.granted().hides_usage();
        let mut relay = Self {
            worker,
            body,
            connection: Some(connection),
            flight: Some(flight),
            answering,
            ready: VecDeque::new(),
            ready_bytes: 0,
            partial: BytesMut::new(),
            watcher,
            tail: None,
            seam: resumable.map(|resumable| Box::new(Seam::new(resumable))),
            joined: None,
            meter: Meter::default(),
            hides_usage,
            failure: None,
            length,
            idle,
            last_event: Instant::now(),
            check: None,
            over: false,
        };
        if let Some(turn) = &relay.answering.sending.admitted.turn {
            // Before a piece of it goes out: from then on only what can be continued makes room.
            if relay.seam.is_some() { turn.writes() } else { turn.stands() }
        }
        relay.begin(first, between_events);
        if relay.watcher.is_none() && relay.body.is_end_stream() {
            relay.end_whole();
        }
        relay
    }

    /// The next piece for the client.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            if self.over || self.ready_bytes >= TOGETHER_BYTES {
                return Poll::Ready(self.next_ready().map(Ok));
            }
            let waits = self.poll_paying(cx).or_else(|| self.poll_asking(cx));
            if let Some(waits) = waits {
                match (waits, self.next_ready()) {
                    (_, Some(piece)) => return Poll::Ready(Some(Ok(piece))),
                    (Poll::Pending, None) => return Poll::Pending,
                    (Poll::Ready(Ok(())), None) => continue,
                    (Poll::Ready(Err(error)), None) => return Poll::Ready(Some(Err(error))),
                }
            }
            if self.makes_room(cx) {
                continue;
            }
            let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else {
                if let Some(piece) = self.next_ready() {
                    return Poll::Ready(Some(Ok(piece)));
                }
                match self.poll_quiet(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(problem) => match self.give_up(&problem) {
                        Ok(()) => continue,
                        Err(error) => return Poll::Ready(Some(Err(error))),
                    },
                }
            };
            let went = match frame {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => self.take(piece),
                    Err(_) => Ok(()),
                },
                Some(Err(_)) => self.end_early(),
                None => self.end(),
            };
            if let Err(error) = went {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over && self.ready.is_empty()
    }

    /// As it was in the beginning: hyper asks once, before the first piece.
    pub(crate) fn size_hint(&self) -> SizeHint {
        self.length
    }

    fn take(&mut self, piece: Bytes) -> io::Result<()> {
        let Some(watcher) = &mut self.watcher else {
            self.last_event = Instant::now();
            self.tail = Some(tail_of(self.tail.take(), &piece));
            self.queue(piece);
            // hyper does not ask again when it has as many bytes as the head promised.
            return if self.body.is_end_stream() { self.end() } else { Ok(()) };
        };
        match watcher.feed(&piece) {
            Ok(progress) => {
                if progress.events > 0 {
                    self.last_event = Instant::now();
                }
                self.pass(piece, progress.between_events);
                if self.partial.len() > Watcher::LINE_BYTES || self.failure.is_some() {
                    return self.give_up(&Problem::BrokenStream);
                }
                Ok(())
            }
            Err(_) => self.give_up(&Problem::BrokenStream),
        }
    }

    /// The first pieces of an engine that has begun.
    fn begin(&mut self, first: Vec<Bytes>, between_events: bool) {
        if let Some(flight) = &mut self.flight {
            flight.has_read();
        }
        if let Some(turn) = &self.answering.sending.admitted.turn {
            turn.has_read();
        }
        let pieces = first.len();
        for (place, piece) in first.into_iter().enumerate() {
            // The watcher has seen these; only the last may end within an event.
            self.pass(piece, place + 1 < pieces || between_events);
        }
        if self.failure.is_some() {
            // An error would be one of an answer that is no stream.
            let _ = self.give_up(&Problem::BrokenStream);
        }
    }

    /// Another engine goes on.
    fn follow(&mut self, stream: Stream, flight: Flight) {
        let Stream { body, connection, first, between_events, watcher } = stream;
        self.body = body;
        self.connection = Some(connection);
        self.flight = Some(flight);
        self.watcher = watcher;
        self.begin(first, between_events);
    }

    fn queue(&mut self, piece: Bytes) {
        self.answering.add(&piece);
        self.ready_bytes += piece.len();
        self.ready.push_back(piece);
    }

    /// What has come, as one piece: an engine that is ahead of us sends many at once, and each piece
    /// costs a frame.
    fn next_ready(&mut self) -> Option<Bytes> {
        let bytes = std::mem::take(&mut self.ready_bytes);
        if self.ready.len() < 2 || bytes > 2 * TOGETHER_BYTES {
            let piece = self.ready.pop_front();
            self.ready_bytes = bytes - piece.as_ref().map_or(0, Bytes::len);
            return piece;
        }
        let mut together = BytesMut::with_capacity(bytes);
        self.ready.drain(..).for_each(|piece| together.extend_from_slice(&piece));
        Some(together.freeze())
    }

    /// Passes on what is whole, and keeps the beginning of what is not.
    fn pass(&mut self, piece: Bytes, whole: bool) {
        if whole && self.partial.is_empty() {
            self.pass_events(piece);
            return;
        }
        self.partial.extend_from_slice(&piece);
        let end = if whole { self.partial.len() } else { last_boundary(&self.partial) };
        if end > 0 {
            let whole = self.partial.split_to(end).freeze();
            self.pass_events(whole);
        }
    }

    /// The engine has said all it had to say.
    fn end(&mut self) -> io::Result<()> {
        if self.watcher.as_ref().is_some_and(|watcher| !watcher.seen().ended) {
            return self.give_up(&Problem::BrokenStream);
        }
        if !self.partial.is_empty() {
            let rest = self.partial.split().freeze();
            self.pass_events(rest);
        }
        // What waits for money is a part of it.
        self.meter.has_ended = self.meter.is_paying();
        if !self.meter.has_ended {
            self.end_whole();
        }
        Ok(())
    }

    fn end_whole(&mut self) {
        self.over = true;
        if let Some(flight) = self.flight.take() {
            flight.endpoint().breaker.succeeded();
        }
        if let Some(connection) = self.connection.take() {
            self.worker.pool.put(connection, self.last_event);
        }
        let erred = self.watcher.as_ref().is_some_and(|watcher| watcher.seen().error);
        if !erred {
            self.answering.sending.trail.answered(&self.worker);
        }
        self.account();
        self.answering.keep(erred, self.worker.shared.now());
        self.answering.finish(RequestOutcome::Answered, None);
    }

    /// The engine is gone in the middle of its answer.
    fn end_early(&mut self) -> io::Result<()> {
        if let Some(flight) = &self.flight {
            let trail = &self.answering.sending.trail;
            trail.died(&self.worker, flight.endpoint(), flight.began());
        }
        self.give_up(&Problem::BrokenStream)
    }

    /// The engine does not finish the answer. Another one does, or nobody.
    fn give_up(&mut self, problem: &Problem) -> io::Result<()> {
        let broke_off = *problem == Problem::BrokenStream;
        if broke_off {
            self.note_broken();
        }
        let goes_on = broke_off && self.ask_on();
        self.cut();
        if goes_on { Ok(()) } else { self.fail(problem) }
    }

    /// The answer cannot be finished: an event says so in a stream, and a cut connection otherwise.
    fn fail(&mut self, problem: &Problem) -> io::Result<()> {
        let refusal = self.answering.sending.trail.refusal(&self.worker);
        if refusal.is_some() {
            // What the engine said would be tried again.
            self.failure = None;
        }
        let problem = refusal.as_ref().unwrap_or(problem);
        self.over = true;
        self.account();
        self.answering.finish(RequestOutcome::Broken, Some(problem.code()));
        if self.watcher.is_none() {
            return Err(io::Error::other(problem.code()));
        }
        self.partial.clear();
        let ours = || problem.event(Dialect::of(self.answering.head().surface.path()));
        let event = self.failure.take().unwrap_or_else(ours);
        self.queue(event);
        Ok(())
    }

    /// Nothing comes: is there still somebody to wait for?
    fn poll_quiet(&mut self, cx: &mut Context<'_>) -> Poll<Problem> {
        let check = self.check.get_or_insert_with(|| Box::pin(tokio::time::sleep(TICK)));
        while check.as_mut().poll(cx).is_ready() {
            let quiet = self.last_event.elapsed();
            if quiet >= self.idle || (quiet >= LOST && lost(self.flight.as_ref())) {
                return Poll::Ready(Problem::BrokenStream);
            }
            if self.worker.shared.is_cut() {
                return Poll::Ready(Problem::Draining);
            }
            check.as_mut().reset((Instant::now() + TICK).into());
        }
        Poll::Pending
    }

    /// Cuts the connection, which tells the engine.
    fn cut(&mut self) {
        self.connection = None;
        if let Some(flight) = self.flight.take() {
            self.worker.shared.cancelled(flight);
        }
    }

    fn account(&mut self) {
        let (reported, finish, events) = match &self.watcher {
            Some(watcher) => (watcher.seen().usage, watcher.seen().finish, watcher.seen().events),
            None => {
                let (tail, surface) = (self.tail.as_deref(), self.answering.head().surface);
                (tail.and_then(usage_of), tail.and_then(|tail| finish_of(surface, tail)), 0)
            }
        };
        // An engine sends one event per token, unless it is far behind. What it says at the beginning of an answer that
        // was cut, as Anthropic's interface does, is not what that came to.
        let usage = match reported {
            Some(reported) if finish.is_some() => reported,
            Some(reported) => Usage { output: reported.output.max(events), ..reported },
            None => Usage { output: events, ..Usage::default() },
        };
        let usage = self.joined.as_ref().map_or(usage, |joined| joined.usage(usage));
        // What came beyond what was paid nobody got, and nobody pays for.
        let most = self.meter.stopped_at.unwrap_or(u64::MAX);
        let usage = Usage { output: usage.output.min(most), ..usage };
        self.answering.account(usage, reported.is_none(), finish);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if !self.over {
            // The client hung up.
            self.cut();
            self.account();
        }
    }
}

fn lost(flight: Option<&Flight>) -> bool {
    flight.is_some_and(|flight| flight.endpoint().is_lost())
}

/// The place after the last event that is whole; 0 if there is none.
fn last_boundary(bytes: &[u8]) -> usize {
    let after = |mark: &[u8]| memchr::memmem::rfind(bytes, mark).map_or(0, |at| at + mark.len());
    after(b"\n\n").max(after(b"\r\n\r\n")).max(after(b"\r\r"))
}

/// The place after the first event, if its end is there.
fn first_boundary(bytes: &[u8]) -> Option<usize> {
    let after = |mark: &[u8]| Some(memchr::memmem::find(bytes, mark)? + mark.len());
    [after(b"\n\n"), after(b"\r\n\r\n"), after(b"\r\r")].into_iter().flatten().min()
}

/// The last bytes of what came so far.
fn tail_of(before: Option<Bytes>, piece: &Bytes) -> Bytes {
    let from = piece.len().saturating_sub(TAIL_BYTES);
    let Some(before) = before.filter(|_| from == 0 && piece.len() < TAIL_BYTES) else {
        return piece.slice(from..);
    };
    let keep = (TAIL_BYTES - piece.len()).min(before.len());
    let mut joined = BytesMut::with_capacity(keep + piece.len());
    joined.extend_from_slice(&before[before.len() - keep..]);
    joined.extend_from_slice(piece);
    joined.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_event_ends_at_any_of_three_line_ends() {
        for (text, place) in [
            ("data: a\n\ndata: b", 9),
            ("data: a\r\n\r\ndata: b\r\n", 11),
            ("data: a\r\rx", 9),
            ("data: a\n", 0),
            ("", 0),
        ] {
            assert_eq!(last_boundary(text.as_bytes()), place, "{text:?}");
        }
    }

    #[test]
    fn the_tail_joins_small_pieces_and_stays_small() {
        let tail = tail_of(None, &Bytes::from_static(b"abc"));
        let tail = tail_of(Some(tail), &Bytes::from_static(b"def"));
        assert_eq!(&tail[..], b"abcdef");
        let tail = tail_of(Some(tail), &Bytes::from(vec![b'x'; TAIL_BYTES - 2]));
        assert_eq!(tail.len(), TAIL_BYTES);
        assert!(tail.starts_with(b"efx"));
        assert_eq!(tail_of(Some(tail), &Bytes::from(vec![b'y'; 9_000])).len(), TAIL_BYTES);
    }
}
