//! What happens to one request, phase by phase.

use super::payload::Payload;
use super::{Busy, Reader, Worker, turn};
use crate::aim::{Aim, Aimed, Read};
use crate::answer::{Dialect, Problem, json};
use crate::finished::RequestOutcome;
use crate::forward::{Key, Record, Trail};
use crate::identify::Left;
use crate::kept::{Answer, Gather};
use crate::names::{REQUEST_ID, TRACEPARENT};
use crate::room::Place;
use crate::scan::Scanner;
use crate::settings::Timeouts;
use crate::surface::Surface;
use crate::{mirror, scan};
use futures::FutureExt as _;
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Bytes, Frame, Incoming};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a request whose body is slow looks whether the gateway goes away.
const LOOK: Duration = Duration::from_millis(250);

/// A part of a body, its end, or what went wrong.
type Came = Option<hyper::Result<Frame<Bytes>>>;

/// Characters of a request id that a caller may choose.
const ID_BYTES: usize = 128;

/// Bytes of a body by which each millisecond of its time is earned: 8 KB per second, less than the
/// slowest line that anybody sends prompts over.
const BYTES_PER_MS: u64 = 8;

/// Answers a request, whatever it is.
pub(crate) async fn answer(
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
    let read = read(worker, body, record, &mut place).await?;
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

/// Reads a body and what it says.
async fn read(
    worker: &Worker,
    mut body: Incoming,
    record: &mut Record,
    place: &mut Place,
) -> Result<Read, Problem> {
    let (bounds, timeouts) = worker.forward.shared.bounds();
    let limit = bounds.body_bytes;
    let limits = scan::ScanLimits { body_bytes: limit, ..scan::ScanLimits::DEFAULT };
    if body.size_hint().lower() > limit as u64 {
        return Err(Problem::Body(scan::ScanError::TooLong { limit }));
    }
    let mut scanner = Scanner::new(record.surface, limits);
    let mut pieces = Vec::new();
    let began = Instant::now();
    loop {
        // A short body has come with its head: no timer for what is there.
        let frame = match body.frame().now_or_never() {
            Some(frame) => frame,
            None => {
                let patience = patience(&timeouts, began.elapsed(), record.bytes_in);
                next(worker, &mut body, patience).await?
            }
        };
        let Some(frame) = frame else { break };
        let Ok(piece) = frame.map_err(|_| Problem::BodyBroken)?.into_data() else { continue };
        place.hold(piece.len(), &bounds).map_err(Problem::from)?;
        record.bytes_in += piece.len() as u64;
        scanner.feed(&piece).map_err(Problem::Body)?;
        if !piece.is_empty() {
            pieces.push(piece);
        }
    }
    let (scanned, blocks) = scanner.end().map_err(Problem::Body)?;
    if scanned.answers.is_some_and(|answers| answers > bounds.answers) {
        let wanted = "no more than the gateway allows";
        return Err(Problem::Body(scan::ScanError::Wrong { key: "n", wanted }));
    }
    Ok(Read { scanned, blocks, pieces: pieces.into() })
}

/// The next of a body that is slow to come. Whoever still sends when the gateway ends is told so.
async fn next(worker: &Worker, body: &mut Incoming, patience: Duration) -> Result<Came, Problem> {
    let until = Instant::now() + patience;
    loop {
        let look = until.min(Instant::now() + LOOK);
        match tokio::time::timeout_at(look.into(), body.frame()).await {
            Ok(frame) => return Ok(frame),
            Err(_) if worker.forward.shared.is_cut() => return Err(Problem::Draining),
            Err(_) if Instant::now() >= until => return Err(Problem::BodyTimeout),
            Err(_) => {}
        }
    }
}

/// How long to wait for the next piece of a body of which so much came in so long: not beyond the time
/// between pieces, nor beyond the time for all of it, which grows with what came. Who sends a byte now
/// and then is late in the end.
fn patience(timeouts: &Timeouts, elapsed: Duration, bytes: u64) -> Duration {
    let idle = Duration::from_millis(timeouts.body_idle_ms);
    let whole = Duration::from_millis(timeouts.body_ms.saturating_add(bytes / BYTES_PER_MS));
    idle.min(whole.saturating_sub(elapsed))
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

    #[test]
    fn a_body_has_time_for_each_piece_and_for_all_of_it() {
        let timeouts = Timeouts { body_idle_ms: 100, body_ms: 1_000, ..Timeouts::default() };
        let left =
            |elapsed, bytes| patience(&timeouts, Duration::from_millis(elapsed), bytes).as_millis();
        assert_eq!(left(0, 0), 100);
        assert_eq!(left(950, 5), 50);
        assert_eq!(left(1_000, 7), 0, "a byte now and then");
        // Who sends 8 KB per second is never late.
        for second in 1..100 {
            assert_eq!(left(second * 1_000, second * 8_000), 100);
        }
        assert_eq!(left(4_000, 16_000), 0, "half of that");
    }
}
