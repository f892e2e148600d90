//! The bare upstream: the cheapest thing that a proxy can take for an engine.
//!
//! It reads a request to its end and answers at once with fixed bytes, or with a stream of chunks at
//! a pace if the body says `"stream":true`. It knows no model, no tokens and no time but the pace.
//! Start at [`serve`].

mod answers;

use crate::http::{BodyReader, Finder, Framing, HEAD_BYTES, Head, request_head};
use crate::sockets;
use answers::Answers;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep_until};

/// What the upstream does.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// Where it listens; several, so that a proxy has something to choose from.
    pub listen: Vec<SocketAddr>,
    /// The model it says it serves.
    pub model: String,
    /// Chunks of a stream.
    pub chunks: u32,
    /// Time between two chunks; all at once if zero.
    pub pace: Duration,
}

/// Serves until it is ended.
pub async fn serve(upstream: Upstream) -> io::Result<()> {
    let answers = Arc::new(Answers::new(&upstream.model));
    let upstream = Arc::new(upstream);
    let mut listeners = Vec::new();
    for address in &upstream.listen {
        let listener = sockets::listen(*address)?;
        listeners.push(tokio::spawn(accept(listener, Arc::clone(&upstream), Arc::clone(&answers))));
    }
    for listener in listeners {
        listener.await.map_err(io::Error::other)??;
    }
    Ok(())
}

async fn accept(
    listener: TcpListener,
    upstream: Arc<Upstream>,
    answers: Arc<Answers>,
) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (upstream, answers) = (Arc::clone(&upstream), Arc::clone(&answers));
        tokio::spawn(async move {
            // A client that goes away in the middle is the client's affair.
            let _ = connection(stream, &upstream, &answers).await;
        });
    }
}

/// Bytes read at once: a 400 KB body in few system calls, and small beside 10,000 connections.
const READ_BYTES: usize = 64 << 10;

/// How much of the buffer an idle connection keeps. 10,000 streams would otherwise hold 640 MB.
const BUFFER_BYTES: usize = 2 << 10;

async fn connection(
    mut stream: TcpStream,
    upstream: &Upstream,
    answers: &Answers,
) -> io::Result<()> {
    let mut buffer: Vec<u8> = Vec::with_capacity(BUFFER_BYTES);
    // Python's json writes a space behind the colon, others do not.
    let mut finders = [Finder::new(b"\"stream\":true"), Finder::new(b"\"stream\": true")];
    loop {
        let (head, page) = loop {
            let parsed = request_head(&buffer).map_err(io::Error::other)?;
            if let Some((head, method, path)) = parsed {
                break (head, answers.fixed_page(method, path));
            }
            if buffer.len() > HEAD_BYTES {
                return Err(io::Error::other("the head has no end"));
            }
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        finders.iter_mut().for_each(Finder::reset);
        read_body(&mut stream, &mut buffer, &head, &mut finders).await?;
        let streams = finders.iter().any(|finder| finder.count > 0);
        match page {
            Some(fixed) => stream.write_all(fixed).await?,
            None if streams => stream_answer(&mut stream, upstream, answers).await?,
            None => stream.write_all(&answers.completion).await?,
        }
        if head.closes {
            return Ok(());
        }
    }
}

/// Reads the body to its end; what came behind it stays in the buffer.
async fn read_body(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
    head: &Head,
    finders: &mut [Finder; 2],
) -> io::Result<()> {
    buffer.drain(..head.bytes);
    if head.framing == Framing::Length(0) {
        return Ok(());
    }
    let mut body = BodyReader::new(head.framing);
    let mut first = true;
    loop {
        let used = body
            .feed(buffer, |content| finders.iter_mut().for_each(|finder| finder.feed(content)))
            .map_err(io::Error::other)?;
        buffer.drain(..used);
        if body.is_done() {
            buffer.shrink_to(BUFFER_BYTES);
            return Ok(());
        }
        if first {
            buffer.reserve(READ_BYTES);
            first = false;
        }
        if stream.read_buf(buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

async fn stream_answer(
    stream: &mut TcpStream,
    upstream: &Upstream,
    answers: &Answers,
) -> io::Result<()> {
    stream.write_all(&answers.stream_head).await?;
    let mut next = Instant::now();
    for _ in 0..upstream.chunks {
        if !upstream.pace.is_zero() {
            next += upstream.pace;
            sleep_until(next).await;
        }
        stream.write_all(&answers.stream_chunk).await?;
    }
    stream.write_all(&answers.stream_end).await
}
