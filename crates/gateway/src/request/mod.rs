//! What happens to one request, phase by phase: the one place that knows all phases.
//!
//! `limits` says what a caller has left, `turn` whether it must wait for a turn, `wait` is the wait, `held` what a stream hears meanwhile,
//! `payload` the body of its answer. `worker` is what one thread has for it.

mod held;
mod limits;
mod payload;
mod turn;
mod wait;
mod worker;

pub(crate) use payload::Payload;
pub(crate) use worker::Worker;

use crate::accept::{Answers, Busy, Reader};
use crate::answer::{Dialect, Problem, json};
use crate::forward::Key;
use crate::identify::Left;
use crate::mirror;
use crate::names::{REQUEST_ID, TRACEPARENT};
use crate::phase::{Arrived, Head, Identified, Open};
use crate::surface::Surface;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::{Bytes, Incoming};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

/// Characters of a request id that a caller may choose.
const ID_BYTES: usize = 128;

impl Answers for Arc<Worker> {
    type Body = Payload;

    fn answer(
        self,
        request: Request<Incoming>,
        busy: Option<Busy>,
    ) -> impl Future<Output = Result<Response<Payload>, Infallible>> + Send + 'static {
        answer(self, request, busy)
    }
}

/// Answers a request, whatever it is.
async fn answer(
    worker: Arc<Worker>,
    request: Request<Incoming>,
    busy: Option<Busy>,
) -> Result<Response<Payload>, Infallible> {
    let request_id = request_id(&worker, request.headers());
    let dialect = Dialect::of(request.uri().path());
    let mut response = match Surface::of(request.uri().path()) {
        Some(surface) if request.method() == Method::POST => {
            ask(&worker, request, surface, request_id.clone()).await
        }
        Some(_) => refuse(&worker, &Problem::NoSuchMethod, dialect).map(Payload::whole),
        None => other(&worker, &request, dialect).map(Payload::whole),
    };
    if !response.headers().contains_key(&REQUEST_ID) {
        response.headers_mut().insert(REQUEST_ID.clone(), request_id);
    }
    Ok(match (busy, Reader::current()) {
        (Some(busy), _) => response.map(|payload| payload.keep(busy)),
        (None, Some(reader)) => response.map(|payload| payload.for_reader(reader)),
        (None, None) => response,
    })
}

/// What is not for an engine: the list of models, and what a caller has left.
fn other(worker: &Worker, request: &Request<Incoming>, dialect: Dialect) -> Response<Bytes> {
    let path = request.uri().path();
    let models = path.strip_prefix("/v1/models");
    if models.is_none() && path != limits::PATH {
        return refuse(worker, &Problem::NoSuchPath, dialect);
    }
    if request.method() != Method::GET {
        return refuse(worker, &Problem::NoSuchMethod, dialect);
    }
    let shared = &worker.forward.shared;
    let Some(caller) = shared.identify(request.headers(), SystemTime::now()) else {
        return refuse(worker, &Problem::NoKey, dialect);
    };
    let Some(rest) = models else { return limits::answer(shared, &caller) };
    let (live, served) = (shared.live(), shared.served());
    let model = |name: &str| serde_json::json!({"id": name, "object": "model", "created": 0, "owned_by": "flyball"});
    match rest.strip_prefix('/') {
        None if rest.is_empty() => {
            let names = served.models().map(|m| &**m.name()).chain(live.splits.names());
            let data: Vec<_> = names.filter(|name| caller.may_use(name)).map(model).collect();
            let list = serde_json::json!({"object": "list", "data": data});
            json(StatusCode::OK, list.to_string())
        }
        // What it may not use is not looked for: it is as if it did not exist.
        Some(name)
            if caller.may_use(name)
                && (served.model(name).is_some() || live.splits.get(name).is_some()) =>
        {
            json(StatusCode::OK, model(name).to_string())
        }
        Some(name) => refuse(worker, &Problem::NoModel { model: name.to_owned() }, dialect),
        None => refuse(worker, &Problem::NoSuchPath, dialect),
    }
}

/// Refuses what never becomes a request.
fn refuse(worker: &Worker, problem: &Problem, dialect: Dialect) -> Response<Bytes> {
    worker.forward.shared.listener.refused(problem.code());
    problem.answer(dialect)
}

