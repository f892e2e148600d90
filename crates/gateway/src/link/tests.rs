//! The link against an operator of a few lines, and against none.

use super::*;
use crate::meter::Finished;
use crate::serve::{self, Listener};
use crate::settings::GatewaySettingsFile;
use flyball_engines::Engine;
use flyball_fleet::{FleetEndpoint, Flight, FoundEngines, Listing};
use flyball_resources::stream::{
    DrainMark, EndpointLoad, EndpointState, MAJOR, ModelOrders, Orders, PATH, Welcome,
};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::server::{Grpc, StreamingService};
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;

struct Deaf;

impl Listener for Deaf {
    fn finished(&self, _: &Finished<'_>) {}
    fn cancelled(&self, _: &Arc<FleetEndpoint>) {}
}

fn found(port: u16) -> FoundEngines {
    FoundEngines {
        name: format!("team/pod-{port}"),
        address: ([10, 0, 0, 1], port).into(),
        uid: None,
        draining: false,
        engine: Engine::Vllm,
    }
}

/// A gateway with two engines of model `m`, and its link to this address.
fn link(address: &str) -> OperatorLink {
    let mut settings = GatewaySettingsFile { threads: 1, ..GatewaySettingsFile::default() };
    settings.listen.set_port(0);
    let running = Arc::new(serve::start(&settings, Arc::new(Deaf)).unwrap());
    running.list(&Listing { models: [("m".to_owned(), vec![found(1), found(2)])].into() });
    let operator = Operator { address: address.to_owned(), ..Operator::default() };
    OperatorLink::new(operator, running, "1.0.0").named("gateway-0")
}

fn drains(sequence: u64) -> Down {
    let drains = vec![DrainMark { name: "team/pod-1".to_owned(), ..DrainMark::default() }];
    let orders = Orders { sequence, drains, ..Orders::default() };
    Down { orders: Some(orders), holds: sequence, ..Down::default() }
}

fn beat(holds: u64) -> Down {
    Down { holds, ..Down::default() }
}

#[tokio::test(start_paused = true)]
async fn drain_marks_lapse_ten_minutes_after_they_were_last_said_to_hold() {
    let link = link("http://127.0.0.1:1");
    let minute = Duration::from_mins(1);
    link.take(drains(3));
    for _ in 0..3 {
        tokio::time::advance(9 * minute).await;
        link.lapse();
        assert_eq!(link.now().drained, 1);
        link.take(beat(3));
    }
    // An operator that began anew and has nothing to say yet does not say that they hold.
    link.take(beat(0));
    tokio::time::advance(9 * minute).await;
    link.take(beat(4));
    link.lapse();
    assert_eq!(link.now().drained, 1);
    tokio::time::advance(minute).await;
    link.lapse();
    assert_eq!(link.now().drained, 0);
    link.take(drains(5));
    assert_eq!(link.now().drained, 1);
    link.take(Down { orders: Some(Orders::default()), ..Down::default() });
    assert_eq!(link.now().drained, 0, "the operator took it back");
}

#[tokio::test(start_paused = true)]
async fn a_wake_is_said_at_once_to_who_listens_and_reports_know_of_it() {
    let link = link("http://127.0.0.1:1");
    assert!(link.wake("m").unwrap_err().contains("unreachable"));
    let (mouth, mut words) = mpsc::channel(4);
    link.speak(mouth);
    link.wake("m").unwrap();
    link.take(drains(7));
    link.report();
    assert_eq!(words.recv().await.unwrap().wake.unwrap().model, "m");
    let demand = words.recv().await.unwrap().demand.unwrap();
    assert_eq!((demand.orders, demand.models.len(), demand.endpoints.len()), (7, 1, 2));
    let states: Vec<_> = demand.endpoints.iter().map(|endpoint| endpoint.state).collect();
    assert_eq!(states, [2, 1], "the first drains");
    link.hush();
    assert!(link.wake("m").is_err());
    // How things stood comes first. Full: nobody waits for it.
    let (mouth, mut words) = mpsc::channel(2);
    link.speak(mouth);
    link.wake("m").unwrap();
    assert!(link.wake("m").is_err());
    link.report();
    assert_eq!(link.state().sequence, 0, "what another stream said is not counted here");
    let past = words.recv().await.unwrap().past;
    assert_eq!(past.iter().map(|moment| moment.models.len()).collect::<Vec<_>>(), [1]);
}

#[tokio::test(start_paused = true)]
async fn requests_at_an_engine_that_is_not_listed_any_more_are_reported_until_they_end() {
    let link = link("http://127.0.0.1:1");
    let (mouth, mut words) = mpsc::channel(1);
    link.speak(mouth);
    let mut report = async || {
        link.report();
        let demand = words.recv().await.unwrap().demand.unwrap();
        let listed =
            |endpoint: &EndpointLoad| (endpoint.name.clone(), endpoint.in_flight, endpoint.state());
        let in_flight: u64 = demand.models.iter().map(|model| model.in_flight).sum();
        (demand.endpoints.iter().map(listed).collect::<Vec<_>>(), in_flight)
    };
    let listed = |port: u16, in_flight, state| (format!("team/pod-{port}"), in_flight, state);
    let (open, gone) = (EndpointState::Open, EndpointState::Gone);
    let endpoint = Arc::clone(link.running.fleet().endpoints().next().unwrap());
    let flight = Flight::begin(endpoint, 10, 10, true, std::time::Instant::now());
    assert_eq!(report().await, (vec![listed(1, 1, open), listed(2, 0, open)], 1));
    let list = |model: &str, ports: &[u16]| {
        let found = ports.iter().copied().map(found).collect();
        link.running.list(&Listing { models: [(model.to_owned(), found)].into() });
    };
    list("m", &[2]);
    assert_eq!(report().await, (vec![listed(2, 0, open), listed(1, 1, gone)], 1));
    assert_eq!(link.running.engines().gone, 1);
    // Its model too.
    list("other", &[3]);
    assert_eq!(report().await, (vec![listed(3, 0, open), listed(1, 1, gone)], 0));
    list("m", &[1, 2]);
    assert_eq!(report().await, (vec![listed(1, 1, open), listed(2, 0, open)], 1));
    list("m", &[2]);
    drop(flight);
    assert_eq!(report().await, (vec![listed(2, 0, open)], 0));
}

/// An operator that says this to everybody.
#[derive(Clone)]
struct ScriptedOperator(Vec<Result<Down, Status>>);

impl StreamingService<Up> for ScriptedOperator {
    type Response = Down;
    type ResponseStream = BoxStream<'static, Result<Down, Status>>;
    type Future = BoxFuture<'static, Result<tonic::Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<Up>>) -> Self::Future {
        let words = self.0.clone();
        Box::pin(async move {
            let hello = request.into_inner().message().await?.and_then(|up| up.hello);
            assert_eq!(hello.unwrap().gateway, "gateway-0");
            if let [Err(refused), ..] = words.as_slice() {
                return Err(refused.clone());
            }
            let words = futures::stream::iter(words).chain(futures::stream::pending());
            Ok(tonic::Response::new(words.boxed()))
        })
    }
}

