//! Spans, as a receiver of OTLP over gRPC gets them.

use super::tests::{request, settings};
use super::*;
use bytes::Bytes;
use flyball_telemetry::traces::TraceContext;
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Mutex;
use tokio::net::TcpListener;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// What came, message after message. Texts and ids stand in protobuf as they are.
type Received = Arc<Mutex<Vec<u8>>>;

/// The least that is a receiver: it takes one message per call and says that this was well.
async fn receiver() -> (SocketAddr, Received) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let received = Received::default();
    let to = Arc::clone(&received);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let to = Arc::clone(&to);
            let service = hyper::service::service_fn(move |request| take(request, Arc::clone(&to)));
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
        }
    });
    (address, received)
}

async fn take(
    request: Request<Incoming>,
    to: Received,
) -> Result<Response<impl http_body::Body<Data = Bytes, Error = Infallible>>, Infallible> {
    let path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
    assert_eq!(request.uri().path(), path);
    let body = request.into_body().collect().await.unwrap().to_bytes();
    to.lock().unwrap().extend_from_slice(&body);
    let mut end = HeaderMap::new();
    end.insert("grpc-status", http::HeaderValue::from_static("0"));
    let empty = Bytes::from_static(&[0; 5]);
    let frames = [Ok(Frame::data(empty)), Ok(Frame::trailers(end))];
    let mut response = Response::new(StreamBody::new(futures::stream::iter(frames)));
    let kind = http::HeaderValue::from_static("application/grpc");
    response.headers_mut().insert("content-type", kind);
    Ok(response)
}

async fn sent(requests: impl FnOnce(&Meter) + Send + 'static, per_thousand: u32) -> Vec<u8> {
    let (address, received) = receiver().await;
    let mut settings = settings();
    settings.telemetry.otlp = Some(format!("http://{address}"));
    settings.telemetry.sampled_per_thousand = per_thousand;
    tokio::task::spawn_blocking(move || {
        let meter = Meter::start(&settings, "1.2.3", std::io::sink()).unwrap();
        requests(&meter);
        // Sends what is there.
        drop(meter);
    })
    .await
    .unwrap();
    received.lock().unwrap().clone()
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(bytes, part).is_some()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_gets_the_spans_that_the_engine_was_told_of() {
    let received = Arc::new(Mutex::new(None));
    let to = Arc::clone(&received);
    let bytes = sent(
        move |meter| {
            let request = Finished { traceparent: Some(PARENT), ..request() };
            let Finished { request_id, started, .. } = request;
            *to.lock().unwrap() = meter.traceparent(Some(PARENT), request_id, started);
            meter.finished(&request);
        },
        0,
    )
    .await;
    let received = received.lock().unwrap().clone().unwrap();
    let received = TraceContext::parse(received.to_str().unwrap()).unwrap();
    let parent = TraceContext::parse(PARENT).unwrap();
    assert_eq!(received.trace_id, parent.trace_id);
    assert!(received.sampled && received.span_id != parent.span_id);
    assert!(holds(&bytes, &parent.trace_id.to_be_bytes()), "the trace is another");
    assert!(holds(&bytes, &parent.span_id.to_be_bytes()), "the caller is no parent");
    assert!(holds(&bytes, &received.span_id.to_be_bytes()), "the engine's parent is not there");
    for text in [
        "flyball-gateway",
        "/v1/chat/completions",
        "chat qwen",
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
        "server.address",
        "10.0.0.1:8000",
        "flyball.outcome",
        "flyball.first_token",
        "choose",
        "first token",
        "stream",
    ] {
        assert!(holds(&bytes, text.as_bytes()), "{text} is not there");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_began_a_trace_decides_and_else_the_ratio() {
    let unwanted = |meter: &Meter| {
        let parent = PARENT.replace("-01", "-00");
        meter.finished(&Finished { traceparent: Some(&parent), ..request() });
        assert_eq!(meter.traceparent(Some(&parent), "a", request().started), None);
    };
    assert!(sent(unwanted, 1_000).await.is_empty());
    let none = |meter: &Meter| {
        meter.finished(&request());
        let received = meter.traceparent(None, "a", request().started).unwrap();
        assert!(received.to_str().unwrap().ends_with("-00"), "{received:?}");
    };
    assert!(sent(none, 0).await.is_empty());
    let all =
        |meter: &Meter| meter.finished(&Finished { traceparent: Some("garbage"), ..request() });
    assert!(!sent(all, 1_000).await.is_empty());
}

/// Name, parent and the span of time in milliseconds of each span but the first two.
fn phases(finished: &Finished<'_>) -> Vec<(String, &'static str, u128, u128)> {
    let ids = Ids::of(None, "r", finished.started, 7, 1_000);
    let spans = span::spans(finished, &ids);
    let mut seen: Vec<u64> = spans.iter().map(|span| span.context.span_id).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), spans.len(), "two spans have one id");
    let since = |at: SystemTime| at.duration_since(finished.started).unwrap().as_millis();
    let inside =
        spans.iter().filter(|span| span.side == flyball_telemetry::traces::SpanSide::Inside);
    inside
        .map(|span| {
            let parent = span.parent.unwrap();
            let parent = if parent == ids.client.span_id { "client" } else { "server" };
            (span.name.to_string(), parent, since(span.start), since(span.end))
        })
        .collect()
}

#[test]
fn every_phase_has_its_span_in_order() {
    let ms = Duration::from_millis;
    let tries = [Try { endpoint: "e1".into(), began: ms(60), ended: ms(80), why: "broken" }];
    let request = Finished {
        read: Some(ms(10)),
        queued: ms(40),
        chosen: Some(ms(55)),
        tries: &tries,
        first: Some(ms(100)),
        ..request()
    };
    let shown = phases(&request);
    let shown: Vec<_> =
        shown.iter().map(|(name, of, from, to)| (name.as_str(), *of, *from, *to)).collect();
    let expected = [
        ("read", "server", 0, 10),
        ("queue", "server", 10, 50),
        ("choose", "server", 50, 55),
        ("attempt", "server", 60, 80),
        ("first token", "client", 80, 100),
        ("stream", "client", 100, 1_100),
    ];
    assert_eq!(shown, expected);
    assert_eq!(phases(&Finished { held: true, ..request })[1].0, "hold");
    // Refused while it waited, and while its body came.
    let waits = Finished { chosen: None, first: None, tries: &[], ..request };
    assert_eq!(phases(&waits).len(), 2);
    assert_eq!(
        phases(&Finished { read: None, ..waits }),
        [("read".to_owned(), "server", 0, 1_100)]
    );
}

#[test]
fn without_a_receiver_nothing_is_said_to_the_engine() {
    let meter = Meter::quiet(&settings());
    assert_eq!(meter.traceparent(Some(PARENT), "a", request().started), None);
}

#[test]
fn the_ratio_is_kept_and_ids_differ() {
    let ids = |n: u32| Ids::of(None, &format!("r{n}"), request().started, 7, 100);
    let sampled = (0..10_000).filter(|n| ids(*n).server.sampled).count();
    // 1,000 of 10,000, with a standard deviation of 30.
    assert!((850..1_150).contains(&sampled), "{sampled}");
    assert_eq!(ids(1), ids(1));
    assert_ne!(ids(1).server.trace_id, ids(2).server.trace_id);
    assert_ne!(ids(1).server.span_id, ids(1).client.span_id);
    let later = request().started + Duration::from_nanos(1);
    assert_ne!(Ids::of(None, "r1", later, 7, 100), ids(1));
}
