//! Health, metrics, past decisions and questions of what would be, on an address of their own.
//!
//! It only tells; nothing can be changed here. Start at [`answer`], which is the whole of it without a
//! network.

use crate::report::{Board, Entry, History};
use bytes::Bytes;
use flyball_core::ids::ModelId;
use flyball_telemetry::metrics::{CONTENT_TYPE, Metrics};
use http::header::CONTENT_TYPE as TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Connections at once: a kubelet, a few Prometheuses, a few people.
const CONNECTIONS: usize = 64;

/// How long a connection may last.
const CONNECTION: Duration = Duration::from_secs(60);

/// Decisions of one answer.
const MOST_ENTRIES: usize = 1_000;

/// What is asked about.
#[derive(Debug)]
pub struct State {
    metrics: Metrics,
    history: Mutex<History>,
    ready: AtomicBool,
}

impl State {
    /// Of an operator of this version, with this board of metrics.
    pub fn new(version: &'static str, board: Arc<Board>) -> Self {
        Self {
            metrics: Metrics::new(version).with(board),
            history: Mutex::default(),
            ready: AtomicBool::new(false),
        }
    }

    /// The cluster was looked at once.
    pub fn is_ready(&self) {
        self.ready.store(true, Ordering::Relaxed);
    }

    /// Counts broken rules.
    pub const fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Reads or changes the past.
    pub fn history<T>(&self, look: impl FnOnce(&mut History) -> T) -> Option<T> {
        self.history.lock().ok().map(|mut history| look(&mut history))
    }
}

/// Answers until the process ends.
pub async fn serve(listener: TcpListener, state: Arc<State>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors, most likely: trying at once would only burn a core.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(|request: Request<Incoming>| {
                let response = match *request.method() {
                    Method::GET => {
                        answer(request.uri().path(), request.uri().query().unwrap_or(""), &state)
                    }
                    _ => text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n".to_owned()),
                };
                async { Ok::<_, Infallible>(response) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(Duration::from_secs(5))
                .max_buf_size(16 << 10)
                .serve_connection(TokioIo::new(stream), service);
            // Whoever breaks off a question does not want the answer.
            let _ = tokio::time::timeout(CONNECTION, connection).await;
            drop(place);
        });
    }
}

/// What is said at this path.
pub fn answer(path: &str, query: &str, state: &State) -> Response<Full<Bytes>> {
    match path {
        "/healthz" => text(StatusCode::OK, "ok\n".to_owned()),
        "/readyz" if state.ready.load(Ordering::Relaxed) => text(StatusCode::OK, "ok\n".to_owned()),
        "/readyz" => {
            text(StatusCode::SERVICE_UNAVAILABLE, "the cluster was not listed yet\n".to_owned())
        }
        "/metrics" => match state.metrics.encode() {
            Ok(page) => typed(StatusCode::OK, page, CONTENT_TYPE),
            Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        },
        "/decisions" => decisions(query, state),
        _ => {
            let all = "there are /healthz, /readyz, /metrics and /decisions?model=NAMESPACE/NAME\n";
            text(StatusCode::NOT_FOUND, all.to_owned())
        }
    }
}

fn decisions(query: &str, state: &State) -> Response<Full<Bytes>> {
    let model = query.split('&').find_map(|part| part.strip_prefix("model="));
    let model = model.map(|model| model.replace("%2F", "/").parse::<ModelId>()).transpose();
    let Ok(model) = model else {
        let wrong = "model must be NAMESPACE/NAME\n".to_owned();
        return text(StatusCode::BAD_REQUEST, wrong);
    };
    let found = state.history(|history| {
        let all = history.of(model.as_ref());
        let from = all.len().saturating_sub(MOST_ENTRIES);
        all[from..].iter().map(|entry| (*entry).clone()).collect::<Vec<Entry>>()
    });
    match serde_json::to_string(&serde_json::json!({ "decisions": found.unwrap_or_default() })) {
        Ok(body) => typed(StatusCode::OK, body, "application/json"),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    typed(status, body, "text/plain; charset=utf-8")
}

fn typed(status: StatusCode, body: String, kind: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(TYPE, HeaderValue::from_static(kind));
    response
}
