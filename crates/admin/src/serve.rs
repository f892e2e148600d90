//! Takes connections, answers, and never lets the slow keep out a probe.

use crate::Guard;
use crate::guard::Refusal;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

/// Connections at once: a kubelet, a few Prometheuses, a few people. Whoever comes when they are used up
/// takes the place of the oldest: a probe lasts milliseconds, and who is slow is soon the oldest. A limit
/// that keeps newcomers out would let 64 silent connections have the kubelet end the process.
pub(crate) const CONNECTIONS: usize = 64;

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// A connection. Prometheus connects anew without a word.
    pub(crate) connection: Duration,
    /// The head of a request.
    pub(crate) head: Duration,
}

const TIMES: Times = Times { connection: Duration::from_secs(60), head: Duration::from_secs(5) };

/// What anybody may ask: how it is, and numbers.
const FOR_ANYBODY: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// What a service says at its admin address.
pub trait AdminPages: Send + Sync + 'static {
    /// To somebody who may ask this.
    fn answer(
        &self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Full<Bytes>>> + Send;
}

/// Answers until it is dropped. An accept that fails does not end it.
pub async fn serve(listener: TcpListener, answers: Arc<impl AdminPages>, guard: Guard) {
    serve_within(listener, answers, guard, TIMES).await;
}

pub(crate) async fn serve_within(
    listener: TcpListener,
    answers: Arc<impl AdminPages>,
    guard: Guard,
    times: Times,
) {
    let guard = Arc::new(guard);
    let mut connections = JoinSet::new();
    let mut by_age: VecDeque<AbortHandle> = VecDeque::with_capacity(CONNECTIONS);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections on the admin address");
                // Out of file descriptors, most likely: trying at once would only burn a core.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        by_age.retain(|one| !one.is_finished());
        if by_age.len() >= CONNECTIONS
            && let Some(oldest) = by_age.pop_front()
        {
            oldest.abort();
        }
        let (answers, guard) = (Arc::clone(&answers), Arc::clone(&guard));
        by_age.push_back(connections.spawn(connection(stream, peer.ip(), answers, guard, times)));
    }
}

async fn connection(
    stream: TcpStream,
    peer: IpAddr,
    answers: Arc<impl AdminPages>,
    guard: Arc<Guard>,
    times: Times,
) {
    let service = service_fn(|request: Request<Incoming>| {
        let (answers, guard) = (Arc::clone(&answers), Arc::clone(&guard));
        async move { Ok::<_, Infallible>(respond(request, peer, &*answers, &guard).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(times.head)
        .max_buf_size(16 << 10)
        .serve_connection(TokioIo::new(stream), service);
    // Whoever breaks off a question does not want the answer.
    let _ = tokio::time::timeout(times.connection, connection).await;
}

async fn respond(
    request: Request<Incoming>,
    peer: IpAddr,
    answers: &impl AdminPages,
    guard: &Guard,
) -> Response<Full<Bytes>> {
    if !FOR_ANYBODY.contains(&request.uri().path())
        && let Err(refusal) = guard.admit(peer, request.method(), request.headers()).await
    {
        return refuse(refusal);
    }
    answers.answer(request).await
}

fn refuse(refusal: Refusal) -> Response<Full<Bytes>> {
    let (status, words) = match refusal {
        Refusal::NoToken => (
            StatusCode::UNAUTHORIZED,
            "a token is required; hint: use `flyball`, or connect from this machine (`kubectl \
             port-forward`); docs/guides/install.md lists who has access"
                .to_owned(),
        ),
        Refusal::Denied(why) => (StatusCode::FORBIDDEN, why),
        Refusal::Unknown(why) => (StatusCode::SERVICE_UNAVAILABLE, why),
    };
    let mut response = Response::new(Full::new(Bytes::from(words + "\n")));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}
