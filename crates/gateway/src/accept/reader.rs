//! The clock of an HTTP/2 stream: whoever does not take what is there for it is cut off.
//!
//! A client that opens no window keeps hyper from asking for the next piece, so no timer of a body can
//! run then. This one is outside: hyper's work on a stream is wrapped, and dropped when it is late, which
//! resets the stream and frees the engine. Pieces are small, so that a slow and steady client is seen to
//! read.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;

/// Bytes of a piece: whoever takes so many within `client_idle_ms` reads. At the default that is 68 bytes
/// per second, less than anybody reads; and frames of this size cost hardly more than larger ones.
pub(crate) const PIECE_BYTES: usize = 4 << 10;

tokio::task_local! {
    /// The client of the stream that this task works on.
    static READER: Arc<Reader>;
}

/// How the client of a stream reads.
#[derive(Debug)]
pub(crate) struct Reader {
    began: Instant,
    /// Nanoseconds from `began` to when something was there for the client, and one; 0 if it waits for us.
    offered: AtomicU64,
    late: AtomicBool,
}

impl Reader {
    fn new() -> Self {
        let (offered, late) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { began: Instant::now(), offered, late }
    }

    /// That of the stream that this task works on, if it does.
    pub(crate) fn current() -> Option<Arc<Self>> {
        READER.try_with(Arc::clone).ok()
    }

    /// Whether this task's stream ends because its client does not read.
    pub(crate) fn is_late() -> bool {
        READER.try_with(|reader| reader.late.load(Relaxed)).unwrap_or(false)
    }

    /// There is something for the client; what there was before, it has taken.
    pub(crate) fn offer(&self) {
        // 2^64 ns are 584 years.
        self.offered.store(self.began.elapsed().as_nanos() as u64 + 1, Relaxed);
    }

    /// The client has taken all there was and waits for us.
    pub(crate) fn waits(&self) {
        self.offered.store(0, Relaxed);
    }

    /// Since when there is something that it does not take.
    fn since(&self) -> Option<Instant> {
        let nanos = self.offered.load(Relaxed).checked_sub(1)?;
        Some(self.began + Duration::from_nanos(nanos))
    }
}

/// Runs hyper's work on streams, each with a clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams {
    /// For a client to take what is there for it.
    pub(super) idle: Duration,
}

impl<F> hyper::rt::Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, work: F) {
        // Ends with its connection, as every stream does.
        tokio::spawn(watched(work, self.idle));
    }
}

/// Works on a stream for as long as its client reads.
async fn watched(work: impl Future<Output = ()>, idle: Duration) {
    let reader = Arc::new(Reader::new());
    let mut work = pin!(READER.scope(Arc::clone(&reader), work));
    let mut bell = None;
    let late = |cx: &mut Context<'_>| loop {
        let Some(since) = reader.since() else { return Poll::Pending };
        let deadline = since + idle;
        // Set when a client first makes us wait, and again only when it rings.
        let bell = bell.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if bell.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        if Instant::now() >= deadline {
            return Poll::Ready(());
        }
        bell.as_mut().reset(deadline);
    };
    tokio::select! {
        // The work first: it says whether the client is waited for.
        biased;
        () = work.as_mut() => {}
        // What is dropped now asks for the reason.
        () = std::future::poll_fn(late) => reader.late.store(true, Relaxed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Payload;
    use bytes::Bytes;
    use http::{Request, Response};
    use http_body_util::{BodyExt as _, Empty};
    use hyper::body::Incoming;
    use hyper::client::conn::http2 as client;
    use hyper::server::conn::http2 as server;
    use hyper::service::service_fn;
    use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
    use std::convert::Infallible;

    const IDLE: Duration = Duration::from_secs(60);

    /// The answer of a server with these clocks, to a client that opens so small a window.
    async fn answer(window: u32, bytes: usize) -> Response<Incoming> {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let service = service_fn(move |_: Request<Incoming>| async move {
            let payload = Payload::whole(Bytes::from(vec![b'x'; bytes]));
            let reader = Reader::current().expect("a stream has one");
            Ok::<_, Infallible>(Response::new(payload.for_reader(reader)))
        });
        let serving = server::Builder::new(Streams { idle: IDLE })
            .serve_connection(TokioIo::new(ours), service);
        tokio::spawn(serving);
        let (mut sender, connection) = client::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(window)
            .handshake(TokioIo::new(theirs))
            .await
            .unwrap();
        tokio::spawn(connection);
        let response = sender.send_request(Request::new(Empty::<Bytes>::new())).await.unwrap();
        // The connection lives as long as there is a sender.
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(1 << 20)).await;
            drop(sender);
        });
        response
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_opens_no_window_is_reset() {
        let began = Instant::now();
        let mut response = answer(0, 10).await;
        assert!(response.body_mut().frame().await.unwrap().is_err());
        assert!((IDLE..2 * IDLE).contains(&began.elapsed()), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_stops_reading_is_reset() {
        let mut response = answer(1_000, 100_000).await;
        let first = response.body_mut().frame().await.unwrap().unwrap();
        assert!(first.is_data());
        tokio::time::sleep(10 * IDLE).await;
        let rest = response.into_body().collect().await;
        assert!(rest.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_and_steadily_is_not() {
        let began = Instant::now();
        let mut response = answer(512, 100_000).await;
        let mut read = 0;
        while let Some(frame) = response.body_mut().frame().await {
            read += frame.unwrap().into_data().unwrap().len();
            // Eight or more windows within the time.
            tokio::time::sleep(IDLE / 16).await;
        }
        assert_eq!(read, 100_000);
        assert!(began.elapsed() > 10 * IDLE, "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn an_engine_that_thinks_for_long_is_not_the_clients_fault() {
        let work = async {
            let reader = Reader::current().unwrap();
            reader.offer();
            tokio::time::sleep(IDLE / 2).await;
            reader.waits();
            tokio::time::sleep(100 * IDLE).await;
            reader.offer();
            tokio::time::sleep(IDLE / 2).await;
        };
        let began = Instant::now();
        watched(work, IDLE).await;
        assert!(began.elapsed() > 100 * IDLE);
        let stuck = async {
            Reader::current().unwrap().offer();
            std::future::pending().await
        };
        let began = Instant::now();
        watched(stuck, IDLE).await;
        assert!((IDLE..IDLE + Duration::from_secs(1)).contains(&began.elapsed()));
    }
}
