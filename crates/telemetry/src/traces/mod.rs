//! Spans to an OTLP receiver, and W3C trace context.
//!
//! A part that serves requests builds a [`Span`] when a request is over, from the times that it
//! kept, and hands it to [`Traces`]. That never waits: spans go through a bounded queue to a thread
//! that sends them in batches, and what does not fit is dropped and counted.
//!
//! What a span is about is not known here. Start at [`Traces`]; `Context` reads and writes
//! `traceparent`.

mod context;
#[cfg(test)]
mod tests;

pub use context::TraceContext;

use opentelemetry::trace::{
    Event, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks};
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};
use thiserror::Error;

/// Spans that wait: a second of 2,000 sampled requests. At about 1 KB each this is 2 MB.
const QUEUE: usize = 2_048;

/// Spans that are sent together: about 512 KB, an eighth of what receivers take by default.
const BATCH: usize = 512;

/// How long spans are gathered.
const GATHER: Duration = Duration::from_secs(1);

/// How long a receiver may take for a batch. The end of the process waits at most for two: one that
/// is under way, and the first that fails after it.
const SEND: Duration = Duration::from_secs(3);

/// Something that took time.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Which trace and which span this is.
    pub context: TraceContext,
    /// The span that caused it.
    pub parent: Option<u64>,
    /// Whose side of a call it is.
    pub side: SpanSide,
    /// What was done, in few words without values.
    pub name: Cow<'static, str>,
    /// From when.
    pub start: SystemTime,
    /// Until when.
    pub end: SystemTime,
    /// What is known about it.
    pub attributes: Vec<(&'static str, Value)>,
    /// What happened in between.
    pub events: Vec<(&'static str, SystemTime)>,
    /// What went wrong, from a closed list of words.
    pub error: Option<&'static str>,
}

/// A side of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanSide {
    /// That was called.
    Server,
    /// That calls.
    Client,
    /// Neither: a part of what one side does.
    Inside,
}

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Words.
    Text(Cow<'static, str>),
    /// A count.
    Count(u64),
    /// Yes or no.
    Flag(bool),
    /// A length of time.
    Seconds(f64),
}

/// Why spans cannot be sent.
#[derive(Debug, Error)]
pub enum TraceError {
    /// Not an address of a receiver.
    #[error("`{0}` is not an OTLP address; hint: use for example http://127.0.0.1:4317")]
    BadAddress(String),
    /// The thread did not start.
    #[error("cannot start the thread that sends spans: {0}")]
    Thread(#[from] std::io::Error),
}

/// Sends spans. Dropping it does what [`Traces::close`] does.
#[derive(Debug)]
pub struct Traces {
    queue: SyncSender<Message>,
    shared: Arc<Shared>,
    sender: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    dropped: AtomicU64,
    closing: AtomicBool,
}

/// What goes through the queue.
#[derive(Debug)]
enum Message {
    Span(Span),
    End,
}

impl Traces {
    /// Starts to send to an OTLP receiver over gRPC, in the name of this service.
    ///
    /// Whether the receiver is there shows later: spans are then dropped and counted.
    pub fn start(
        address: &str,
        service: &'static str,
        version: &'static str,
    ) -> Result<Self, TraceError> {
        // The one runtime of the one thread that sends; the callers' own threads stay theirs.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let exporter = {
            let _inside = runtime.enter();
            SpanExporter::builder().with_tonic().with_endpoint(address).with_timeout(SEND).build()
        };
        let mut exporter = exporter.map_err(|_| TraceError::BadAddress(address.to_owned()))?;
        exporter.set_resource(
            &Resource::builder_empty()
                .with_attributes([
                    KeyValue::new("service.name", service),
                    KeyValue::new("service.version", version),
                ])
                .build(),
        );
        let (queue, spans) = sync_channel(QUEUE);
        let shared = Arc::new(Shared::default());
        let sender = Sender {
            runtime,
            exporter,
            scope: InstrumentationScope::builder("flyball").with_version(version).build(),
            shared: Arc::clone(&shared),
            reachable: true,
        };
        let thread = thread::Builder::new().name("spans".to_owned());
        let sender = thread.spawn(move || sender.run(&spans))?;
        Ok(Self { queue, shared, sender: Mutex::new(Some(sender)) })
    }

