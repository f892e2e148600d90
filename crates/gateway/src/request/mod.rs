//! What happens to one request, phase by phase: the one place that knows all phases.
//!
//! `read` reads its body, `turn` says whether it must wait for a turn, `wait` is the wait, `held` what a
//! stream hears meanwhile, `payload` the body of its answer. `worker` is what one thread has for it.

mod held;
mod payload;
mod read;
mod turn;
mod wait;
mod worker;

pub(crate) use payload::Payload;
pub(crate) use worker::Worker;

use crate::accept::{Answers, Busy, Reader};
use crate::aim::{Aim, Aimed};
use crate::answer::{Dialect, Problem, json};
use crate::finished::RequestOutcome;
use crate::forward::{Key, Record, Trail};
use crate::identify::Left;
use crate::kept::{Answer, Gather};
use crate::mirror;
use crate::names::{REQUEST_ID, TRACEPARENT};
use crate::room::Place;
use crate::surface::Surface;
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::{Bytes, Incoming};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

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

/// What is not for an engine: the list of models.
fn other(worker: &Worker, request: &Request<Incoming>, dialect: Dialect) -> Response<Bytes> {
    let Some(rest) = request.uri().path().strip_prefix("/v1/models") else {
        return refuse(worker, &Problem::NoSuchPath, dialect);
    };
    if request.method() != Method::GET {
        return refuse(worker, &Problem::NoSuchMethod, dialect);
    }
    let live = worker.forward.shared.live();
    if live.keys.identify(request.headers()).is_none() {
        return refuse(worker, &Problem::NoKey, dialect);
    }
    let served = worker.forward.shared.served();
    let model = |name: &str| serde_json::json!({"id": name, "object": "model", "created": 0, "owned_by": "flyball"});
    match rest.strip_prefix('/') {
        None if rest.is_empty() => {
            let names = served.models().map(|m| &**m.name()).chain(live.splits.names());
            let data: Vec<_> = names.map(model).collect();
            let list = serde_json::json!({"object": "list", "data": data});
            json(StatusCode::OK, list.to_string())
        }
        Some(name) if served.model(name).is_some() || live.splits.get(name).is_some() => {
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
    let mut record = Record::new(Arc::clone(&worker.forward.shared), surface, request_id);
    record.traceparent = request.headers().get(&TRACEPARENT).cloned();
    let mut left = None;
    let answered = match admitted(worker, request, &mut record, &mut left).await {
        Ok(aimed) => answered(worker, aimed, record).await,
        Err(problem) => Err((problem, record)),
    };
    let mut response = answered.unwrap_or_else(|(problem, mut record)| {
        record.refuse(&problem);
        problem.answer(Dialect::of(surface.path())).map(Payload::whole)
    });
    if let Some(left) = left {
        rate_headers(response.headers_mut(), left);
    }
    response
}

/// Answers a request that knows where it goes: with what is kept, or with what an engine says.
async fn answered(
    worker: &Arc<Worker>,
    aimed: Aimed,
    mut record: Box<Record>,
) -> Result<Response<Payload>, (Problem, Box<Record>)> {
    let Aimed { job, copy, .. } = aimed;
    if let Some(key) = job.kept {
        let (kept, now) = (&worker.kept, worker.forward.shared.now());
        if let Some(answer) = kept.find(&key, &job.headers, now) {
            return Ok(again(&answer, &mut record).map(Payload::whole));
        }
        record.keep = Some(Gather::new(Arc::clone(kept), key));
    }
    if let Some(copy) = copy {
        mirror::send(&worker.forward, &worker.copies, copy, &record);
    }
    turn::turn(&worker.forward, job, record).await
}

/// Gives a kept answer again, which ends the request.
fn again(answer: &Answer, record: &mut Record) -> Response<Bytes> {
    let response = answer.response();
    record.cached = true;
    record.status = response.status().as_u16();
    record.first = Some(record.age());
    record.bytes_out = response.body().len() as u64;
    // No engine used a token.
    record.estimated = false;
    record.finish(RequestOutcome::Answered, None);
    response
}

/// Identifies, admits, reads and aims.
async fn admitted(
    worker: &Arc<Worker>,
    request: Request<Incoming>,
    record: &mut Record,
    left: &mut Option<Left>,
) -> Result<Aimed, Problem> {
    let (limits, _) = worker.forward.shared.bounds();
    let caller = {
        let live = worker.forward.shared.live();
        Arc::clone(live.keys.identify(request.headers()).ok_or(Problem::NoKey)?)
    };
    record.caller = Some(Arc::clone(&caller));
    if request.headers().contains_key(CONTENT_ENCODING) {
        return Err(Problem::Encoded);
    }
    if let Some(rate) = &caller.rate {
        let taken = rate.take(Instant::now());
        *left = Some(taken);
        if let Some(wait) = taken.wait {
            return Err(Problem::TooFast { retry_after_s: wait.as_secs() + 1 });
        }
    }
    let room = Arc::clone(&worker.forward.shared.room);
    let mut place = Place::take(room, caller.share.clone(), &limits).map_err(Problem::from)?;
    let (head, body) = request.into_parts();
    let read = read::read(&worker.forward.shared, body, record, &mut place).await?;
    record.read = Some(record.age());
    record.stream = read.scanned.stream;
    let (live, served) = (worker.forward.shared.live(), worker.forward.shared.served());
    let aim = Aim { live: &live, served: &served, caller: &caller, surface: record.surface };
    let aimed = aim.at(head.headers, read)?;
    record.split = aimed.split.clone();
    record.model = Some(Arc::clone(aimed.job.model.name()));
    record.place = Some(place);
    let key = Key { caller: caller.number, prompt: aimed.job.scanned.whole };
    let trail = Trail::new(key, worker.forward.next_number());
    let refusal = trail.refusal(&worker.forward);
    record.trail = Some(Arc::new(trail));
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    Ok(aimed)
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
