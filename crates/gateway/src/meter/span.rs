//! The spans of a request, made when it is over.
//!
//! The engine hears of the trace long before, so the ids must be the same both times. They are a
//! hash of the request's id, its start and a secret of this process: nothing is carried along.

use super::{Finished, Outcome};
use flyball_telemetry::traces::{Context, Side, Span, Value};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

/// Which spans a request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ids {
    /// Of the request as it came to us.
    pub(super) server: Context,
    /// Of what we ask an engine.
    pub(super) client: Context,
    /// Who called us.
    pub(super) parent: Option<u64>,
}

impl Ids {
    /// The same for the same request. Whether a trace is kept is up to whoever began it; of those
    /// that begin here, so many of a thousand are.
    pub(super) fn of(
        traceparent: Option<&str>,
        request_id: &str,
        started: SystemTime,
        secret: u64,
        per_thousand: u32,
    ) -> Self {
        let parent = traceparent.and_then(Context::parse);
        let nanos = started.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        #[expect(clippy::cast_possible_truncation, reason = "a seed needs no more than 64 bits")]
        let seed = secret ^ nanos as u64;
        let hash = xxh3_128_with_seed(request_id.as_bytes(), seed);
        let trace_id = parent.map_or(hash.max(1), |parent| parent.trace_id);
        let sampled = parent.map_or(hash % 1_000 < u128::from(per_thousand), |p| p.sampled);
        let span = |seed: u64| Context {
            trace_id,
            span_id: xxh3_64_with_seed(&hash.to_le_bytes(), seed).max(1),
            sampled,
        };
        Self { server: span(0), client: span(1), parent: parent.map(|parent| parent.span_id) }
    }
}

/// What a receiver is told about a request.
pub(super) fn spans(finished: &Finished<'_>, ids: &Ids) -> [Option<Span>; 2] {
    let at = |offset: Duration| finished.started.checked_add(offset).unwrap_or(finished.started);
    let end = at(finished.took);
    let error = error_type(finished);
    let mut attributes = gen_ai(finished);
    attributes.extend([
        ("http.request.method", text("POST")),
        ("url.path", text(finished.surface.path())),
        ("http.route", text(finished.surface.path())),
        ("http.response.status_code", Value::Count(finished.status.into())),
        ("http.request.body.size", Value::Count(finished.bytes_in)),
        ("http.response.body.size", Value::Count(finished.bytes_out)),
        ("flyball.request.id", owned(finished.request_id)),
        ("flyball.outcome", text(finished.outcome.name())),
        ("flyball.retries", Value::Count(finished.retries.into())),
        ("flyball.usage.estimated", Value::Flag(finished.estimated)),
    ]);
    if let Some(reason) = finished.reason {
        attributes.push(("flyball.reason", text(reason)));
    }
    if !finished.caller.is_empty() {
        attributes.push(("flyball.caller", owned(finished.caller)));
    }
    if let Some(blocks) = finished.hoped_blocks {
        attributes.push(("flyball.hoped_blocks", Value::Count(blocks.into())));
    }
    if let Some(endpoint) = finished.endpoint {
        attributes.push(("flyball.endpoint", owned(endpoint)));
    }
    if let Some(error) = error {
        attributes.push(("error.type", text(error)));
    }
    let events = [("flyball.chosen", finished.chosen), ("flyball.first", finished.first)];
    let server = Span {
        context: ids.server,
        parent: ids.parent,
        side: Side::Server,
        name: finished.surface.path().into(),
        start: finished.started,
        end,
        attributes,
        events: events.into_iter().filter_map(|(name, when)| Some((name, at(when?)))).collect(),
        error,
    };
    [Some(server), client(finished, ids, at(finished.chosen.unwrap_or_default()), end)]
}

/// The part in which an engine had the request.
fn client(finished: &Finished<'_>, ids: &Ids, start: SystemTime, end: SystemTime) -> Option<Span> {
    let endpoint = finished.endpoint?;
    let mut attributes = gen_ai(finished);
    attributes.push(("server.address", owned(endpoint)));
    let operation = finished.surface.operation();
    Some(Span {
        context: ids.client,
        parent: Some(ids.server.span_id),
        side: Side::Client,
        name: format!("{operation} {}", finished.model.unwrap_or_default()).into(),
        start,
        end,
        attributes,
        events: Vec::new(),
        error: error_type(finished),
    })
}

fn gen_ai(finished: &Finished<'_>) -> Vec<(&'static str, Value)> {
    let mut attributes = Vec::with_capacity(24);
    attributes.extend([
        ("gen_ai.operation.name", text(finished.surface.operation())),
        ("gen_ai.provider.name", text("flyball")),
        ("gen_ai.request.stream", Value::Flag(finished.stream)),
        ("gen_ai.usage.input_tokens", Value::Count(finished.usage.input)),
        ("gen_ai.usage.cache_read.input_tokens", Value::Count(finished.usage.cached)),
        ("gen_ai.usage.output_tokens", Value::Count(finished.usage.output)),
    ]);
    if let Some(model) = finished.model {
        attributes.push(("gen_ai.request.model", owned(model)));
    }
    if let Some(first) = finished.first {
        attributes
            .push(("gen_ai.response.time_to_first_chunk", Value::Seconds(first.as_secs_f64())));
    }
    attributes
}

/// What went wrong: a reason or an outcome. A refusal of what a client did wrong, or a hang-up, is no error of ours.
const fn error_type(finished: &Finished<'_>) -> Option<&'static str> {
    match finished.outcome {
        Outcome::Cancelled => None,
        Outcome::Refused | Outcome::Answered if finished.status < 500 => None,
        _ => match finished.reason {
            Some(reason) => Some(reason),
            None => Some(finished.outcome.name()),
        },
    }
}

const fn text(words: &'static str) -> Value {
    Value::Text(std::borrow::Cow::Borrowed(words))
}

fn owned(words: &str) -> Value {
    // A request id is as long as a client likes.
    let end = words.floor_char_boundary(256);
    Value::Text(words[..end].to_owned().into())
}
