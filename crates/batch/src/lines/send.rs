//! A line at the gateway.

use super::assemble::Assembly;
use super::body::{AnswerForm, SentBody};
use super::events::Events;
use super::{LineOutcome, LineToSend};
use crate::forms::{LineError, LineResult};
use bytes::Bytes;
use flyball_core::units::Micros;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::net::TcpStream;

/// A line ends after so long, whatever becomes of it.
const LINE_TIME: Duration = Duration::from_secs(2 * 60 * 60);

/// Nothing at all comes for so long: a request of class `batch` waits silently for ten minutes.
const SILENCE: Duration = Duration::from_secs(15 * 60);

/// Bytes of an answer that comes whole.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// How often a line is sent whose engine fails at it.
const TRIES: u32 = 3;

/// Before a line is tried again at once.
const BETWEEN_TRIES: Duration = Duration::from_millis(500);

/// A line that found no room waits at least and at most so long.
const LATER_SECONDS: (u64, u64) = (1, 60);

/// The gateway.
#[derive(Debug)]
pub(crate) struct GatewayLines {
    /// `HOST:PORT`.
    address: String,
    /// What is shown for tenants, by their paths.
    keys: BTreeMap<String, HeaderValue>,
}

/// What one try came to.
enum Try {
    Outcome(LineOutcome),
    /// The engine or the connection failed: why.
    Broken(String),
}

impl GatewayLines {
    pub(crate) fn new(address: &str, keys: BTreeMap<String, HeaderValue>) -> Self {
        Self { address: address.to_owned(), keys }
    }

    /// Sends a line until it is done, or has to wait.
    pub(crate) async fn send(&self, line: &LineToSend) -> LineOutcome {
        let tries = tokio::time::timeout(LINE_TIME, self.tries(line));
        tries.await.unwrap_or(LineOutcome::Done(LineResult::Failure(LineError::RequestTimeout)))
    }

    async fn tries(&self, line: &LineToSend) -> LineOutcome {
        let mut why = String::new();
        for number in 0..TRIES {
            if number > 0 {
                tokio::time::sleep(BETWEEN_TRIES).await;
            }
            match self.once(line).await {
                Try::Outcome(outcome) => return outcome,
                Try::Broken(broken) => why = broken,
            }
        }
        tracing::info!(batch = line.key.id, line = line.index, why, "a line failed at its engine");
        let mut error = Map::new();
        error.insert("message".to_owned(), format!("The answer broke off: {why}").into());
        error.insert("type".to_owned(), "server_error".into());
        error.insert("code".to_owned(), "upstream_broken".into());
        let body = Value::Object(Map::from_iter([("error".to_owned(), Value::Object(error))]));
        LineOutcome::Done(LineResult::Answer {
            status: StatusCode::BAD_GATEWAY.as_u16(),
            request_id: String::new(),
            body: body.to_string(),
        })
    }

    async fn once(&self, line: &LineToSend) -> Try {
        let sent = SentBody::of(&line.endpoint, &line.body);
        let form = sent.form;
        // Nobody there: the gateway is about to start, or gone. That says nothing about the line.
        let Ok((response, _connection)) = self.ask(line, sent.text).await else {
            return Try::Outcome(LineOutcome::Later(Micros::from_seconds(LATER_SECONDS.0)));
        };
        let status = response.status();
        match status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Try::Outcome(LineOutcome::Later(later(response.headers())))
            }
            StatusCode::UNAUTHORIZED => {
                let tenant = line.tenant.as_str();
                tracing::error!(
                    tenant,
                    "the gateway refuses the key of a caller; its batches wait"
                );
                Try::Outcome(LineOutcome::Later(Micros::from_seconds(LATER_SECONDS.1)))
            }
            _ if status.is_success() && form != AnswerForm::Whole => stream(response, form).await,
            _ => match whole(response).await {
                Ok(result) if status.is_server_error() => Try::Broken(short(&result)),
                Ok(result) => Try::Outcome(LineOutcome::Done(result)),
                Err(why) => Try::Broken(why),
            },
        }
    }

    /// The head of the answer, and the connection, which ends when it is dropped.
    async fn ask(
        &self,
        line: &LineToSend,
        body: String,
    ) -> Result<(Response<Incoming>, Connection), String> {
        let text = |error: &dyn std::error::Error| error.to_string();
        let stream = TcpStream::connect(&self.address).await.map_err(|error| text(&error))?;
        stream.set_nodelay(true).map_err(|error| text(&error))?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| text(&error))?;
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(async move {
            // Whoever reads the answer sees that it broke off.
            let _ = connection.await;
        });
        let mut request = Request::post(&line.endpoint)
            .header(HOST, &self.address)
            .header(CONTENT_TYPE, "application/json")
            .header("x-flyball-priority", "batch");
        if let Some(key) = self.keys.get(&line.tenant) {
            request = request.header(AUTHORIZATION, key);
        }
        let request = request.body(Full::new(Bytes::from(body))).map_err(|error| text(&error))?;
        let answer = tokio::time::timeout(SILENCE, sender.send_request(request)).await;
        let response = answer.map_err(|_| "no answer".to_owned())?.map_err(|error| text(&error))?;
        Ok((response, Connection(tasks)))
    }
}

