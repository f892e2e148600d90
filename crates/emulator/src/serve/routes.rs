//! What each path does.

use super::Shared;
use super::body::{AnswerBody, GARBAGE, Tokens};
use crate::api::errors::Problem;
use crate::api::{Answer, Form, ParsedRequest, Usage, ask, embeddings};
use crate::engine::{Refused, Ticket, Work};
use crate::faults::{Fate, Faults, Flaws, How};
use crate::metrics;
use crate::words::Voice;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use serde_json::json;
use std::future::pending;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::Notify;

/// The largest body. A million tokens are 4 MB; 64 MB also take those who send pictures.
const MOST_BODY_BYTES: usize = 64 << 20;

/// Requests of the log in one answer, if not said otherwise.
const LOG: usize = 1000;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Answers a request.
pub(super) async fn route(
    shared: &Arc<Shared>,
    close: Arc<Notify>,
    request: Request<Incoming>,
) -> Response<AnswerBody> {
    let path = request.uri().path();
    if path.starts_with("/emulator/") {
        return control(shared, request).await;
    }
    let form = match (request.method(), path) {
        (&Method::POST, "/v1/chat/completions") => Form::Chat,
        (&Method::POST, "/v1/completions") => Form::Completions,
        (&Method::POST, "/v1/embeddings") => Form::Embeddings,
        (&Method::POST, "/v1/responses") => Form::Responses,
        (&Method::POST, "/v1/messages") => Form::Messages,
        (&Method::GET, path) => return get_page(shared, path).await,
        _ => return not_found(),
    };
    let id = request.headers().get(REQUEST_ID).cloned();
    let mut response =
        infer(shared, close, form, request).await.unwrap_or_else(|problem| failure(&problem, form));
    if let Some(id) = id {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// Pages that change nothing.
async fn get_page(shared: &Shared, path: &str) -> Response<AnswerBody> {
    let faults = shared.faults.get();
    if faults.hang && faults.share >= 1.0 {
        return pending().await;
    }
    match path {
        "/health" | "/ping" if shared.is_up() => reply(StatusCode::OK, "text/plain", Bytes::new()),
        "/health" | "/ping" => starting(Form::Chat),
        path if path == shared.settings.engine.facts().metrics => {
            let (core, settings) = (&shared.core, &shared.settings);
            let model = settings.models.first().map_or("", String::as_str);
            let (state, counts) = (core.state(), core.counts());
            let blocks = settings.speed.settings.blocks;
            let cache = (core.block_tokens(), blocks);
            let page = metrics::page(settings.engine, model, cache, &state, &counts);
            reply(StatusCode::OK, metrics::CONTENT_TYPE, page.into())
        }
        "/v1/models" => {
            let models = shared.settings.models.iter();
            let models: Vec<_> = models
                .map(|name| {
                    json!({"id": name, "object": "model", "created": seconds(),
                           "owned_by": "flyball", "max_model_len": shared.longest})
                })
                .collect();
            json_reply(StatusCode::OK, &json!({"object": "list", "data": models}))
        }
        _ => not_found(),
    }
}

/// The way in for tests: faults, log and state.
async fn control(shared: &Shared, request: Request<Incoming>) -> Response<AnswerBody> {
    let path = request.uri().path();
    match (request.method(), path) {
        (&Method::GET, "/emulator/faults") => json_reply(StatusCode::OK, &shared.faults.get()),
        (&Method::POST, "/emulator/faults") => match faults(request).await {
            Ok(faults) => {
                shared.faults.set(faults);
                shared.core.change_speed(faults.speed);
                json_reply(StatusCode::OK, &faults)
            }
            Err(problem) => failure(&problem, Form::Chat),
        },
        (&Method::GET, "/emulator/state") => json_reply(StatusCode::OK, &shared.core.state()),
        (&Method::GET, "/emulator/log") => {
            let query = request.uri().query().unwrap_or_default();
            let last = query.split('&').find_map(|pair| pair.strip_prefix("last="));
            let last = last.and_then(|last| last.parse().ok()).unwrap_or(LOG);
            json_reply(StatusCode::OK, &shared.core.log(last))
        }
        _ => not_found(),
    }
}

async fn faults(request: Request<Incoming>) -> Result<Faults, Problem> {
    let wrong = |why: String| Problem::new(StatusCode::BAD_REQUEST, why);
    let body = read(request).await?;
    let faults: Faults = serde_json::from_slice(&body).map_err(|error| wrong(error.to_string()))?;
    match faults.problems().as_slice() {
        [] => Ok(faults),
        problems => Err(wrong(problems.join("; "))),
    }
}

async fn infer(
    shared: &Arc<Shared>,
    close: Arc<Notify>,
    form: Form,
    request: Request<Incoming>,
) -> Result<Response<AnswerBody>, Problem> {
    if !shared.is_up() {
        return Ok(starting(form));
    }
    let flaws = match shared.faults.draw() {
        Fate::Served(flaws) => flaws,
        Fate::Hung => return pending().await,
        Fate::Refused(status) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            return Err(Problem::new(status, "this engine is configured to fail"));
        }
        Fate::Draining => {
            let message = "cannot schedule new futures after shutdown";
            return Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, message));
        }
    };
    let request_id = request.headers().get(REQUEST_ID).cloned();
    let body = read(request).await?;
    let defaults = ask::Defaults {
        output: shared.settings.answer_tokens,
        block_tokens: shared.core.block_tokens(),
        longest: shared.longest,
    };
    let parsed = ask::read(form, &body, &defaults)?;
    drop(body);
    if !shared.settings.models.contains(&parsed.model) {
        let message = format!("The model `{}` does not exist.", parsed.model);
        return Err(Problem::new(StatusCode::NOT_FOUND, message).coded("model_not_found"));
    }
    if shared.faults.get().is_deadly(parsed.prompt.tokens) {
        // Nothing is answered and nobody is told: that is how an engine dies of a prompt.
        std::process::abort();
    }
    let request_id = request_id.as_ref().and_then(|id| id.to_str().ok());
    let (prompt, output, stops) = (&parsed.prompt, parsed.output, parsed.stops);
    let stream = parsed.stream && form != Form::Embeddings;
    let work = Work { prompt, output, stops, stream, request_id };
    let mut ticket = shared.core.submit(&work).map_err(|refused| refusal(&refused))?;
    if flaws.ignore_aborts {
        ticket.keep();
    }
    let answer = Answer {
        form,
        id: format!("{:016x}{:x}", prompt.hash, ticket.id()),
        model: parsed.model.clone(),
        created: seconds(),
        voice: Voice::after(prompt.parsed),
        output,
        stops,
        include_usage: parsed.include_usage,
    };
    if stream {
        let close = Some(close).filter(|_| flaws.close_after_stream);
        let tokens = Tokens::new(ticket, answer, prompt.tokens, flaws.cut, close);
        let mut response = Response::new(AnswerBody::Tokens(Box::new(tokens)));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        return Ok(response);
    }
    whole(&ticket, &answer, &parsed, flaws).await
}

