//! Health, metrics, past decisions and questions of what would be, on an address of their own.
//!
//! It only tells; nothing can be changed here. Who may ask is `flyball-admin`'s to say. Start at [`answer`],
//! which is the whole of it without a network.

use crate::decide::Brain;
use crate::imagine::{WhatIfWorld, imagine};
use crate::report::{Board, History};
use bytes::Bytes;
use flyball_core::ids::ModelId;
use flyball_resources::admin_api::{Changes, Decisions, Entry};
use flyball_telemetry::metrics::{CONTENT_TYPE, Metrics};
use http::header::CONTENT_TYPE as TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// Decisions of one answer.
const MOST_ENTRIES: usize = 1_000;

/// Bytes of a question: about a hundred ModelServices.
const QUESTION: usize = 1 << 20;

/// Questions of what would be that are answered at once: each takes as long as a decision, and a copy
/// of what the governor remembers.
const IMAGINED_AT_ONCE: usize = 1;

/// What is asked about.
#[derive(Debug)]
pub struct OperatorAdminState {
    metrics: Metrics,
    history: Mutex<History>,
    ready: AtomicBool,
    board: Arc<Board>,
    brain: Mutex<Brain>,
    world: Mutex<Option<Arc<WhatIfWorld>>>,
    imagining: Semaphore,
}

impl OperatorAdminState {
    /// Of an operator of this version, with this board of metrics.
    pub fn new(version: &'static str, board: Arc<Board>) -> Self {
        Self {
            metrics: Metrics::new(version).with(Arc::<Board>::clone(&board)),
            history: Mutex::default(),
            ready: AtomicBool::new(false),
            board,
            brain: Mutex::default(),
            world: Mutex::default(),
            imagining: Semaphore::new(IMAGINED_AT_ONCE),
        }
    }

    /// Asks the brain. It is not copied with every look, because it may hold a week of every model.
    pub fn brain<T>(&self, ask: impl FnOnce(&mut Brain) -> T) -> T {
        ask(&mut self.brain.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps the last look.
    pub fn remember(&self, world: WhatIfWorld) {
        *self.world.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(world));
    }

    /// The cluster was looked at once.
    pub fn is_ready(&self) {
        self.ready.store(true, Ordering::Relaxed);
    }

    /// Whether this operator leads. One that does not has decided nothing, which is not to say that
    /// nothing was decided.
    pub fn leads(&self) -> bool {
        self.board.leads()
    }

    /// Counts broken rules.
    pub const fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Reads or changes the past.
    pub fn history<T>(&self, read: impl FnOnce(&mut History) -> T) -> Option<T> {
        self.history.lock().ok().map(|mut history| read(&mut history))
    }
}

/// What is answered, shared with what answers it.
#[derive(Debug)]
pub(crate) struct Page(pub(crate) Arc<OperatorAdminState>);

impl flyball_admin::AdminPages for Page {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        respond(request, Arc::clone(&self.0)).await
    }
}

async fn respond(
    request: Request<Incoming>,
    state: Arc<OperatorAdminState>,
) -> Response<Full<Bytes>> {
    match (request.method(), request.uri().path()) {
        (&Method::GET, path) => answer(path, request.uri().query().unwrap_or(""), &state),
        (&Method::POST, "/whatif") => match Limited::new(request, QUESTION).collect().await {
            Ok(body) => ask(body.to_bytes(), state).await,
            Err(error) => {
                text(StatusCode::PAYLOAD_TOO_LARGE, format!("at most {QUESTION} bytes: {error}\n"))
            }
        },
        _ => text(StatusCode::METHOD_NOT_ALLOWED, "only GET, and POST of /whatif\n".to_owned()),
    }
}

/// Answers one question of what would be, beside the loop: it may take as long as a decision.
async fn ask(body: Bytes, state: Arc<OperatorAdminState>) -> Response<Full<Bytes>> {
    let Ok(_place) = state.imagining.try_acquire() else {
        return text(StatusCode::TOO_MANY_REQUESTS, "another query is in progress\n".to_owned());
    };
    let thinking = Arc::clone(&state);
    let thought = tokio::task::spawn_blocking(move || what_if(&body, &thinking)).await;
    thought.unwrap_or_else(|error| text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")))
}

/// What would be decided in the world that the question describes.
pub fn what_if(question: &[u8], state: &OperatorAdminState) -> Response<Full<Bytes>> {
    let changes = match serde_json::from_slice::<Changes>(question) {
        Ok(changes) => changes,
        Err(error) => return text(StatusCode::BAD_REQUEST, format!("{error}\n")),
    };
    if !state.leads() {
        return elsewhere();
    }
    let world = state.world.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let Some(world) = world else {
        let none = "not observed yet\n".to_owned();
        return text(StatusCode::SERVICE_UNAVAILABLE, none);
    };
    let brain = state.brain(|brain| brain.clone());
    match imagine(&world, &brain, &changes) {
        Ok(outcome) => json(&outcome),
        Err(problems) => text(StatusCode::UNPROCESSABLE_ENTITY, problems.join("\n") + "\n"),
    }
}

/// What is said at this path.
pub fn answer(path: &str, query: &str, state: &OperatorAdminState) -> Response<Full<Bytes>> {
    match path {
        "/healthz" => text(StatusCode::OK, "ok\n".to_owned()),
        "/readyz" if state.ready.load(Ordering::Relaxed) => text(StatusCode::OK, "ok\n".to_owned()),
        "/readyz" => {
            text(StatusCode::SERVICE_UNAVAILABLE, "the cluster is not listed yet\n".to_owned())
        }
        "/metrics" => match state.metrics.encode() {
            Ok(page) => typed(StatusCode::OK, page, CONTENT_TYPE),
            Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        },
        "/decisions" if !state.leads() => elsewhere(),
        "/decisions" => decisions(query, state),
        _ => {
            let all = "known paths: /healthz, /readyz, /metrics, /decisions?model=NAMESPACE/NAME, and POST /whatif\n";
            text(StatusCode::NOT_FOUND, all.to_owned())
        }
    }
}

fn decisions(query: &str, state: &OperatorAdminState) -> Response<Full<Bytes>> {
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
    json(&Decisions { decisions: found.unwrap_or_default() })
}

fn json(value: &impl serde::Serialize) -> Response<Full<Bytes>> {
    match serde_json::to_string(value) {
        Ok(body) => typed(StatusCode::OK, body, "application/json"),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

/// Behind a Service the next try may reach the one that leads.
fn elsewhere() -> Response<Full<Bytes>> {
    text(StatusCode::MISDIRECTED_REQUEST, "this operator does not lead\n".to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lead::Fence;
    use std::time::{Duration, Instant};

    #[test]
    fn questions_are_refused_in_words() {
        let fence = Fence::default();
        let state = OperatorAdminState::new("0", Arc::new(Board::new(fence.clone())));
        let status = |question: &str| what_if(question.as_bytes(), &state).status().as_u16();
        assert_eq!(status("{}"), 421, "it does not lead");
        assert_eq!(answer("/decisions", "", &state).status().as_u16(), 421);
        fence.lead(Instant::now(), Duration::from_secs(60));
        assert_eq!(status("{}"), 503, "not observed yet");
        assert_eq!(answer("/decisions", "", &state).status().as_u16(), 200);
        assert_eq!(status("{\"replicas\": 3}"), 400, "unknown keys are refused");
        assert_eq!(answer("/decisions", "model=nobody", &state).status().as_u16(), 400);
        assert_eq!(answer("/whatif", "", &state).status().as_u16(), 404, "it takes a POST");
    }
}