/// A connection that is driven as long as this lives.
struct Connection(
    #[expect(dead_code, reason = "dropping it ends the task")] tokio::task::JoinSet<()>,
);

fn later(headers: &HeaderMap) -> Micros {
    let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let (least, most) = LATER_SECONDS;
    Micros::from_seconds(seconds.unwrap_or(least).clamp(least, most))
}

fn request_id(headers: &HeaderMap) -> String {
    let id = headers.get("x-request-id").and_then(|value| value.to_str().ok());
    id.unwrap_or_default().to_owned()
}

async fn whole(response: Response<Incoming>) -> Result<LineResult, String> {
    let status = response.status().as_u16();
    let request_id = request_id(response.headers());
    let body = http_body_util::Limited::new(response.into_body(), MAX_ANSWER_BYTES);
    let bytes = tokio::time::timeout(SILENCE, body.collect()).await;
    let bytes = bytes.map_err(|_| "no answer".to_owned())?.map_err(|error| error.to_string())?;
    let body = String::from_utf8_lossy(&bytes.to_bytes()).into_owned();
    Ok(LineResult::Answer { status, request_id, body })
}

fn short(result: &LineResult) -> String {
    match result {
        LineResult::Answer { status, body, .. } => {
            let body: String = body.chars().take(200).collect();
            format!("status {status}: {body}")
        }
        LineResult::Failure(error) => format!("{error:?}"),
    }
}

async fn stream(response: Response<Incoming>, form: AnswerForm) -> Try {
    let status = response.status().as_u16();
    let request_id = request_id(response.headers());
    let done =
        |body| Try::Outcome(LineOutcome::Done(LineResult::Answer { status, request_id, body }));
    let (mut body, mut events, mut assembly) =
        (response.into_body(), Events::default(), Assembly::default());
    loop {
        let frame = match tokio::time::timeout(SILENCE, body.frame()).await {
            Err(_) => return Try::Broken("the stream is silent".to_owned()),
            Ok(None) => return Try::Broken("the stream ended too early".to_owned()),
            Ok(Some(Err(error))) => return Try::Broken(error.to_string()),
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(bytes) = frame.into_data() else { continue };
        if !events.push(&bytes) {
            return Try::Broken("an event is too long".to_owned());
        }
        while let Some(data) = events.next() {
            if data == b"[DONE]" {
                return match assembly.finish() {
                    Some(body) => done(body),
                    None => Try::Broken("the stream is empty".to_owned()),
                };
            }
            let Ok(mut event) = serde_json::from_slice::<Map<String, Value>>(data) else {
                return Try::Broken("an event is no JSON".to_owned());
            };
            if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
                return failed(error);
            }
            if form == AnswerForm::Chunks {
                assembly.push(event);
            } else if is_last(&event)
                && let Some(response) = event.remove("response")
            {
                return done(response.to_string());
            }
        }
    }
}

/// Whether an event has the whole response.
fn is_last(event: &Map<String, Value>) -> bool {
    let kinds = ["response.completed", "response.incomplete", "response.failed"];
    event.get("type").and_then(Value::as_str).is_some_and(|kind| kinds.contains(&kind))
}

/// An error in a stream: there was no room to go on, or the engine failed.
fn failed(error: &Value) -> Try {
    let code = error.get("code").and_then(Value::as_str);
    let code = code.or_else(|| error.get("type").and_then(Value::as_str));
    match code {
        Some("no_idle_capacity" | "overloaded" | "queue_full" | "queue_timeout") => {
            Try::Outcome(LineOutcome::Later(Micros::from_seconds(LATER_SECONDS.0)))
        }
        _ => Try::Broken(error.to_string().chars().take(200).collect()),
    }
}