async fn operator(script: ScriptedOperator) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let script = script.clone();
            let answer = move |request: Request<Incoming>| {
                assert_eq!(request.uri().path(), PATH);
                let script = script.clone();
                async move {
                    let mut grpc = Grpc::new(ProstCodec::<Down, Up>::default());
                    Ok::<Response<Body>, Infallible>(grpc.streaming(script, request).await)
                }
            };
            let serving = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service_fn(answer));
            tokio::spawn(serving);
        }
    });
    address
}

fn welcome(major: u32, minor: u32) -> Down {
    let protocol = Some(Protocol { major, minor });
    let welcome = Welcome { protocol, program: "9.9.9".to_owned() };
    Down { welcome: Some(welcome), ..Down::default() }
}

async fn tried(script: Vec<Result<Down, Status>>) -> (OperatorLink, Came, String) {
    let address = operator(ScriptedOperator(script)).await;
    let link = link(&format!("http://{address}"));
    link.take(drains(1));
    let (came, ended) = link.converse().await;
    (link, came, ended.to_string())
}

#[tokio::test]
async fn another_major_is_not_talked_to_and_what_was_said_before_holds() {
    let (link, came, why) = tried(vec![Ok(welcome(MAJOR + 1, 0)), Ok(drains(9))]).await;
    assert_eq!(came, Came::Incompatible, "{why}");
    assert!(why.contains("version 2.0") && why.contains("hint:"), "{why}");
    assert_eq!(link.now().drained, 1);
    assert!(link.wake("m").is_err());
    let refused = Status::failed_precondition("the gateway uses version 1.0; hint: another");
    let (link, came, why) = tried(vec![Err(refused)]).await;
    assert_eq!(came, Came::Refused);
    assert!(why.contains("FailedPrecondition") && why.contains("hint:"), "{why}");
    assert_eq!(link.now().drained, 1);
}

#[tokio::test]
async fn another_minor_is_talked_to_and_an_end_is_an_end() {
    let model = ModelOrders { model: "m".to_owned(), ..ModelOrders::default() };
    let orders = Orders { sequence: 4, models: vec![model], ..Orders::default() };
    let down = Down { orders: Some(orders), holds: 4, ..Down::default() };
    let ends = Status::unavailable("the operator is shutting down; reconnect");
    let words = vec![Ok(welcome(MAJOR, 9)), Ok(down), Err(ends)];
    let (link, came, why) = tried(words).await;
    assert_eq!(came, Came::Welcomed, "{why}");
    assert!(why.contains("reconnect"), "{why}");
    assert_eq!((link.now().drained, link.state().sequence), (0, 4));
    let now = link.now();
    assert_eq!((now.tries, now.messages[1]), ([1, 0, 0, 0], 3));
}

#[tokio::test]
async fn nobody_there_and_nothing_to_show_are_told_apart() {
    let nobody = link("http://127.0.0.1:1");
    let (came, ended) = nobody.converse().await;
    assert_eq!(came, Came::Unreachable, "{ended}");
    let mut nothing = link("http://127.0.0.1:1");
    nothing.settings.token_file = Some("/no/such/token".into());
    let (came, ended) = nothing.converse().await;
    assert_eq!(came, Came::Refused);
    assert!(ended.to_string().contains("/no/such/token"), "{ended}");
    assert!(nothing.now().away);
}