/// An answer in one piece, when all of it is there.
async fn whole(
    ticket: &Ticket,
    answer: &Answer,
    parsed: &ParsedRequest,
    flaws: Flaws,
) -> Result<Response<AnswerBody>, Problem> {
    let progress = ticket.progress();
    progress
        .reach(parsed.output)
        .await
        .map_err(|lost| Problem::new(StatusCode::SERVICE_UNAVAILABLE, lost.to_string()))?;
    let usage =
        Usage { prompt: parsed.prompt.tokens, cached: progress.cached(), output: parsed.output };
    let text = match answer.form {
        Form::Embeddings => embeddings::whole(answer, &parsed.inputs, parsed.embedding, usage),
        _ => answer.whole(usage),
    };
    let mut bytes = Bytes::from(text);
    let half = bytes.len() / 2;
    let mut response = reply(StatusCode::OK, "application/json", Bytes::new());
    *response.body_mut() = match flaws.cut.map(|cut| cut.how) {
        None => AnswerBody::Whole(Some(bytes)),
        Some(How::Broken) => AnswerBody::half(bytes.split_to(half)),
        Some(How::Ended) => AnswerBody::Whole(Some(bytes.split_to(half))),
        Some(How::Garbage) => AnswerBody::Whole(Some(Bytes::from_static(GARBAGE))),
        Some(How::Stalled) => return pending().await,
    };
    Ok(response)
}

async fn read(request: Request<Incoming>) -> Result<Bytes, Problem> {
    let body = Limited::new(request.into_body(), MOST_BODY_BYTES);
    match body.collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) => {
            let message = format!("the body cannot be read: {error}");
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, message))
        }
    }
}

fn refusal(refused: &Refused) -> Problem {
    match refused {
        Refused::TooLong(_) => {
            Problem::field("messages", refused.to_string()).coded("context_length_exceeded")
        }
        Refused::Full | Refused::Stopped => {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, refused.to_string())
        }
    }
}

fn failure(problem: &Problem, form: Form) -> Response<AnswerBody> {
    reply(problem.status, "application/json", problem.body(form).into())
}

fn starting(form: Form) -> Response<AnswerBody> {
    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the engine is still starting");
    let mut response = failure(&problem, form);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

fn not_found() -> Response<AnswerBody> {
    failure(&Problem::new(StatusCode::NOT_FOUND, "Not Found"), Form::Chat)
}

fn json_reply(status: StatusCode, value: &impl serde::Serialize) -> Response<AnswerBody> {
    match serde_json::to_vec(value) {
        Ok(bytes) => reply(status, "application/json", bytes.into()),
        Err(error) => {
            let problem = Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
            failure(&problem, Form::Chat)
        }
    }
}

fn reply(status: StatusCode, kind: &'static str, bytes: Bytes) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::Whole(Some(bytes)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Seconds since 1970.
fn seconds() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
