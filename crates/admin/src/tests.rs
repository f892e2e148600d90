use super::*;
use crate::review_cache::HOLDS;
use crate::serve::{CONNECTIONS, Times, serve_within};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const HOUR: Duration = Duration::from_secs(3_600);

/// Says the path; at `/slow` nothing, for ever; at `/metrics` more than a socket holds.
#[derive(Default)]
struct CountingPages {
    requests: AtomicUsize,
}

impl AdminPages for CountingPages {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        self.requests.fetch_add(1, SeqCst);
        match request.uri().path() {
            "/slow" => std::future::pending().await,
            "/metrics" => Response::new(Full::from(vec![b'x'; 32 << 20])),
            path => Response::new(Full::from(path.to_owned())),
        }
    }
}

async fn start(guard: Guard) -> (SocketAddr, Arc<CountingPages>, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, pages) = (listener.local_addr().unwrap(), Arc::<CountingPages>::default());
    // Longer than any test: nothing here is helped by waiting.
    let times = Times { connection: HOUR, head: HOUR };
    let serving = tokio::spawn(serve_within(listener, Arc::clone(&pages), guard, times));
    (address, pages, serving)
}

/// The status and what was said.
async fn ask(address: SocketAddr, line: &str, headers: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("{line} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

#[tokio::test]
async fn connections_that_are_slow_in_any_way_do_not_keep_out_a_probe() {
    for half in
        ["GET /sta", "GET /slow HTTP/1.1\r\nhost: a\r\n\r\n", "GET /metrics HTTP/1.1\r\n\r\n"]
    {
        let (address, pages, serving) = start(Guard::default()).await;
        let mut held = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(half.as_bytes()).await.unwrap();
            held.push(stream);
        }
        while half.ends_with('\n') && pages.requests.load(SeqCst) < CONNECTIONS {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        for path in ["/healthz", "/readyz"] {
            let line = format!("GET {path}");
            let probe = ask(address, &line, "");
            let probe = tokio::time::timeout(HOUR / 60, probe).await;
            assert_eq!(probe.expect("an answer"), (200, path.to_owned()), "{half:?}");
        }
        drop(held);
        serving.abort();
    }
}

#[tokio::test]
async fn health_and_metrics_are_for_anybody_and_the_rest_is_not() {
    let admin_clients = AdminClients { loopback: false, ..AdminClients::default() };
    let (address, pages, serving) = start(Guard::new(admin_clients, None)).await;
    for path in ["/healthz", "/readyz"] {
        assert_eq!(ask(address, &format!("GET {path}"), "").await.0, 200);
    }
    let before = pages.requests.load(SeqCst);
    for line in ["GET /decisions", "POST /whatif", "GET /state", "GET /", "GET /healthz/../state"] {
        let (status, words) = ask(address, line, "").await;
        assert_eq!(status, 401, "{line}");
        assert!(words.contains("hint: "), "{words}");
        assert_eq!(ask(address, line, "authorization: Bearer guess\r\n").await.0, 403, "{line}");
    }
    assert_eq!(pages.requests.load(SeqCst), before, "nobody heard of it");
    serving.abort();
}

#[tokio::test]
async fn without_a_cluster_this_machine_or_a_token_opens() {
    let (address, _, serving) = start(Guard::default()).await;
    assert_eq!(ask(address, "GET /state", "").await, (200, "/state".to_owned()));
    serving.abort();
    let sha256 = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"; // of "secret"
    let admin_clients = AdminClients {
        loopback: false,
        token_sha256: Some(sha256.to_uppercase()),
        ..AdminClients::default()
    };
    let (address, _, serving) = start(Guard::new(admin_clients, None)).await;
    for (headers, status) in [
        ("authorization: Bearer secret\r\n", 200),
        ("x-flyball-token: secret\r\n", 200),
        ("authorization: Basic secret\r\n", 401),
        ("authorization: Bearer Secret\r\n", 403),
        (format!("authorization: Bearer {sha256}\r\n").as_str(), 403),
    ] {
        assert_eq!(ask(address, "GET /state", headers).await.0, status, "{headers}");
    }
    serving.abort();
}

#[tokio::test]
async fn a_sidecar_is_not_this_machine() {
    let guard = Guard::default();
    let admits = async |peer: &str| {
        guard
            .admit(peer.parse().unwrap(), &http::Method::GET, &http::HeaderMap::new())
            .await
            .is_ok()
    };
    assert!(admits("127.0.0.1").await && admits("::1").await && admits("::ffff:127.0.0.1").await);
    assert!(!admits("127.0.0.6").await && !admits("10.0.0.1").await && !admits("fe80::1").await);
}

/// An API server that knows a few tokens, and how often it was asked.
async fn api_server() -> (Client, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let requests = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let count = Arc::clone(&count);
            let counted = move |request| {
                count.fetch_add(1, SeqCst);
                judged(request)
            };
            tokio::spawn(
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service_fn(counted)),
            );
        }
    });
    let mut config = kube::Config::new(format!("http://{address}").parse().unwrap());
    config.default_retry = false;
    (Client::try_from(config).unwrap(), requests)
}

