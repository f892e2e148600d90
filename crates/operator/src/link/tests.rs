//! Real connections to a link, by a gateway of a few lines.

use super::*;
use crate::link::auth::{AccessVerdict, Verify};
use flyball_resources::stream::{
    Down, DrainMark, ModelDemand, ModelOrders, PATH, Protocol, ReportedDemand, Wake,
};
use futures::future::BoxFuture;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::net::SocketAddr;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::{Code, Request, Status, Streaming};

/// Only so that a test that hangs ends.
const LONG: Duration = Duration::from_secs(120);

/// A link that runs.
struct Office {
    link: Arc<GatewayLink>,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), LinkError>>,
}

impl Office {
    async fn open(auth: Auth) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let link = Arc::new(GatewayLink::new());
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = Arc::clone(&link).serve(listener, auth, async {
            drop(stopped.await);
        });
        Self { link, address, stop, serving: tokio::spawn(serving) }
    }
}

/// A gateway that says what it is told to.
struct Gateway {
    sends: mpsc::Sender<Up>,
    receives: Streaming<Down>,
}

struct Wire(hyper::client::conn::http2::SendRequest<Body>);

impl GrpcService<Body> for Wire {
    type ResponseBody = hyper::body::Incoming;
    type Error = hyper::Error;
    type Future = BoxFuture<'static, Result<http::Response<Self::ResponseBody>, hyper::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

fn hello(gateway: &str) -> Hello {
    let (protocol, program) = (Some(Protocol::OURS), "1.0.0".to_owned());
    Hello { protocol, gateway: gateway.to_owned(), program, started_ms: 7 }
}

impl Gateway {
    async fn comes(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        hello: Hello,
        token: Option<&str>,
    ) -> Result<Self, Status> {
        let (send, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await
                .map_err(|error| Status::unavailable(error.to_string()))?;
        tokio::spawn(connection);
        let origin = http::Uri::from_static("http://operator");
        let mut grpc = tonic::client::Grpc::with_origin(Wire(send), origin);
        grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let (sends, messages) = mpsc::channel(16);
        sends.send(Up { hello: Some(hello), ..Up::default() }).await.unwrap();
        let messages =
            futures::stream::unfold(messages, |mut messages: mpsc::Receiver<Up>| async move {
                Some((messages.recv().await?, messages))
            });
        let mut request = Request::new(messages);
        if let Some(token) = token {
            let value = format!("Bearer {token}").parse().unwrap();
            request.metadata_mut().insert("authorization", value);
        }
        let codec = tonic_prost::ProstCodec::<Up, Down>::default();
        let answer = grpc.streaming(request, PATH.parse().unwrap(), codec).await?;
        Ok(Self { sends, receives: answer.into_inner() })
    }

    async fn plain(office: &Office, name: &str) -> Self {
        let stream = TcpStream::connect(office.address).await.unwrap();
        Self::comes(stream, hello(name), None).await.unwrap()
    }

    async fn sends(&self, up: Up) {
        self.sends.send(up).await.unwrap();
    }

    /// The next message that is so.
    async fn receives(&mut self, is_so: impl Fn(&Down) -> bool) -> Down {
        let hearing = async {
            loop {
                let down = self.receives.message().await.unwrap().expect("the stream goes on");
                if is_so(&down) {
                    return down;
                }
            }
        };
        timeout(LONG, hearing).await.expect("it is said")
    }
}

fn orders(model: &str, eta: Option<u64>) -> Orders {
    let model = ModelOrders {
        model: model.to_owned(),
        first_token_ms: Some(500),
        wake_eta_ms: eta,
        ..ModelOrders::default()
    };
    let drain = DrainMark { name: "team/pod-0".to_owned(), ..DrainMark::default() };
    Orders { models: vec![model], drains: vec![drain], ..Orders::default() }
}

fn demand(waking: bool) -> Up {
    let model = ModelDemand { model: "m".to_owned(), waking, ..ModelDemand::default() };
    Up {
        demand: Some(ReportedDemand { models: vec![model], ..ReportedDemand::default() }),
        ..Up::default()
    }
}

fn wake() -> Up {
    let wake = Wake { model: "m".to_owned(), ..Wake::default() };
    Up { wake: Some(wake), ..Up::default() }
}

#[tokio::test]
async fn what_gateways_say_is_heard_and_what_they_are_told_reaches_all_and_those_that_come_later() {
    let office = Office::open(Auth::default()).await;
    let mut first = Gateway::plain(&office, "a").await;
    let welcome = first.receives(|down| down.welcome.is_some()).await;
    assert_eq!((welcome.orders, welcome.holds), (None, 0), "nothing was told yet");
    first.sends(demand(false)).await;
    while office
        .link
        .reports(SystemTime::now())
        .reports
        .iter()
        .all(|report| report.reported_at.is_none())
    {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(office.link.publish(orders("m", None)), Ok(1));
    assert_eq!(office.link.publish(orders("m", None)), Ok(1), "the same is not said twice");
    let sent = first.receives(|down| down.orders.is_some()).await;
    assert_eq!((sent.holds, sent.orders.unwrap().drains.len()), (1, 1));
    let mut second = Gateway::plain(&office, "b").await;
    let welcome = second.receives(|down| down.welcome.is_some()).await;
    assert_eq!(welcome.orders.unwrap().sequence, 1);
    let beat = second.receives(|down| down.welcome.is_none()).await;
    assert_eq!((beat.orders, beat.holds), (None, 1));
    let names: Vec<_> = office
        .link
        .reports(SystemTime::now())
        .reports
        .into_iter()
        .map(|report| report.gateway)
        .collect();
    assert_eq!(names, ["a", "b"]);
    office.stop.send(()).unwrap();
    office.serving.await.unwrap().unwrap();
    let end = async { while let Ok(Some(_)) = first.receives.message().await {} };
    timeout(LONG, end).await.unwrap();
}

#[tokio::test]
async fn a_wake_is_told_once_by_however_many() {
    let office = Office::open(Auth::default()).await;
    let mut wakes = office.link.wakes();
    let (a, b) = (Gateway::plain(&office, "a").await, Gateway::plain(&office, "b").await);
    a.sends(wake()).await;
    timeout(LONG, wakes.changed()).await.unwrap().unwrap();
    assert!(wakes.borrow_and_update().iter().any(|public| public.name == "m"));
    b.sends(wake()).await;
    a.sends(demand(true)).await;
    b.sends(demand(true)).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!wakes.has_changed().unwrap());
    a.sends(demand(false)).await;
    b.sends(demand(false)).await;
    timeout(LONG, wakes.wait_for(|waited_for| waited_for.is_empty())).await.unwrap().unwrap();
}

#[tokio::test]
async fn another_major_is_refused_with_both_versions_and_another_minor_is_not() {
    let office = Office::open(Auth::default()).await;
    let come = async |major, minor| {
        let stream = TcpStream::connect(office.address).await.unwrap();
        let protocol = Some(Protocol { major, minor });
        Gateway::comes(stream, Hello { protocol, ..hello("a") }, None).await
    };
    let refused = come(2, 0).await.err().unwrap();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("version 2.0") && refused.message().contains("hint:"));
    assert!(come(1, 9).await.is_ok());
    let stream = TcpStream::connect(office.address).await.unwrap();
    let nobody = Gateway::comes(stream, Hello::default(), None).await.err().unwrap();
    assert_eq!(nobody.code(), Code::FailedPrecondition);
}

#[tokio::test]
async fn a_second_connection_under_one_name_ends_the_first() {
    let office = Office::open(Auth::default()).await;
    let mut first = Gateway::plain(&office, "a").await;
    let _second = Gateway::plain(&office, "a").await;
    first.sends(demand(false)).await;
    let ended = async {
        loop {
            match first.receives.message().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("it should say why"),
                Err(status) => return status,
            }
        }
    };
    let status = timeout(LONG, ended).await.unwrap();
    assert_eq!(status.code(), Code::Aborted);
}

