//! Takes connections and holds their limits. What a request gets for an answer is for others to say.
//!
//! Each thread has a listener and connections of its own; the kernel spreads new connections over
//! them. `door` says who may come in, `io` is the clock of a connection, `reader` that of a stream of
//! HTTP/2, `tls` encryption.

mod door;
mod io;
mod reader;
mod tls;

pub(crate) use door::Door;
pub(crate) use io::Busy;
pub(crate) use reader::{PIECE_BYTES, Reader};
pub(crate) use tls::acceptor;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use io::{ClientIo, Clock};
use reader::Streams;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// Headers of one request.
const HEADERS: usize = 64;

/// How an HTTP/2 connection begins.
const PREFACE: &[u8; 4] = b"PRI ";

/// Whoever answers requests. A handle: there is one for each request.
pub(crate) trait Answers: Clone + Send + 'static {
    /// The body of an answer.
    type Body: Body<Data = Bytes, Error = std::io::Error> + Send + 'static;

    /// Answers a request, whatever it is. Its connection is busy until the answer is gone.
    fn answer(
        self,
        request: Request<Incoming>,
        busy: Option<Busy>,
    ) -> impl Future<Output = Result<Response<Self::Body>, Infallible>> + Send + 'static;
}

/// A listener that nobody else has.
pub(crate) fn listener(address: SocketAddr) -> std::io::Result<TcpListener> {
    bound(address, false)
}

/// A listener that the other threads of this process have too: the system shares connections out among them. It would
/// among processes as well, so that a second gateway at the same address took half of the connections and nobody was
/// told; see that there is none first, with [`listener`].
pub(crate) fn shared_listener(address: SocketAddr) -> std::io::Result<TcpListener> {
    bound(address, true)
}

fn bound(address: SocketAddr, shared: bool) -> std::io::Result<TcpListener> {
    use socket2::{Domain, Protocol, Socket, Type};
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(4_096)?;
    TcpListener::from_std(socket.into())
}

/// Takes connections until told to stop, then what is still in the queue.
pub(crate) async fn accept(
    door: Arc<Door>,
    answers: impl Answers,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
) {
    let mut closing = door.closing();
    loop {
        let accepted = tokio::select! {
            biased;
            accepted = listener.accept() => accepted,
            _ = closing.wait_for(|closing| *closing) => break,
        };
        match accepted {
            Ok((stream, _)) => take(&door, &answers, stream, tls.clone()),
            // Out of file descriptors, or a connection that died in the queue.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
    while let Some(Ok((stream, _))) = futures::FutureExt::now_or_never(listener.accept()) {
        take(&door, &answers, stream, tls.clone());
    }
}

fn take(door: &Arc<Door>, answers: &impl Answers, stream: TcpStream, tls: Option<TlsAcceptor>) {
    let Some(open) = door.connection() else { return };
    let (door, answers) = (Arc::clone(door), answers.clone());
    tokio::spawn(async move {
        let _open = open;
        if stream.set_nodelay(true).is_err() {
            return;
        }
        // In boxes, so that a plain connection does not carry the room of an encrypted one.
        match tls {
            None => plain(&door, answers, stream).await,
            Some(tls) => Box::pin(encrypted(&door, answers, stream, tls)).await,
        }
    });
}

async fn plain(door: &Door, answers: impl Answers, stream: TcpStream) {
    let (_, timeouts) = door.bounds();
    let mut start = [0; PREFACE.len()];
    let within = Duration::from_millis(timeouts.keep_alive_ms);
    let Ok(Ok(_)) = tokio::time::timeout(within, stream.peek(&mut start)).await else { return };
    if start == *PREFACE {
        Box::pin(http2(door, answers, stream)).await;
    } else {
        Box::pin(http1(door, answers, stream)).await;
    }
}

async fn encrypted(door: &Door, answers: impl Answers, stream: TcpStream, tls: TlsAcceptor) {
    let (_, timeouts) = door.bounds();
    let within = Duration::from_millis(timeouts.head_ms);
    let Ok(Ok(stream)) = tokio::time::timeout(within, tls.accept(stream)).await else { return };
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    if is_http2 {
        Box::pin(http2(door, answers, stream)).await;
    } else {
        Box::pin(http1(door, answers, stream)).await;
    }
}

async fn http1(door: &Door, answers: impl Answers, stream: impl AsyncRead + AsyncWrite + Unpin) {
    let (limits, timeouts) = door.bounds();
    let clock = Arc::new(Clock::new());
    let io = TokioIo::new(ClientIo::new(stream, Arc::clone(&clock), &timeouts));
    let closing = door.closing();
    let service = service_fn(move |request| {
        let busy = Busy::begin(&clock);
        // In a box: hyper moves it into the connection, which would have room for its 5 KB between requests too.
        Box::pin(answers.clone().answer(request, Some(busy)))
    });
    let connection = http1::Builder::new()
        .max_headers(HEADERS)
        .max_buf_size(limits.head_bytes.max(8_192))
        .auto_date_header(false)
        .serve_connection(io, service);
    until_closing(connection, http1::Connection::graceful_shutdown, closing).await;
}

async fn http2(
    door: &Door,
    answers: impl Answers,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) {
    let (limits, timeouts) = door.bounds();
    let clock = Arc::new(Clock::new());
    // Many streams share it: pings find out whether anybody is there, not silence.
    clock.stay_busy();
    let io = TokioIo::new(ClientIo::new(stream, clock, &timeouts));
    let closing = door.closing();
    let service = service_fn(move |request| answers.clone().answer(request, None));
    let streams = Streams { idle: Duration::from_millis(timeouts.client_idle_ms) };
    let connection = http2::Builder::new(streams)
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams_per_connection)
        .max_header_list_size(limits.head_bytes as u32)
        // Ten streams reset before they were taken are a mistake, a hundred an attack
        // (CVE-2023-44487).
        .max_pending_accept_reset_streams(20)
        .max_local_error_reset_streams(100)
        .initial_stream_window_size(256 << 10)
        .initial_connection_window_size(1 << 20)
        .max_send_buf_size(64 << 10)
        .keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(10))
        .auto_date_header(false)
        .serve_connection(io, service);
    until_closing(connection, http2::Connection::graceful_shutdown, closing).await;
}

/// Serves a connection to its end; when the door closes, only what it has.
async fn until_closing<C: Future>(
    connection: C,
    finish: impl FnOnce(Pin<&mut C>),
    mut closing: watch::Receiver<bool>,
) {
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = closing.wait_for(|closing| *closing) => {}
    }
    finish(connection.as_mut());
    let _ = connection.await;
}

#[cfg(test)]
#[tokio::test]
async fn threads_share_an_address_and_another_process_is_noticed() {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let first = shared_listener(any).unwrap();
    let address = first.local_addr().unwrap();
    assert!(shared_listener(address).is_ok(), "another thread");
    let refused = listener(address).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::AddrInUse);
}
