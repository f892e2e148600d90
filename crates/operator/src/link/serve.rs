//! Takes connections.

use super::GatewayLink;
use super::auth::Auth;
use super::conversation::Talk;
use super::tls::Door;
use flyball_resources::stream::{Down, MAX_BYTES, PATH, Up};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_rustls::TlsAcceptor;
use tonic::Status;
use tonic::body::Body;
use tonic::server::Grpc;
use tonic_prost::ProstCodec;

/// Connections at once: one for each gateway, and as many that are not one.
const CONNECTIONS: usize = 2_000;

/// For the handshakes, and for a connection on which nobody talks.
const IDLE: Duration = Duration::from_secs(10);

/// From the word that the operator ends to its end.
const GOODBYE: Duration = Duration::from_secs(1);

/// Between two looks for who is gone.
const SWEEP: Duration = Duration::from_secs(1);

/// Conversations on one connection: a gateway has one, and a second while it comes again.
const STREAMS: u32 = 4;

/// Bytes of a request's headers: a token has most of them.
const HEADER_BYTES: u32 = 32 << 10;

/// Bytes that may be under way to us on one connection. What one gateway says in a second fits.
const WINDOW: u32 = 1 << 20;

/// Why gateways cannot be listened to.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Everybody could give orders to the operator and read them.
    #[error(
        "{0} is reachable from outside and clients are not authenticated; hint: set a CA or verify tokens, listen on 127.0.0.1, or set `open = true` if every client is trusted"
    )]
    Unguarded(SocketAddr),
    /// A certificate cannot be read, or there is no address.
    #[error("cannot listen for gateways: {0}")]
    Io(#[from] io::Error),
}

/// What all connections share.
struct Shared {
    link: Arc<GatewayLink>,
    auth: Auth,
    closing: watch::Sender<bool>,
}

impl GatewayLink {
    /// Talks with gateways that come to this listener, until `stop`.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        auth: Auth,
        stop: impl Future<Output = ()>,
    ) -> Result<(), LinkError> {
        let address = listener.local_addr()?;
        if auth.is_unguarded(address) {
            return Err(LinkError::Unguarded(address));
        }
        let mut door = auth.tls.clone().map(Door::open).transpose()?;
        let shared = Arc::new(Shared { link: self, auth, closing: watch::Sender::new(false) });
        let mut connections = JoinSet::new();
        let mut sweep = tokio::time::interval(SWEEP);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                Some(_) = connections.join_next() => {}
                _ = sweep.tick() => shared.link.sweep(),
                accepted = listener.accept(), if connections.len() < CONNECTIONS => match accepted {
                    Ok((stream, _)) => {
                        let acceptor = door.as_mut().map(Door::acceptor);
                        connections.spawn(connection(Arc::clone(&shared), stream, acceptor));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a gateway's connection");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
            }
        }
        drop(listener);
        shared.closing.send_replace(true);
        let all = async { while connections.join_next().await.is_some() {} };
        // Whoever does not hear it in time finds out by itself.
        drop(tokio::time::timeout(GOODBYE, all).await);
        Ok(())
    }
}

async fn connection(shared: Arc<Shared>, stream: TcpStream, acceptor: Option<TlsAcceptor>) {
    // A drain mark should not wait for more to send.
    drop(stream.set_nodelay(true));
    let Some(acceptor) = acceptor else { return talk(shared, stream).await };
    match tokio::time::timeout(IDLE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => talk(shared, stream).await,
        Ok(Err(error)) => tracing::warn!(%error, "gateway certificate rejected"),
        Err(_) => {}
    }
}

async fn talk(shared: Arc<Shared>, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
    let talks = Arc::new(AtomicUsize::new(0));
    let mut closing = shared.closing.subscribe();
    let answer = {
        let talks = Arc::clone(&talks);
        move |request| {
            let (shared, counted) = (Arc::clone(&shared), Counted::one(&talks));
            async move { Ok::<_, Infallible>(shared.answer(request, counted).await) }
        }
    };
    let serving = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(IDLE))
        .keep_alive_timeout(IDLE)
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADER_BYTES)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .serve_connection(TokioIo::new(stream), service_fn(answer));
    tokio::pin!(serving);
    let mut check = tokio::time::interval(IDLE);
    check.tick().await;
    let mut ends = false;
    loop {
        tokio::select! {
            // Whatever came of it: the gateway comes again.
            _ = &mut serving => return,
            _ = check.tick() => if talks.load(Ordering::Relaxed) == 0 { return },
            _ = closing.wait_for(|closing| *closing), if !ends => {
                ends = true;
                serving.as_mut().graceful_shutdown();
            }
        }
    }
}

impl Shared {
    async fn answer(&self, request: Request<Incoming>, counted: Counted) -> Response<Body> {
        if request.uri().path() != PATH {
            return Status::unimplemented("there is only flyball.link.v1.Link/Talk").into_http();
        }
        if let Err(refused) = self.auth.admit(request.headers()).await {
            tracing::warn!(%refused, "gateway rejected");
            return refused.into_http();
        }
        let talk = Talk { link: Arc::clone(&self.link), closing: self.closing.subscribe() };
        let codec = ProstCodec::<Down, Up>::default();
        let mut grpc = Grpc::new(codec)
            .max_decoding_message_size(MAX_BYTES)
            .max_encoding_message_size(MAX_BYTES);
        let answer = grpc.streaming(talk, request).await;
        answer.map(|body| Body::new(Counting { body, _counted: counted }))
    }
}

/// One conversation of a connection, until it is over.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn one(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A body that is counted as long as it is sent.
struct Counting {
    body: Body,
    _counted: Counted,
}

impl http_body::Body for Counting {
    type Data = bytes::Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Self::Data>, Self::Error>>> {
        std::pin::Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}
