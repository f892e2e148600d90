//! One request on a connection of its own.

use crate::http;
use memchr::memmem;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

/// A whole answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// From the first byte sent to the first event read.
    pub(super) first: Duration,
    /// The same to the last event read.
    pub(super) last: Duration,
    pub(super) events: u64,
}

/// Why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failed {
    #[error("no connection")]
    Connect,
    #[error("connection lost")]
    Broken,
    #[error("status {0}")]
    Status(u16),
    #[error("ended before [DONE]")]
    Short,
    #[error("past its deadline")]
    Late,
}

/// Bytes read at once.
const PIECE: usize = 16 << 10;

/// How an event begins, and how the last one does.
const EVENT: &[u8] = b"data: ";
const LAST: &[u8] = b"data: [DONE]";

/// Asks and reads the stream to its end.
pub(super) async fn ask(
    target: SocketAddr,
    body: &str,
    deadline: Duration,
) -> Result<Answer, Failed> {
    timeout(deadline, ask_once(target, body)).await.unwrap_or(Err(Failed::Late))
}

async fn ask_once(target: SocketAddr, body: &str) -> Result<Answer, Failed> {
    let begun = Instant::now();
    let mut connection = TcpStream::connect(target).await.map_err(|_| Failed::Connect)?;
    connection.set_nodelay(true).map_err(|_| Failed::Connect)?;
    let broken = |_: io::Error| Failed::Broken;
    // The connection closes after the answer, which tells its end, so that framing need not be read.
    http::send(&mut connection, target, "/v1/chat/completions", body).await.map_err(broken)?;
    let mut watch = Watch::default();
    let mut piece = vec![0; PIECE];
    loop {
        let read = connection.read(&mut piece).await.map_err(broken)?;
        if read == 0 {
            break;
        }
        watch.feed(&piece[..read], || begun.elapsed());
    }
    watch.judge()
}

/// What was read so far.
#[derive(Clone, Debug, Default)]
struct Watch {
    status: Option<u16>,
    first: Option<Duration>,
    last: Duration,
    events: u64,
    done: bool,
    /// The end of the last piece, in which something may begin that the next piece ends.
    tail: Vec<u8>,
}

impl Watch {
    fn feed(&mut self, piece: &[u8], now: impl Fn() -> Duration) {
        self.tail.extend_from_slice(piece);
        if self.status.is_none() && self.tail.len() >= b"HTTP/1.1 200".len() {
            let code = self.tail.get(9..12).and_then(|code| std::str::from_utf8(code).ok());
            self.status = Some(code.and_then(|code| code.parse().ok()).unwrap_or(0));
        }
        // What begins here is counted; the rest may be the beginning of more.
        let whole = (self.tail.len() + 1).saturating_sub(LAST.len());
        let found = memmem::find_iter(&self.tail, EVENT).filter(|place| *place < whole);
        let begins: Vec<usize> = found.collect();
        for place in begins {
            if self.tail[place..].starts_with(LAST) {
                self.done = true;
            } else {
                self.events += 1;
                self.last = now();
                self.first.get_or_insert(self.last);
            }
        }
        if self.status.is_some() {
            self.tail.drain(..whole);
        }
    }

    fn judge(&self) -> Result<Answer, Failed> {
        match (self.status, self.first) {
            (None, _) => Err(Failed::Broken),
            (Some(200), Some(first)) if self.done => {
                Ok(Answer { first, last: self.last, events: self.events })
            }
            (Some(200), _) => Err(Failed::Short),
            (Some(status), _) => Err(Failed::Status(status)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n\
        data: {\"a\":1}\n\ndata: {\"a\":2}\n\ndata: [DONE]\n\n";

    #[test]
    fn events_are_counted_wherever_pieces_are_cut() {
        for size in 1..STREAM.len() {
            let mut watch = Watch::default();
            for (number, piece) in STREAM.chunks(size).enumerate() {
                watch.feed(piece, || Duration::from_secs(number as u64));
            }
            let answer = watch.judge().unwrap_or_else(|failed| panic!("{size}: {failed}"));
            assert_eq!(answer.events, 2, "{size}");
        }
    }

    #[test]
    fn what_is_not_whole_is_no_answer() {
        let judged = |bytes: &[u8]| {
            let mut watch = Watch::default();
            watch.feed(bytes, || Duration::ZERO);
            watch.judge()
        };
        assert_eq!(judged(b""), Err(Failed::Broken));
        assert_eq!(judged(b"HTTP/1.1 503 Unavailable\r\n\r\n"), Err(Failed::Status(503)));
        assert_eq!(judged(&STREAM[..STREAM.len() - 9]), Err(Failed::Short));
    }
}
