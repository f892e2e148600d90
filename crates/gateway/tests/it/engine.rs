//! An engine of a few lines that does what a test tells it and remembers what it was sent.

use crate::tale::Tale;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What it does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Does {
    /// Answers with this status and body.
    Answers(u16, &'static str),
    /// The same, after a while.
    Waits(Duration, u16, &'static str),
    /// Sends these pieces as a stream, so far apart, and ends it properly.
    Streams(Vec<&'static str>, Duration),
    /// Sends these pieces as a stream and cuts the connection.
    Cuts(Vec<&'static str>),
    /// Sends these pieces as a stream and then nothing.
    Stalls(Vec<&'static str>),
    /// Tells a tale of so many words as a stream, from wherever the request says that it is, and
    /// ends or cuts it there.
    Plays(Tale),
    /// Does this when it is told to go on.
    Holds(Box<Self>),
    /// Closes the connection without a word.
    Closes,
    /// Says that it failed, and is in good health.
    Fails,
    /// Does this, and is not well.
    Ails(Box<Self>),
    /// Reads and says nothing.
    Hangs,
}

/// An engine that runs.
pub(crate) struct Engine {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    does: Arc<Mutex<Does>>,
}

/// Requests of all engines so far: says which of two came first.
static REQUESTS: AtomicU64 = AtomicU64::new(0);

#[derive(Default)]
struct Seen {
    requests: Vec<Vec<u8>>,
    last: u64,
    goes_on: Arc<Notify>,
    left: u32,
    connections: u32,
}

impl Engine {
    pub(crate) async fn start(does: Does) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback works");
        let address = listener.local_addr().expect("loopback works");
        let (seen, does) = (Arc::<Mutex<Seen>>::default(), Arc::new(Mutex::new(does)));
        let engine = Self { address, seen: Arc::clone(&seen), does: Arc::clone(&does) };
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("loopback works");
                seen.lock().expect("no thread panicked").connections += 1;
                tokio::spawn(serve(stream, Arc::clone(&seen), Arc::clone(&does)));
            }
        });
        engine
    }

    /// From now on it does this.
    pub(crate) fn now(&self, does: Does) {
        *self.does.lock().expect("no thread panicked") = does;
    }

    /// The requests it got, whole.
    pub(crate) fn requests(&self) -> Vec<String> {
        let seen = self.seen.lock().expect("no thread panicked");
        seen.requests.iter().map(|r| String::from_utf8_lossy(r).into_owned()).collect()
    }

    /// The number of its last request among those of all engines; 0 if it got none.
    pub(crate) fn last(&self) -> u64 {
        self.seen.lock().expect("no thread panicked").last
    }

    /// Lets it go on where it holds.
    pub(crate) fn go_on(&self) {
        self.seen.lock().expect("no thread panicked").goes_on.notify_one();
    }

    /// Connections it was given.
    pub(crate) fn connections(&self) -> u32 {
        self.seen.lock().expect("no thread panicked").connections
    }

    /// Waits until so many clients have left before their answer was over.
    pub(crate) async fn left(&self, many: u32) {
        while self.seen.lock().expect("no thread panicked").left < many {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

async fn serve(mut stream: TcpStream, seen: Arc<Mutex<Seen>>, does: Arc<Mutex<Does>>) {
    let mut buffer = Vec::new();
    while let Some(request) = read(&mut stream, &mut buffer).await {
        let does = does.lock().expect("no thread panicked").clone();
        // How it is: as well as its answers are.
        let does = match (request.starts_with(b"GET "), does) {
            (true, Does::Answers(status, _)) => Does::Answers(status, ""),
            (true, Does::Ails(_)) => Does::Answers(503, ""),
            (true, _) => Does::Answers(200, ""),
            (false, does) => {
                let mut seen = seen.lock().expect("no thread panicked");
                seen.requests.push(request.clone());
                seen.last = REQUESTS.fetch_add(1, Ordering::Relaxed) + 1;
                does
            }
        };
        let does = match does {
            Does::Plays(tale) => tale.played(&request),
            other => other,
        };
        if !answer(&mut stream, &seen, does).await {
            return;
        }
    }
}

/// Whether the connection goes on.
async fn answer(stream: &mut TcpStream, seen: &Mutex<Seen>, does: Does) -> bool {
    match does {
        Does::Answers(status, body) => {
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nserver: x\r\ncontent-length: {length}\r\n\r\n{body}"
            );
            stream.write_all(head.as_bytes()).await.is_ok()
        }
        Does::Holds(does) => {
            let goes_on = Arc::clone(&seen.lock().expect("no thread panicked").goes_on);
            let goes_on_first = tokio::select! {
                () = gone(stream, seen) => false,
                () = goes_on.notified() => true,
            };
            goes_on_first && Box::pin(answer(stream, seen, *does)).await
        }
        Does::Waits(while_, status, body) => {
            tokio::time::sleep(while_).await;
            Box::pin(answer(stream, seen, Does::Answers(status, body))).await
        }
        Does::Streams(pieces, apart) => {
            if !send(stream, seen, &pieces, apart).await {
                return false;
            }
            stream.write_all(b"0\r\n\r\n").await.is_ok()
        }
        Does::Cuts(pieces) => {
            send(stream, seen, &pieces, Duration::ZERO).await;
            false
        }
        Does::Stalls(pieces) => {
            send(stream, seen, &pieces, Duration::ZERO).await;
            gone(stream, seen).await;
            false
        }
        Does::Plays(_) | Does::Closes => false,
        Does::Ails(does) => Box::pin(answer(stream, seen, *does)).await,
        Does::Fails => Box::pin(answer(stream, seen, Does::Answers(500, ""))).await,
        Does::Hangs => {
            gone(stream, seen).await;
            false
        }
    }
}

async fn send(
    stream: &mut TcpStream,
    seen: &Mutex<Seen>,
    pieces: &[&str],
    apart: Duration,
) -> bool {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";
    if stream.write_all(head.as_bytes()).await.is_err() {
        return false;
    }
    for piece in pieces {
        let chunk = format!("{:x}\r\n{piece}\r\n", piece.len());
        if stream.write_all(chunk.as_bytes()).await.is_err() {
            seen.lock().expect("no thread panicked").left += 1;
            return false;
        }
        let mut byte = [0];
        if let Ok(Ok(0) | Err(_)) = tokio::time::timeout(apart, stream.read(&mut byte)).await {
            seen.lock().expect("no thread panicked").left += 1;
            return false;
        }
    }
    true
}

/// Waits until the other side has hung up.
async fn gone(stream: &mut TcpStream, seen: &Mutex<Seen>) {
    let mut byte = [0];
    while let Ok(1..) = stream.read(&mut byte).await {}
    seen.lock().expect("no thread panicked").left += 1;
}

/// One request with a content-length, whole.
async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Vec<u8>> {
    loop {
        if let Some(end) = memchr::memmem::find(buffer, b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).to_lowercase();
            let length = head.split("content-length: ").nth(1).map_or(0, |rest| {
                rest.split("\r\n")
                    .next()
                    .unwrap_or("0")
                    .trim()
                    .parse::<usize>()
                    .expect("loopback works")
            });
            if buffer.len() >= end + 4 + length {
                return Some(buffer.drain(..end + 4 + length).collect());
            }
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}