    /// Takes a span, or drops and counts it if too many wait.
    pub fn send(&self, span: Span) {
        if self.queue.try_send(Message::Span(span)).is_err() {
            self.shared.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Sends what is there and ends. Spans that come later are dropped and counted.
    pub fn close(&self) {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            self.shared.closing.store(true, Relaxed);
            // Waits for room if the queue is full; the thread makes some. If it is gone, there is
            // nobody to tell.
            let _ = self.queue.send(Message::End);
            // A panic of that thread has been reported already.
            let _ = sender.join();
        }
    }

    /// Spans that were not sent.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Relaxed)
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        self.close();
    }
}

/// The thread that sends.
struct Sender {
    runtime: tokio::runtime::Runtime,
    exporter: SpanExporter,
    scope: InstrumentationScope,
    shared: Arc<Shared>,
    reachable: bool,
}

impl Sender {
    fn run(mut self, queue: &Receiver<Message>) {
        let mut more = true;
        while more {
            let batch;
            (batch, more) = gathered(queue);
            let count = batch.len() as u64;
            // The end does not wait again for a receiver that did not answer.
            let given_up = !self.reachable && self.shared.closing.load(Relaxed);
            if count > 0 && (given_up || !self.send(batch)) {
                self.shared.dropped.fetch_add(count, Relaxed);
            }
        }
    }

    fn send(&mut self, batch: Vec<Span>) -> bool {
        let batch = batch.into_iter().map(|span| data(span, &self.scope)).collect();
        let sent = self.runtime.block_on(async {
            // The exporter's own bound is for each of its tries.
            tokio::time::timeout(SEND, self.exporter.export(batch)).await
        });
        let error = match sent {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("no answer in time".to_owned()),
        };
        // Said once per change, not once per batch.
        match (&error, self.reachable) {
            (Some(error), true) => tracing::warn!(error, "cannot send spans"),
            (None, false) => tracing::info!("sending spans recovered"),
            _ => {}
        }
        self.reachable = error.is_none();
        self.reachable
    }
}

/// The next spans, as soon as there are enough or the first has waited long enough, and whether
/// more may come.
fn gathered(queue: &Receiver<Message>) -> (Vec<Span>, bool) {
    let mut batch = match queue.recv() {
        Ok(Message::Span(span)) => vec![span],
        Ok(Message::End) | Err(_) => return (Vec::new(), false),
    };
    let until = Instant::now() + GATHER;
    while batch.len() < BATCH {
        match queue.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Message::Span(span)) => batch.push(span),
            Ok(Message::End) | Err(RecvTimeoutError::Disconnected) => return (batch, false),
            Err(RecvTimeoutError::Timeout) => break,
        }
    }
    (batch, true)
}

fn data(span: Span, scope: &InstrumentationScope) -> SpanData {
    let attributes = span.attributes.into_iter().map(|(name, value)| match value {
        Value::Text(text) => KeyValue::new(name, text),
        // Counts of tokens and bytes stay below 2^63.
        Value::Count(count) => KeyValue::new(name, i64::try_from(count).unwrap_or(i64::MAX)),
        Value::Flag(flag) => KeyValue::new(name, flag),
        Value::Seconds(seconds) => KeyValue::new(name, seconds),
    });
    let events = span.events.into_iter().map(|(name, at)| Event::new(name, at, Vec::new(), 0));
    let mut passed = SpanEvents::default();
    passed.events = events.collect();
    SpanData {
        span_context: SpanContext::new(
            TraceId::from(span.context.trace_id),
            SpanId::from(span.context.span_id),
            if span.context.sampled { TraceFlags::SAMPLED } else { TraceFlags::NOT_SAMPLED },
            false,
            TraceState::NONE,
        ),
        parent_span_id: span.parent.map_or(SpanId::INVALID, SpanId::from),
        parent_span_is_remote: span.parent.is_some() && span.side == SpanSide::Server,
        span_kind: match span.side {
            SpanSide::Server => SpanKind::Server,
            SpanSide::Client => SpanKind::Client,
            SpanSide::Inside => SpanKind::Internal,
        },
        name: span.name,
        start_time: span.start,
        end_time: span.end,
        attributes: attributes.collect(),
        dropped_attributes_count: 0,
        events: passed,
        links: SpanLinks::default(),
        status: span.error.map_or(Status::Unset, Status::error),
        instrumentation_scope: scope.clone(),
    }
}
