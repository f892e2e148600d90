//! The answer to a stream's request while its model wakes: comments, so that nobody in between thinks
//! that it is dead, and then what the engine says.
//!
//! The status has gone out by then. What goes wrong later is said as an event.

use super::wait::wait;
use crate::admit::{Gate, InLine};
use crate::aim::Job;
use crate::answer::{Dialect, Problem};
use crate::forward::{Relay, Worker};
use crate::phase::{Granted, Open};
use bytes::{Bytes, BytesMut};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// Between two comments. Load balancers and clients that cut silent connections do so after 30 s or
/// more.
const COMMENT: Duration = Duration::from_secs(5);

/// What comes of the wait.
type Answered = Result<Response<Box<Relay>>, Problem>;

type Work = Pin<Box<dyn Future<Output = Answered> + Send>>;

/// A body that waits.
pub(crate) struct Held {
    state: State,
    dialect: Dialect,
    since: Instant,
    eta: Option<Duration>,
    gate: Arc<Gate>,
    comment: Pin<Box<Sleep>>,
}

enum State {
    /// The model wakes.
    Waits(Work),
    /// An engine answers with events.
    Events(Box<Relay>),
    /// An engine answers with something else, which becomes one event.
    Whole(Box<Relay>, BytesMut),
    Over,
}

/// Bytes of an answer that becomes an event. Errors are short.
const WHOLE_BYTES: usize = 64 << 10;

impl Held {
    pub(super) fn answer(
        worker: &Arc<Worker>,
        line: InLine,
        job: Box<Job>,
        granted: Open<Granted>,
    ) -> Response<Self> {
        let (eta, dialect) = (line.eta, Dialect::of(granted.head().surface.path()));
        let (worker, gate) = (Arc::clone(worker), line.gate());
        let work: Work = Box::pin(async move { wait(&worker, line, job, granted).await });
        let held = Self {
            state: State::Waits(work),
            dialect,
            since: Instant::now(),
            eta,
            gate,
            // The first one goes out with the head.
            comment: Box::pin(tokio::time::sleep(Duration::ZERO)),
        };
        let mut response = Response::new(held);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert("x-flyball-held", HeaderValue::from_static("true"));
        if let Some(eta) = eta {
            headers.insert("x-flyball-eta-s", HeaderValue::from(eta.as_secs().max(1)));
        }
        response
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            match &mut self.state {
                State::Waits(work) => match work.as_mut().poll(cx) {
                    Poll::Pending => return self.poll_comment(cx).map(|text| Some(Ok(text))),
                    Poll::Ready(answered) => {
                        if let Some(event) = self.answered(answered) {
                            return Poll::Ready(Some(Ok(event)));
                        }
                    }
                },
                State::Events(relay) => {
                    let next = std::task::ready!(relay.poll_next(cx));
                    if next.is_none() {
                        self.state = State::Over;
                    }
                    return Poll::Ready(next);
                }
                State::Whole(relay, text) => {
                    let next = std::task::ready!(relay.poll_next(cx));
                    match next {
                        Some(Ok(piece)) => {
                            let left = WHOLE_BYTES.saturating_sub(text.len());
                            text.extend_from_slice(&piece[..piece.len().min(left)]);
                        }
                        Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                        None => {
                            let event = crate::sse::write_event(None, &one_line(text));
                            self.state = State::Over;
                            return Poll::Ready(Some(Ok(event)));
                        }
                    }
                }
                State::Over => return Poll::Ready(None),
            }
        }
    }

    pub(crate) const fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// Goes on with what came of the wait. An event, if nothing else comes.
    fn answered(&mut self, answered: Answered) -> Option<Bytes> {
        match answered {
            Ok(response) => {
                let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
                let events = kind.is_some_and(|kind| kind.starts_with(b"text/event-stream"));
                let relay = response.into_body();
                self.state = match events {
                    true => State::Events(relay),
                    false => State::Whole(relay, BytesMut::new()),
                };
                None
            }
            Err(problem) => {
                self.state = State::Over;
                Some(problem.event(self.dialect))
            }
        }
    }

    fn poll_comment(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        std::task::ready!(self.comment.as_mut().poll(cx));
        self.comment.as_mut().reset((Instant::now() + COMMENT).into());
        // Asks to be woken at the next one.
        let _ = self.comment.as_mut().poll(cx);
        let waited = self.since.elapsed();
        // The operator may have said more since it came.
        let learned = || self.eta.map(|eta| eta.saturating_sub(waited));
        let text = match self.gate.promised().or_else(learned).map(|left| left.as_secs()) {
            Some(0) => ": the model is waking up; it should be ready any moment\n\n".to_owned(),
            Some(left) => format!(": the model is waking up; about {left} s to go\n\n"),
            None => format!(": the model is waking up; {} s so far\n\n", waited.as_secs()),
        };
        Poll::Ready(text.into())
    }
}

fn one_line(text: &[u8]) -> String {
    String::from_utf8_lossy(text).replace(['\r', '\n'], " ")
}
