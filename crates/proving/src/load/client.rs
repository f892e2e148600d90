//! One client: keeps its connection, asks, reads to the end, and says how that went.

use super::bodies::Message;
use super::histogram::Histogram;
use super::named::Named;
use super::plan::{Habit, LoadPlan};
use crate::history::End;
use crate::http::{BodyReader, Finder, HEAD_BYTES, Head, answer_head, header_of};
use crate::sockets;
use bytes::Buf;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout_at};

/// How a request went.
#[derive(Clone, Debug)]
pub struct ClientOutcome {
    pub end: End,
    /// Of the answer; 0 without one.
    pub status: u16,
    /// When the last byte of the request was out.
    pub sent: Option<Instant>,
    pub first_byte: Option<Instant>,
    pub first_event: Option<Instant>,
    pub events: u64,
    pub bytes: u64,
    /// Connections tried.
    pub tries: u32,
    /// What an unusual end said.
    pub note: Option<String>,
    /// The answer's `x-flyball-reason`, if it was no success.
    pub reason: Option<String>,
    /// The model that the answer named, if that was asked for.
    pub model: Option<String>,
}

/// One client.
pub struct Client {
    targets: Vec<SocketAddr>,
    next_target: usize,
    source: u8,
    deadline: Duration,
    connection: Option<TcpStream>,
    buffer: Vec<u8>,
    events: Finder,
    done: Finder,
    error: Finder,
    named: Option<Named>,
}

/// Bytes kept of an answer that is no success.
const NOTE_BYTES: usize = 400;
/// A slow client reads so much, then waits so long.
const SLOW_BYTES: usize = 256;
const SLOW_PAUSE: Duration = Duration::from_millis(40);
/// A slow client keeps little in its socket, or the kernel would read on for it.
const READ_BYTES: usize = 16 << 10;
/// Connections to fresh addresses before a request counts as refused.
const MOST_TRIES: u32 = 4;

impl Client {
    /// The `index`-th client of a plan.
    pub fn new(plan: &LoadPlan, index: usize) -> Self {
        let deadline = Duration::from_secs_f64(plan.deadline_seconds);
        let mut client = Self::to(plan.target.clone(), index, deadline);
        client.source = (index % usize::from(plan.sources.max(1))) as u8;
        client
    }

    /// A client that connects to the `first` of these, and where that fails to the next.
    pub fn to(targets: Vec<SocketAddr>, first: usize, deadline: Duration) -> Self {
        Self {
            targets,
            next_target: first,
            source: 0,
            deadline,
            connection: None,
            buffer: Vec::new(),
            events: Finder::new(b"data: "),
            done: Finder::new(b"data: [DONE]"),
            error: Finder::new(b"\"error\":"),
            named: None,
        }
    }

    /// Looks for the model's name in every answer.
    pub fn naming(mut self) -> Self {
        self.named = Some(Named::default());
        self
    }

    /// Asks, and reads the answer to its end.
    pub async fn ask(
        &mut self,
        message: &Message,
        habit: Habit,
        between: &mut Histogram,
    ) -> ClientOutcome {
        let begun = Instant::now();
        let leaves = match habit {
            Habit::Leaves { after } => after < self.deadline,
            _ => false,
        };
        let deadline = match habit {
            Habit::Leaves { after } if leaves => begun + after,
            _ => begun + self.deadline,
        };
        let mut tries = 0;
        loop {
            tries += 1;
            let reused = self.connection.is_some();
            let mut outcome = ClientOutcome::new(tries);
            let attempt = self.ask_once(message, habit, between, &mut outcome);
            match timeout_at(deadline, attempt).await {
                Ok(Ok(closes)) => {
                    // Who is refused in order keeps its connection.
                    if closes || !matches!(outcome.end, End::Whole | End::Status) {
                        self.connection = None;
                    }
                    return outcome;
                }
                Ok(Err(error)) => {
                    self.connection = None;
                    outcome.note = Some(error.to_string());
                    // As HTTP clients do: a kept connection may have been closed under the request,
                    // and what refuses to connect has taken nothing. Both are safe to ask again.
                    let safe = match outcome.end {
                        End::Refused => true,
                        End::Unanswered => reused,
                        _ => false,
                    };
                    if !safe || tries >= MOST_TRIES {
                        return outcome;
                    }
                }
                Err(_) => {
                    self.connection = None;
                    outcome.end = if leaves { End::Cancelled } else { End::Hung };
                    return outcome;
                }
            }
        }
    }