async fn judged(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let mut review: Value = serde_json::from_slice(&body).unwrap();
    let spec = &review["spec"];
    let status = match path.as_str() {
        "/apis/authentication.k8s.io/v1/tokenreviews" => {
            assert_eq!(spec["audiences"], json!([AUDIENCE]));
            let user = |name: &str| json!({"username": name, "groups": ["g"], "uid": "u"});
            match spec["token"].as_str().unwrap() {
                "broken" => {
                    return Ok(Response::builder().status(500).body(Full::from("no")).unwrap());
                }
                "for-the-api-server" => json!({"authenticated": true,
                    "audiences": ["https://kubernetes.default.svc"], "user": user("reader")}),
                "old" => json!({"error": "expired"}),
                name => json!({"authenticated": true, "audiences": [AUDIENCE], "user": user(name)}),
            }
        }
        "/apis/authorization.k8s.io/v1/subjectaccessreviews" => {
            let attributes = &spec["resourceAttributes"];
            assert_eq!(
                (&attributes["resource"], &attributes["subresource"]),
                (&json!("services"), &json!("proxy"))
            );
            assert_eq!(
                (&attributes["namespace"], &attributes["name"]),
                (&json!("flyball"), &json!("http:op:admin"))
            );
            assert_eq!((&spec["groups"], &spec["uid"]), (&json!(["g"]), &json!("u")));
            let allowed = match spec["user"].as_str().unwrap() {
                "reader" => attributes["verb"] == "get",
                name => name == "admin_client",
            };
            json!({"allowed": allowed})
        }
        other => panic!("{other}"),
    };
    review["status"] = status;
    Ok(Response::new(Full::from(review.to_string())))
}

async fn guarded() -> (SocketAddr, Arc<AtomicUsize>, JoinHandle<()>) {
    let (client, requests) = api_server().await;
    let service = Some("flyball/op".to_owned());
    let place = ReviewedPlace::read("flyball/op").unwrap();
    let admin_clients = AdminClients { loopback: false, service, ..AdminClients::default() };
    let (address, _, serving) =
        start(Guard::new(admin_clients, Some(Reviews::new(client, place)))).await;
    (address, requests, serving)
}

#[tokio::test]
async fn the_api_server_says_whose_token_it_is_and_whether_they_may_ask() {
    let (address, _, serving) = guarded().await;
    for (line, token, status, word) in [
        ("GET /decisions", "admin_client", 200, "/decisions"),
        ("POST /whatif", "admin_client", 200, "/whatif"),
        ("GET /decisions", "reader", 200, "/decisions"),
        ("POST /whatif", "reader", 403, "`create` on services/proxy"),
        ("GET /decisions", "tenant", 403, "rbac.adminClients"),
        ("GET /decisions", "for-the-api-server", 403, "audience flyball-admin"),
        ("GET /decisions", "old", 403, "expired"),
        ("GET /decisions", "broken", 503, "tokenreviews"),
    ] {
        // As a person sends it, and as it comes through the API server's proxy.
        for header in ["authorization: Bearer ", "x-flyball-token: "] {
            let (answered, words) = ask(address, line, &format!("{header}{token}\r\n")).await;
            assert_eq!(answered, status, "{line} {token}");
            assert!(words.contains(word), "{words}");
        }
    }
    serving.abort();
}

#[tokio::test]
async fn verdicts_hold_a_minute_but_for_those_that_nobody_could_give() {
    let (address, requests, serving) = guarded().await;
    let ask = async |token: &str| {
        ask(address, "GET /state", &format!("authorization: Bearer {token}\r\n")).await.0
    };
    for _ in 0..5 {
        assert_eq!(ask("admin_client").await, 200);
        assert_eq!(ask("tenant").await, 403);
    }
    assert_eq!(requests.load(SeqCst), 4, "two questions for each");
    for _ in 0..2 {
        assert_eq!(ask("broken").await, 503);
    }
    assert_eq!(requests.load(SeqCst), 6, "what could not be known is asked again");
    tokio::time::pause();
    tokio::time::advance(HOLDS).await;
    tokio::time::resume();
    assert_eq!(ask("admin_client").await, 200);
    assert_eq!(requests.load(SeqCst), 8);
    serving.abort();
}

#[tokio::test]
async fn without_an_api_server_nobody_is_let_in() {
    let mut config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    config.default_retry = false;
    let reviews =
        Reviews::new(Client::try_from(config).unwrap(), ReviewedPlace::read("flyball/op").unwrap());
    let admin_clients = AdminClients {
        loopback: false,
        service: Some("flyball/op".to_owned()),
        ..AdminClients::default()
    };
    for reviews in [Some(reviews), None] {
        let (address, _, serving) = start(Guard::new(admin_clients.clone(), reviews)).await;
        let (status, _) =
            ask(address, "GET /state", "authorization: Bearer admin_client\r\n").await;
        assert_eq!(status, 503);
        serving.abort();
    }
}

#[test]
fn a_place_is_a_namespace_and_a_name_and_goes_into_no_path() {
    assert!(ReviewedPlace::read("flyball/flyball-operator").is_some());
    for wrong in ["flyball", "/a", "a/", "a/b/c", "A/b", "a/b:c"] {
        assert_eq!(ReviewedPlace::read(wrong), None, "{wrong}");
    }
}