#[tokio::test(start_paused = true)]
async fn promised_times_are_told_from_the_moment_of_sending() {
    let link = GatewayLink::new();
    link.publish(orders("m", Some(60_000))).unwrap();
    tokio::time::advance(Duration::from_secs(20)).await;
    let given = link.orders.borrow().clone().unwrap();
    assert_eq!(given.sent_now().models[0].wake_eta_ms, Some(40_000));
    assert_eq!(link.publish(orders("m", Some(60_000))), Ok(2), "that is another minute");
    tokio::time::advance(Duration::from_secs(100)).await;
    assert_eq!(link.orders.borrow().clone().unwrap().sent_now().models[0].wake_eta_ms, Some(0));
    let many = Orders { models: vec![ModelOrders::default(); MAX_MODELS + 1], ..Orders::default() };
    assert!(link.publish(many).unwrap_err().to_string().contains("hint:"));
    assert_eq!(link.orders.borrow().as_ref().unwrap().orders.sequence, 2, "those before hold");
}

struct Door;

impl Verify for Door {
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, AccessVerdict> {
        let allowed = token == "good";
        Box::pin(async move {
            match allowed {
                true => AccessVerdict::Allowed("a".to_owned()),
                false => AccessVerdict::Denied("not on the list".to_owned()),
            }
        })
    }
}

#[tokio::test]
async fn without_its_token_nobody_talks() {
    let auth = Auth { verify: Some(Arc::new(Door)), ..Auth::default() };
    let office = Office::open(auth).await;
    for (token, code) in [(None, Code::Unauthenticated), (Some("bad"), Code::PermissionDenied)] {
        let stream = TcpStream::connect(office.address).await.unwrap();
        let refused = Gateway::comes(stream, hello("a"), token).await.err().unwrap();
        assert_eq!(refused.code(), code);
    }
    let stream = TcpStream::connect(office.address).await.unwrap();
    assert!(Gateway::comes(stream, hello("a"), Some("good")).await.is_ok());
}

#[tokio::test]
async fn an_open_door_is_refused() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let link = Arc::new(GatewayLink::new());
    let refused = link.serve(listener, Auth::default(), std::future::pending()).await;
    assert!(refused.unwrap_err().to_string().contains("hint:"));
}
