//! HTTP/2, with and without TLS.

use crate::engine::{Does, Engine};
use crate::rig::{LONG, PLAIN, Rig, STREAM};
use bytes::Bytes;
use flyball_gateway::meter::RequestOutcome;
use flyball_gateway::settings::Tls;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

async fn client<S>(stream: S) -> SendRequest<Full<Bytes>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    client_with(stream, 1 << 20).await
}

/// A client whose streams have windows of so many bytes.
async fn client_with<S>(stream: S, window: u32) -> SendRequest<Full<Bytes>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = Builder::new(TokioExecutor::new())
        .initial_stream_window_size(window)
        .handshake(TokioIo::new(stream))
        .await
        .expect("a handshake");
    tokio::spawn(connection);
    sender
}

fn request(body: &'static str) -> http::Request<Full<Bytes>> {
    let uri = "http://x/v1/chat/completions";
    let body = Full::new(Bytes::from_static(body.as_bytes()));
    http::Request::post(uri).body(body).expect("a request")
}

#[tokio::test]
async fn many_streams_share_a_connection() {
    let pieces = vec!["data: {\"a\":1}\n\n", "data: [DONE]\n\n"];
    let engine = Engine::start(Does::Streams(pieces, Duration::from_millis(50))).await;
    let rig = Rig::start(&[&engine], |_| {});
    let sender = client(rig.connect().await).await;
    let asks = (0..50).map(|_| {
        let mut sender = sender.clone();
        async move {
            let response = sender.send_request(request(STREAM)).await.expect("an answer");
            assert_eq!(response.status(), 200);
            assert!(response.headers().contains_key("x-request-id"));
            response.into_body().collect().await.expect("a body").to_bytes()
        }
    });
    for body in futures::future::join_all(asks).await {
        assert_eq!(&body[..], b"data: {\"a\":1}\n\ndata: [DONE]\n\n");
    }
}

#[tokio::test]
async fn a_stream_that_is_reset_reaches_the_engine() {
    let engine = Engine::start(Does::Stalls(vec!["data: {\"a\":1}\n\n"])).await;
    let rig = Rig::start(&[&engine], |_| {});
    let mut sender = client(rig.connect().await).await;
    let mut response = sender.send_request(request(STREAM)).await.expect("an answer");
    assert!(response.body_mut().frame().await.is_some());
    drop(response);
    tokio::time::timeout(LONG, engine.left(1)).await.expect("it is told");
    drop(sender);
}

#[tokio::test]
async fn a_client_that_opens_no_window_is_reset_and_its_engine_is_free() {
    let engine = Engine::start(Does::Stalls(vec!["data: {\"a\":1}\n\n"])).await;
    let rig = Rig::start(&[&engine], |s| s.timeouts.client_idle_ms = 100);
    let mut sender = client_with(rig.connect().await, 0).await;
    let mut response = sender.send_request(request(STREAM)).await.expect("a head");
    // No clock here: without a reset this waits for ever.
    assert!(response.body_mut().frame().await.expect("an end").is_err());
    engine.left(1).await;
    let line = &rig.finished(1).await[0];
    assert_eq!((line.outcome, line.reason), (RequestOutcome::Cancelled, Some("client_idle")));
    assert_eq!(rig.gateway.inside().requests, 0);
    assert_eq!(rig.gateway.fleet().endpoints().map(|e| e.in_flight()).sum::<u32>(), 0);
    assert_eq!(rig.cancelled(), 1);
    // The connection and its other streams go on.
    engine.now(Does::Answers(200, "{}"));
    let again = sender.send_request(request(PLAIN)).await.expect("a head");
    assert_eq!(again.status(), 200);
}

#[tokio::test]
async fn tls_speaks_both_versions() {
    let engine = Engine::start(Does::Answers(200, "{}")).await;
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let folder = std::env::temp_dir().join(format!("flyball-tls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let tls = Tls { certificate: folder.join("cert.pem"), key: folder.join("key.pem") };
    std::fs::write(&tls.certificate, made.cert.pem()).expect("written");
    std::fs::write(&tls.key, made.signing_key.serialize_pem()).expect("written");
    let rig = Rig::start(&[&engine], |s| s.tls = Some(tls));
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a root");
    for (alpn, is_http2) in [("h2", true), ("http/1.1", false)] {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots.clone())
            .with_no_client_auth();
        config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
        let name = "localhost".try_into().expect("a name");
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, rig.connect().await).await.expect("TLS");
        let status = if is_http2 {
            client(stream).await.send_request(request(PLAIN)).await.expect("an answer").status()
        } else {
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP/1");
            tokio::spawn(connection);
            sender.send_request(request(PLAIN)).await.expect("an answer").status()
        };
        assert_eq!(status, 200, "{alpn}");
    }
    std::fs::remove_dir_all(folder).expect("removed");
}
