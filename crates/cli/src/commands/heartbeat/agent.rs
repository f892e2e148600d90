//! Answers over HTTP.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flyball_admin::{AdminClients, AdminPages, Guard};
use flyball_core::units::Micros;
use flyball_resources::heartbeat::{
    HEARTBEAT_PATH, HeartbeatInstructions, INSTRUCTIONS_PATH, MAX_BYTES,
};
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::files::now;
use super::instructions::{self, Written};
use super::source::Source;

/// What a folder may take to answer. Shared ones hang when their server does.
const FOLDER: Duration = Duration::from_secs(5);

/// What a body may take to arrive.
const BODY: Duration = Duration::from_secs(5);

/// Where the run writes, and what may be believed of it.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) source: Source,
    /// Absent where the run has no file that it could read.
    pub(super) instructions: Option<PathBuf>,
    pub(super) max_age: Micros,
}

/// An agent that answers. One thread at a time is in the folder: those that hang in it must not pile up.
struct Answering {
    agent: Arc<Agent>,
    turn: Arc<Semaphore>,
}

impl Agent {
    /// Answers everybody until it is dropped; who may connect is the network's business.
    pub(super) async fn serve(self, listener: TcpListener) {
        let answering = Answering { agent: Arc::new(self), turn: Arc::new(Semaphore::new(1)) };
        let everybody = AdminClients { open: true, ..AdminClients::default() };
        flyball_admin::serve(listener, Arc::new(answering), Guard::new(everybody, None)).await;
    }
}

impl AdminPages for Answering {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/healthz") => words(StatusCode::OK, "ok"),
            (&Method::GET, HEARTBEAT_PATH) => self.heartbeat().await,
            (&Method::PUT, INSTRUCTIONS_PATH) => self.instruct(request).await,
            (_, HEARTBEAT_PATH) => not_allowed("GET"),
            (_, INSTRUCTIONS_PATH) => not_allowed("PUT"),
            _ => words(StatusCode::NOT_FOUND, "GET /heartbeat or PUT /instructions"),
        }
    }
}

impl Answering {
    async fn heartbeat(&self) -> Response<Full<Bytes>> {
        let agent = Arc::clone(&self.agent);
        let read = self.in_folder(move || agent.source.read(now(), agent.max_age)).await;
        match read.unwrap_or_else(|| Err("the folder does not answer".to_owned())) {
            Ok(heartbeat) => {
                let mut response = words(StatusCode::OK, &heartbeat.write());
                let json = HeaderValue::from_static("application/json");
                response.headers_mut().insert(CONTENT_TYPE, json);
                response
            }
            Err(why) => words(StatusCode::SERVICE_UNAVAILABLE, &why),
        }
    }

    async fn instruct(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let Some(path) = self.agent.instructions.clone() else {
            return words(
                StatusCode::NOT_FOUND,
                "the run reads no instructions: --file is not given",
            );
        };
        let body = match timeout(BODY, Limited::new(request.into_body(), MAX_BYTES).collect()).await
        {
            Err(_) => return words(StatusCode::REQUEST_TIMEOUT, "the body did not arrive"),
            Ok(Err(_)) => {
                return words(StatusCode::PAYLOAD_TOO_LARGE, "the body is broken or too large");
            }
            Ok(Ok(body)) => body.to_bytes(),
        };
        let asked = match HeartbeatInstructions::read(&body) {
            Ok(asked) => asked,
            Err(problem) => return words(StatusCode::BAD_REQUEST, &problem.to_string()),
        };
        let written = self.in_folder(move || instructions::write(&path, &asked)).await;
        match written.unwrap_or_else(|| Written::No("the folder does not answer".to_owned())) {
            Written::Yes => {
                let mut response = Response::new(Full::default());
                *response.status_mut() = StatusCode::NO_CONTENT;
                response
            }
            Written::Older(last) => {
                let why =
                    format!("number {} is smaller than {last}, which came before", asked.number);
                words(StatusCode::CONFLICT, &why)
            }
            Written::No(why) => words(StatusCode::SERVICE_UNAVAILABLE, &why),
        }
    }

    /// Does what may wait for a disk in a thread of its own; `None` if the folder does not answer.
    async fn in_folder<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let turn = timeout(FOLDER, Arc::clone(&self.turn).acquire_owned()).await.ok()?.ok()?;
        let worked = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(turn);
            done
        });
        timeout(FOLDER, worked).await.ok()?.ok()
    }
}

fn not_allowed(method: &'static str) -> Response<Full<Bytes>> {
    let mut response = words(StatusCode::METHOD_NOT_ALLOWED, "GET /heartbeat or PUT /instructions");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(method));
    response
}

fn words(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(format!("{text}\n"))));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
