//! Bytes of a client: what the server takes for a request has a known path exactly when the bytes
//! say so, and two requests are never seen where a strict reader sees one.

#![no_main]

use bytes::Bytes;
use flyball_fuzz::Surface;
use http_body_util::{BodyExt as _, Empty};
use hyper::{Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use std::cell::RefCell;
use std::convert::Infallible;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

thread_local! {
    static RUNTIME: tokio::runtime::Runtime =
        tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    static SEEN: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    SEEN.take();
    let answered = RUNTIME.with(|runtime| runtime.block_on(serve(data)));
    let taken = SEEN.take();
    // Every request takes at least a line and the empty line behind it.
    let least: usize = taken.iter().map(|body| body + b"A / HTTP/1.1\n\n".len()).sum();
    assert!(least <= data.len(), "{taken:?} out of {} bytes", data.len());
    // `100 Continue` comes before an answer and is none.
    let is_final = |bytes: &&[u8]| bytes.starts_with(b"HTTP/1.1 ") && bytes[9] != b'1';
    let answers = answered.windows(10).filter(is_final).count();
    assert!(answers <= taken.len() + 1, "{answers} answers to {} requests", taken.len());
});

async fn serve(data: &[u8]) -> Vec<u8> {
    let (mut client, server) = tokio::io::duplex(64 << 10);
    let connection = hyper::server::conn::http1::Builder::new()
        .max_headers(64)
        .max_buf_size(64 << 10)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(server), hyper::service::service_fn(answer));
    let talk = async {
        let _ = client.write_all(data).await;
        let _ = client.shutdown().await;
        let mut answered = Vec::new();
        let _ = client.read_to_end(&mut answered).await;
        answered
    };
    let (_, answered) = tokio::join!(connection, talk);
    answered
}

async fn answer(request: Request<Incoming>) -> Result<Response<Empty<Bytes>>, Infallible> {
    let path = request.uri().path();
    if let Some(surface) = Surface::of(path) {
        assert_eq!(surface.path(), path);
    }
    let body = request.into_body().collect().await.map_or(0, |body| body.to_bytes().len());
    SEEN.with_borrow_mut(|seen| seen.push(body));
    Ok(Response::new(Empty::new()))
}