async fn ask(
    worker: &Arc<Worker>,
    request: Request<Incoming>,
    surface: Surface,
    request_id: HeaderValue,
) -> Response<Payload> {
    let refused =
        |problem: Problem| problem.answer(Dialect::of(surface.path())).map(Payload::whole);
    let traceparent = request.headers().get(&TRACEPARENT).cloned();
    let shared = Arc::clone(&worker.forward.shared);
    let arrived = Open::new(Head::new(shared, request_id, surface, traceparent), Arrived);
    let identified = match arrived.identify(request.headers()) {
        Ok(identified) => identified,
        Err(problem) => return refused(problem),
    };
    let left = identified.caller.rate.as_ref().map(|rate| rate.take(Instant::now()));
    let access = identified.caller.access.as_ref().map(|own| Arc::clone(&own.access));
    let answered = answered(worker, request, identified, left).await;
    let mut response = answered.unwrap_or_else(refused);
    if let Some(left) = left {
        rate_headers(response.headers_mut(), left);
    }
    let quota = &worker.forward.shared.quota;
    if let Some(left) = access.and_then(|access| quota.left(&access)) {
        limits::headers(response.headers_mut(), &left, Dialect::of(surface.path()));
    }
    response
}

/// Takes a request through its phases: it gets an answer of the cache, or what an engine says.
async fn answered(
    worker: &Arc<Worker>,
    request: Request<Incoming>,
    identified: Open<Identified>,
    left: Option<Left>,
) -> Result<Response<Payload>, Problem> {
    if let Some(wait) = left.and_then(|left| left.wait) {
        return Err(identified.refuse(Problem::TooFast { retry_after_s: wait.as_secs() + 1 }));
    }
    let (head, body) = request.into_parts();
    let (reading, read) = identified.read(body).await?;
    let (aimed, job, copy) = reading.aim(head.headers, read)?;
    let forward = &worker.forward;
    let key = Key { caller: aimed.caller().number, prompt: job.scanned.whole };
    if let Some(problem) = forward.refusal(key) {
        return Err(aimed.refuse(problem));
    }
    let find = |key| forward.cache.find(&key, &job.headers, forward.shared.now());
    if let Some(answer) = job.cache_key.and_then(find) {
        return Ok(aimed.repeat(&answer).map(Payload::whole));
    }
    let granted = aimed.grant(&job).await?;
    // A copy waits for no turn, so that one of batch would be in everybody's way.
    if let Some(copy) = copy.filter(|_| !granted.class().is_batch()) {
        mirror::send(forward, &worker.copies, copy, &granted);
    }
    turn::turn(forward, job, granted).await
}

/// The caller's own id, if it is plain; one of ours otherwise.
fn request_id(worker: &Worker, headers: &HeaderMap) -> HeaderValue {
    let plain = |value: &&HeaderValue| {
        let bytes = value.as_bytes();
        (1..=ID_BYTES).contains(&bytes.len())
            && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
    };
    if let Some(given) = headers.get(&REQUEST_ID).filter(plain) {
        return given.clone();
    }
    let (high, low) = (worker.forward.next_number(), worker.forward.next_number());
    HeaderValue::from_str(&format!("{high:016x}{low:016x}")).expect("digits are plain")
}

fn rate_headers(headers: &mut HeaderMap, left: Left) {
    headers.insert("x-ratelimit-scope", HeaderValue::from_static("gateway-replica"));
    headers.insert("x-ratelimit-limit-requests", left.limit.into());
    headers.insert("x-ratelimit-remaining-requests", left.remaining.into());
    let reset = format!("{}ms", left.reset.as_millis());
    if let Ok(reset) = HeaderValue::from_str(&reset) {
        headers.insert("x-ratelimit-reset-requests", reset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of what this gives.
    const fn size<A, B, C, F: Future>(_: &impl FnOnce(A, B, C) -> F) -> usize {
        size_of::<F>()
    }

    /// A connection has room for it as long as it is open, and ten thousand streams are ten thousand connections.
    #[test]
    fn a_connection_does_not_carry_what_asking_engines_takes() {
        let size = size(&answer);
        assert!(size <= 6 << 10, "{size} bytes");
    }
}
