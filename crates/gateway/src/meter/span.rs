//! The spans of a request, made when it is over.
//!
//! The engine hears of the trace long before, so the ids must be the same both times. They are a
//! hash of the request's id, its start and a secret of this process: nothing is carried along.
//!
//! Under the server's span stand the phases in order: the body is read, the request waits for a turn
//! or for a model that is woken, an engine is chosen, some tries may fail, and the client's span is
//! the one that brings the answer, with the wait for its first token and the stream that follows.

use super::{Finished, RequestOutcome};
use flyball_telemetry::traces::{Span, SpanSide, TraceContext, Value};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

/// Which spans a request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ids {
    /// Of the request as it came to us.
    pub(super) server: TraceContext,
    /// Of what we ask an engine.
    pub(super) client: TraceContext,
    /// Who called us.
    pub(super) parent: Option<u64>,
    /// What the others are made of.
    hash: u128,
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
        let parent = traceparent.and_then(TraceContext::parse);
        let nanos = started.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        #[expect(clippy::cast_possible_truncation, reason = "a seed needs no more than 64 bits")]
        let seed = secret ^ nanos as u64;
        let hash = xxh3_128_with_seed(request_id.as_bytes(), seed);
        let trace_id = parent.map_or(hash.max(1), |parent| parent.trace_id);
        let sampled = parent.map_or(hash % 1_000 < u128::from(per_thousand), |p| p.sampled);
        let span = |number| TraceContext { trace_id, span_id: span_id(hash, number), sampled };
        let parent = parent.map(|parent| parent.span_id);
        Self { server: span(0), client: span(1), parent, hash }
    }

    /// Of a phase. The first two numbers are those of the server's and the client's.
    fn phase(&self, number: u64) -> TraceContext {
        TraceContext { span_id: span_id(self.hash, number + 2), ..self.server }
    }
}

/// What a receiver is told about a request: its span, the client's and those of its phases.
pub(super) fn spans(finished: &Finished<'_>, ids: &Ids) -> Vec<Span> {
    let at = |offset: Duration| finished.started.checked_add(offset).unwrap_or(finished.started);
    let end = at(finished.took);
    let events = [("flyball.routed", finished.chosen), ("flyball.first_token", finished.first)];
    let mut spans = vec![Span {
        context: ids.server,
        parent: ids.parent,
        side: SpanSide::Server,
        name: finished.surface.path().into(),
        start: finished.started,
        end,
        attributes: server_attributes(finished),
        events: events.into_iter().filter_map(|(name, when)| Some((name, at(when?)))).collect(),
        error: error_type(finished),
    }];
    let start = at(answering_since(finished));
    spans.extend(client(finished, ids, start, end));
    for (number, phase) in phases(finished).into_iter().enumerate() {
        spans.push(Span {
            context: ids.phase(number as u64),
            parent: Some(if phase.of_answer { ids.client } else { ids.server }.span_id),
            side: SpanSide::Inside,
            name: phase.name.into(),
            start: at(phase.from),
            end: at(phase.to),
            attributes: phase.attributes,
            events: Vec::new(),
            error: phase.error,
        });
    }
    spans
}

/// A part of a request's time, counted from its head.
struct Phase {
    name: &'static str,
    from: Duration,
    to: Duration,
    /// Whether it is a part of what the engine that answered took.
    of_answer: bool,
    attributes: Vec<(&'static str, Value)>,
    error: Option<&'static str>,
}

impl Phase {
    const fn new(name: &'static str, from: Duration, to: Duration) -> Self {
        Self { name, from, to, of_answer: false, attributes: Vec::new(), error: None }
    }
}

/// Those that the request came to, in order.
fn phases(finished: &Finished<'_>) -> Vec<Phase> {
    let Finished { read, queued, held, chosen, first, took, .. } = *finished;
    let mut phases = Vec::with_capacity(6 + finished.tries.len());
    phases.push(Phase::new("read", Duration::ZERO, read.unwrap_or(took)));
    let Some(read) = read else { return phases };
    let waited = read + queued;
    if !queued.is_zero() {
        phases.push(Phase::new(if held { "hold" } else { "queue" }, read, waited));
    }
    let Some(chosen) = chosen else { return phases };
    // Whoever waits is given an engine at the end of the wait.
    phases.push(Phase::new("choose", waited.min(chosen), chosen));
    for one in finished.tries {
        let mut phase = Phase::new("attempt", one.began, one.ended);
        phase.attributes.push(("server.address", owned(&one.endpoint)));
        phase.error = Some(one.why);
        phases.push(phase);
    }
    if let Some(first) = first {
        let since = answering_since(finished).min(first);
        for (name, from, to) in [("first token", since, first), ("stream", first, took)] {
            phases.push(Phase { of_answer: true, ..Phase::new(name, from, to.max(from)) });
        }
    }
    phases
}

/// When the engine that answered was asked.
fn answering_since(finished: &Finished<'_>) -> Duration {
    let last_try = finished.tries.last().map(|one| one.ended);
    last_try.or(finished.chosen).unwrap_or_default().min(finished.took)
}

fn server_attributes(finished: &Finished<'_>) -> Vec<(&'static str, Value)> {
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
    let texts = [
        ("flyball.reason", finished.reason),
        ("flyball.caller", Some(finished.caller).filter(|caller| !caller.is_empty())),
        ("flyball.endpoint", finished.endpoint),
        ("flyball.split", finished.split),
        ("error.type", error_type(finished)),
    ];
    attributes.extend(texts.into_iter().filter_map(|(name, value)| Some((name, owned(value?)))));
    let flags = [
        ("flyball.mirrored", finished.mirrored),
        ("flyball.cached", finished.cached),
        ("flyball.hedged", finished.hedged),
        ("flyball.batch", finished.batch),
    ];
    attributes.extend(
        flags.into_iter().filter(|(_, is_so)| *is_so).map(|(name, _)| (name, Value::Flag(true))),
    );
    if finished.continued > 0 {
        attributes.push(("flyball.continued", Value::Count(finished.continued.into())));
    }
    if finished.preempted > 0 {
        attributes.push(("flyball.preempted", Value::Count(finished.preempted.into())));
    }
    if let Some(blocks) = finished.hoped_blocks {
        attributes.push(("flyball.expected_cached_blocks", Value::Count(blocks.into())));
    }
    attributes
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
        side: SpanSide::Client,
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
        ("gen_ai.usage.cache_read.input_tokens", Value::Count(finished.usage.cached.unwrap_or(0))),
        ("gen_ai.usage.output_tokens", Value::Count(finished.usage.output)),
    ]);
    if let Some(model) = finished.model {
        attributes.push(("gen_ai.request.model", owned(model)));
    }
    if let Some(finish) = finished.finish {
        // A list, because a request may have several answers; we know of one.
        attributes.push(("gen_ai.response.finish_reasons", text(finish.name())));
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
        RequestOutcome::Cancelled => None,
        RequestOutcome::Refused | RequestOutcome::Answered if finished.status < 500 => None,
        _ => match finished.reason {
            Some(reason) => Some(reason),
            None => Some(finished.outcome.name()),
        },
    }
}

fn span_id(hash: u128, number: u64) -> u64 {
    xxh3_64_with_seed(&hash.to_le_bytes(), number).max(1)
}

const fn text(words: &'static str) -> Value {
    Value::Text(std::borrow::Cow::Borrowed(words))
}

fn owned(words: &str) -> Value {
    // A request id is as long as a client likes.
    let end = words.floor_char_boundary(256);
    Value::Text(words[..end].to_owned().into())
}
