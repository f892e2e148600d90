//! The request as an engine gets it: the very bytes of the body, and a short list of headers.

use crate::names::{REQUEST_ID, TRACEPARENT};
use crate::surface::Surface;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderName};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use http_body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

/// Headers of a client that engines get. All others stay here: keys and cookies are not theirs,
/// and some steer an engine (`x-data-parallel-rank`).
static PASSED: [HeaderName; 4] = [
    ACCEPT,
    HeaderName::from_static("anthropic-version"),
    HeaderName::from_static("anthropic-beta"),
    HeaderName::from_static("tracestate"),
];

/// The body of a request: the pieces in which it came.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pieces: Arc<[Bytes]>,
    next: usize,
    left: u64,
    sent: Sent,
}

/// Whether all of a body was handed to the connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sent(Arc<AtomicBool>);

impl Sent {
    pub(crate) fn is_whole(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Outgoing {
    fn new(pieces: Arc<[Bytes]>) -> Self {
        let left = pieces.iter().map(|piece| piece.len() as u64).sum();
        Self { pieces, next: 0, left, sent: Sent::default() }
    }

    pub(crate) fn sent(&self) -> Sent {
        self.sent.clone()
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(piece) = self.pieces.get(self.next).cloned() else { return Poll::Ready(None) };
        self.next += 1;
        self.left -= piece.len() as u64;
        if self.left == 0 {
            self.sent.0.store(true, Ordering::Relaxed);
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// The request for an engine.
pub(crate) fn request(
    surface: Surface,
    from: &HeaderMap,
    host: &HeaderValue,
    request_id: &HeaderValue,
    traceparent: Option<&HeaderValue>,
    pieces: Arc<[Bytes]>,
) -> Request<Outgoing> {
    let mut request = Request::new(Outgoing::new(pieces));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static(surface.path());
    let headers = request.headers_mut();
    headers.reserve(8);
    headers.insert(HOST, host.clone());
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for name in &PASSED {
        if let Some(value) = from.get(name) {
            headers.insert(name.clone(), value.clone());
        }
    }
    headers.insert(REQUEST_ID.clone(), request_id.clone());
    if let Some(traceparent) = traceparent {
        headers.insert(TRACEPARENT.clone(), traceparent.clone());
    }
    request
}

/// Takes away from an engine's answer what is between the engine and us.
pub(crate) fn clean(headers: &mut HeaderMap) {
    // An answer has few headers and hardly any of these, so looking through it is less than looking
    // for each.
    while let Some(name) = headers.keys().find(|name| stays_here(name)).cloned() {
        headers.remove(name);
    }
}

fn stays_here(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "connection"
            | "keep-alive"
            | "proxy-authenticate"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
            | "server"
            | "date"
            | "content-length"
            | "set-cookie"
            | "x-request-id"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_between_the_engine_and_us_does_not_go_on() {
        let mut headers = HeaderMap::new();
        for name in
            ["date", "x-took", "set-cookie", "connection", "content-type", "keep-alive", "server"]
        {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static("x"));
        }
        headers.append("set-cookie", HeaderValue::from_static("y"));
        clean(&mut headers);
        let mut left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["content-type", "x-took"]);
    }
}