    /// True if the connection cannot be used again. The outcome holds what is known so far,
    /// whatever happens.
    async fn ask_once(
        &mut self,
        message: &Message,
        habit: Habit,
        between: &mut Histogram,
        outcome: &mut ClientOutcome,
    ) -> io::Result<bool> {
        outcome.end = End::Refused;
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        outcome.end = End::Unanswered;
        send(&mut connection, message).await?;
        outcome.sent = Some(Instant::now());
        match habit {
            Habit::Cancels { after_events: 0 } => return Ok(outcome.cancelled()),
            Habit::HalfCloses => connection.shutdown().await?,
            _ => {}
        }
        self.buffer.clear();
        let head = loop {
            if let Some(head) = answer_head(&self.buffer).map_err(io::Error::other)? {
                break head;
            }
            if self.buffer.len() > HEAD_BYTES {
                return Err(io::Error::other("the head of the answer has no end"));
            }
            if connection.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::Error::other("closed before an answer"));
            }
            outcome.first_byte.get_or_insert_with(Instant::now);
        };
        outcome.status = head.status;
        outcome.end = End::Broken;
        if head.status != 200 {
            let reason = header_of(&self.buffer[..head.bytes], "x-flyball-reason");
            outcome.reason = reason.map(str::to_owned);
        }
        self.buffer.drain(..head.bytes);
        let streams = message.streams;
        self.read_body(&mut connection, &head, streams, habit, between, outcome).await?;
        if outcome.end == End::Cancelled {
            return Ok(true);
        }
        outcome.end = self.judge(&head, streams, outcome);
        let closes = head.closes || habit == Habit::HalfCloses;
        self.connection = Some(connection);
        Ok(closes)
    }

    async fn connect(&mut self) -> io::Result<TcpStream> {
        let target = self.targets[self.next_target % self.targets.len()];
        self.next_target += 1;
        sockets::connect(target, self.source).await
    }

    async fn read_body(
        &mut self,
        connection: &mut TcpStream,
        head: &Head,
        streams: bool,
        habit: Habit,
        between: &mut Histogram,
        outcome: &mut ClientOutcome,
    ) -> io::Result<()> {
        let mut body = BodyReader::new(head.framing);
        let (events, done, error) = (&mut self.events, &mut self.done, &mut self.error);
        let watches = streams || head.status != 200;
        if let Some(named) = &mut self.named {
            named.reset();
        }
        [&mut *events, &mut *done, &mut *error].into_iter().for_each(Finder::reset);
        let mut last: Option<Instant> = None;
        loop {
            let used = body.feed(&self.buffer, |content| {
                outcome.bytes += content.len() as u64;
                if let Some(named) = &mut self.named {
                    named.feed(content);
                }
                if watches {
                    events.feed(content);
                    done.feed(content);
                    error.feed(content);
                    if head.status != 200 || error.count > 0 {
                        note(&mut outcome.note, content);
                    }
                }
            });
            let used = used.map_err(io::Error::other)?;
            self.buffer.drain(..used);
            if streams && events.count > outcome.events {
                let now = Instant::now();
                outcome.first_event.get_or_insert(now);
                if let Some(last) = last.replace(now) {
                    between.record((now - last).as_nanos() as u64);
                }
            }
            outcome.events = events.count;
            if body.is_done() {
                outcome.model = self.named.as_mut().and_then(Named::take);
                return Ok(());
            }
            match habit {
                Habit::Cancels { after_events } if events.count >= after_events => {
                    outcome.cancelled();
                    return Ok(());
                }
                Habit::Slow => sleep(SLOW_PAUSE).await,
                _ => {}
            }
            let room = if habit == Habit::Slow { SLOW_BYTES } else { READ_BYTES };
            self.buffer.reserve(room);
            let mut part = (&mut *connection).take(room as u64);
            if part.read_buf(&mut self.buffer).await? == 0 {
                if body.closed() {
                    return Ok(());
                }
                return Err(io::Error::other("closed in the middle of the answer"));
            }
        }
    }

    /// How an answer that was framed whole ended.
    fn judge(&self, head: &Head, streams: bool, outcome: &ClientOutcome) -> End {
        if head.status != 200 {
            End::Status
        } else if !streams || self.done.count > 0 {
            End::Whole
        } else if self.error.count > 0 {
            End::ErrorEvent
        } else {
            debug_assert!(outcome.first_byte.is_some());
            End::Short
        }
    }
}

impl ClientOutcome {
    fn new(tries: u32) -> Self {
        Self {
            end: End::Refused,
            status: 0,
            sent: None,
            first_byte: None,
            first_event: None,
            events: 0,
            bytes: 0,
            tries,
            note: None,
            reason: None,
            model: None,
        }
    }

    fn cancelled(&mut self) -> bool {
        self.end = End::Cancelled;
        true
    }
}

async fn send(connection: &mut TcpStream, message: &Message) -> io::Result<()> {
    let mut all = Buf::chain(message.start.as_slice(), message.rest.as_ref());
    connection.write_all_buf(&mut all).await
}

fn note(note: &mut Option<String>, content: &[u8]) {
    let note = note.get_or_insert_with(String::new);
    if note.len() < NOTE_BYTES {
        let part = &content[..content.len().min(NOTE_BYTES - note.len())];
        note.push_str(&String::from_utf8_lossy(part));
    }
}
