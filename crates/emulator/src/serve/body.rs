//! The bytes of an answer, as they become due.

use crate::api::{Answer, Frame as Event, Usage};
use crate::engine::Ticket;
use crate::faults::{Cut, How};
use crate::words::Voice;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep};

/// How long what was written before a cut has to leave: a connection that breaks takes with it what
/// is still in its buffer.
const FLUSH: Duration = Duration::from_millis(20);
/// Between two comments of a stalled stream; llama-server sends one a second.
const COMMENT: Duration = Duration::from_secs(1);

/// What is no event and no JSON.
pub(super) const GARBAGE: &[u8] = b"\x00\xff}{ this is not an event \xfe\n\n";

/// The connection breaks here, because it was asked to or because the engine is gone.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the response was cut off")]
pub(crate) struct Broken;

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum AnswerBody {
    /// All at once.
    Whole(Option<Bytes>),
    /// So much, and then the connection breaks.
    Half(Option<Bytes>, Pin<Box<Sleep>>),
    /// Token by token.
    Tokens(Box<Tokens>),
}

/// A stream of tokens.
#[derive(Debug)]
pub(crate) struct Tokens {
    pub(super) ticket: Ticket,
    pub(super) answer: Answer,
    voice: Voice,
    pub(super) prompt: u32,
    pub(super) event: Event,
    pub(super) cut: Option<Cut>,
    /// Closes the connection when the stream has ended, if it should.
    pub(super) close: Option<Arc<Notify>>,
    sent: u32,
    at: At,
}

/// Where a stream is.
#[derive(Debug)]
enum At {
    Start,
    Middle,
    Stalled(Pin<Box<Sleep>>),
    Breaking(Pin<Box<Sleep>>),
    End,
}

impl AnswerBody {
    pub(super) fn half(bytes: Bytes) -> Self {
        Self::Half(Some(bytes), Box::pin(sleep(FLUSH)))
    }
}

impl Tokens {
    pub(super) fn new(
        ticket: Ticket,
        answer: Answer,
        prompt: u32,
        cut: Option<Cut>,
        close: Option<Arc<Notify>>,
    ) -> Self {
        let event = answer.frame();
        // A stream that ends before its cut is whole.
        let cut = cut.filter(|cut| cut.after_tokens < answer.output);
        let voice = answer.voice;
        Self { ticket, answer, voice, prompt, event, cut, close, sent: 0, at: At::Start }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        match &mut self.at {
            At::End => return Poll::Ready(None),
            At::Breaking(flush) => {
                ready!(flush.as_mut().poll(cx));
                self.at = At::End;
                return Poll::Ready(Some(Err(Broken)));
            }
            At::Stalled(pause) => {
                ready!(pause.as_mut().poll(cx));
                pause.as_mut().reset(Instant::now() + COMMENT);
                return Poll::Ready(Some(Ok(Bytes::from_static(b": waiting\n\n"))));
            }
            At::Start | At::Middle => {}
        }
        let Ok(emitted) = ready!(self.ticket.progress().poll_more(self.sent, cx)) else {
            self.at = At::End;
            return Poll::Ready(Some(Err(Broken)));
        };
        Poll::Ready(Some(Ok(self.write(emitted).into())))
    }

    /// The events of all tokens up to this one.
    fn write(&mut self, emitted: u32) -> Vec<u8> {
        let mut text = Vec::with_capacity(512);
        let cached = self.ticket.progress().cached();
        let usage = Usage { prompt: self.prompt, cached, output: self.answer.output };
        if matches!(self.at, At::Start) {
            text.extend_from_slice(self.answer.opening(usage).as_bytes());
            self.at = At::Middle;
        }
        let last = self.cut.map_or(self.answer.output, |cut| cut.after_tokens);
        let until = emitted.min(last);
        for token in self.sent..until {
            self.event.write(token, self.voice.word(), &mut text);
        }
        self.sent = emitted;
        match self.cut {
            Some(cut) if until == last => self.go_wrong(cut.how, &mut text),
            None if until == last => {
                text.extend_from_slice(self.answer.closing(usage).as_bytes());
                self.end();
            }
            _ => {}
        }
        text
    }

    fn go_wrong(&mut self, how: How, text: &mut Vec<u8>) {
        match how {
            How::Broken => self.at = At::Breaking(Box::pin(sleep(FLUSH))),
            How::Ended => self.end(),
            How::Garbage => {
                text.extend_from_slice(GARBAGE);
                self.end();
            }
            How::Stalled => self.at = At::Stalled(Box::pin(sleep(COMMENT))),
        }
    }

    fn end(&mut self) {
        self.at = At::End;
        if let Some(close) = &self.close {
            close.notify_one();
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Half(bytes, flush) => match bytes.take() {
                Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                None => {
                    ready!(flush.as_mut().poll(cx));
                    Poll::Ready(Some(Err(Broken)))
                }
            },
            Self::Tokens(tokens) => {
                tokens.poll(cx).map(|bytes| bytes.map(|bytes| bytes.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Half(..) => false,
            Self::Tokens(tokens) => matches!(tokens.at, At::End),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64))
            }
            Self::Half(..) | Self::Tokens(_) => SizeHint::default(),
        }
    }
}
