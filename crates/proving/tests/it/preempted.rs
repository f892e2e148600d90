//! Batch requests that make room for others: their connection is cut, and they go on when there is room again.
//!
//! The engine never reports, so that it is taken to bear four requests: eight callers who ask all the time take the place of
//! whatever is batch there, and batch goes on as soon as they stop.

use flyball_emulator::{Emulator, EmulatorSettings as Emulated, LoggedOutcome, RunningEmulator};
use flyball_engines::Engine as Kind;
use flyball_fleet::{FleetEndpoint, FoundEngines, Listing};
use flyball_gateway::AdmittedDemand;
use flyball_gateway::meter::{Finished, RequestOutcome};
use flyball_gateway::serve::{self, Listener, RunningGateway};
use flyball_gateway::settings::{GatewaySettingsFile, ModelSettings};
use flyball_proving::http;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

const CHAT: &str = "/v1/chat/completions";

/// How batch requests ended, and how often each made room; and how often a connection to an engine was cut.
#[derive(Default)]
struct Ear {
    batch: Mutex<Vec<(RequestOutcome, Option<&'static str>, u32)>>,
    others_preempted: AtomicUsize,
    cut: AtomicUsize,
}

impl Listener for Ear {
    fn finished(&self, finished: &Finished<'_>) {
        if finished.batch {
            let ended = (finished.outcome, finished.reason, finished.preempted);
            self.batch.lock().unwrap().push(ended);
        } else {
            self.others_preempted.fetch_add(finished.preempted as usize, Ordering::Relaxed);
        }
    }

    fn cancelled(&self, _: &Arc<FleetEndpoint>) {
        self.cut.fetch_add(1, Ordering::Relaxed);
    }
}

struct Rig {
    engine: RunningEmulator,
    gateway: Arc<RunningGateway>,
    ear: Arc<Ear>,
}

impl Rig {
    fn new(batch_ms: u64) -> Self {
        let engine = Emulator::start(Emulated::quick()).unwrap();
        let mut settings = GatewaySettingsFile { threads: 1, ..GatewaySettingsFile::default() };
        settings.listen.set_port(0);
        let name = "emulated".to_owned();
        settings.models = vec![ModelSettings { name, batch_ms, ..ModelSettings::default() }];
        let ear = Arc::new(Ear::default());
        let gateway = serve::start(&settings, Arc::clone(&ear) as Arc<dyn Listener>).unwrap();
        let found = FoundEngines {
            name: engine.address.to_string(),
            address: engine.address,
            draining: false,
            engine: Kind::Vllm,
            uid: None,
        };
        gateway.list(&Listing { models: [("emulated".to_owned(), vec![found])].into() });
        Self { engine, gateway: Arc::new(gateway), ear }
    }

    fn demand(&self) -> AdmittedDemand {
        self.gateway.demand().remove(0)
    }

    async fn until(&self, mut is_so: impl FnMut(&Self) -> bool) {
        while !is_so(self) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Starts a batch request, and others that ask all the time once it runs and has written something if it streams.
    /// Returns when it has made room.
    async fn preempted(&self, body: &Value) -> (TcpStream, Vec<u8>, Others) {
        let address = self.gateway.address();
        let mut connection = http::post(address, CHAT, &body.to_string()).await.unwrap();
        let mut begun = Vec::new();
        self.until(|rig| rig.demand().batch_running == 1).await;
        while body["stream"] == true && begun.len() < 4_000 {
            assert_ne!(connection.read_buf(&mut begun).await.unwrap(), 0);
        }
        let others = Others::start(address);
        self.until(|rig| rig.demand().batch_waiting == 1).await;
        (connection, begun, others)
    }

    /// Nothing is left of anything.
    async fn is_empty(&self) {
        self.until(|rig| rig.gateway.inside().requests == 0).await;
        let demand = self.demand();
        assert_eq!((demand.batch_waiting, demand.batch_running, demand.waiting), (0, 0, 0));
        let in_flight: u32 = self.gateway.fleet().endpoints().map(|one| one.in_flight()).sum();
        assert_eq!((in_flight, self.gateway.inside().bytes), (0, 0));
        self.until(|rig| rig.engine.state().running == 0 && rig.engine.state().waiting == 0).await;
        assert_eq!(self.ear.others_preempted.load(Ordering::Relaxed), 0);
    }

    fn batch(&self) -> Vec<(RequestOutcome, Option<&'static str>, u32)> {
        self.ear.batch.lock().unwrap().clone()
    }
}

/// Eight callers who ask all the time, for answers of different lengths, so that they never all pause at once.
struct Others {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    asking: Vec<JoinHandle<()>>,
}

impl Others {
    fn start(address: SocketAddr) -> Self {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let asking = (0..8).map(|caller| {
            let (stop, answered) = (Arc::clone(&stop), Arc::clone(&answered));
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let body = body(&format!("caller {caller}"), 50 + 13 * caller, true);
                    let connection = http::post(address, CHAT, &body.to_string()).await.unwrap();
                    let answer = http::whole(connection).await.unwrap();
                    assert_eq!(answer.status, 200, "{}", answer.body);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        let asking = asking.collect();
        Self { stop, answered, asking }
    }

    /// Stops them, once each could have asked.
    async fn stop(self) {
        while self.answered.load(Ordering::Relaxed) < 8 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        self.stop.store(true, Ordering::Relaxed);
        for asking in self.asking {
            asking.await.unwrap();
        }
    }
}

fn body(prompt: &str, tokens: u32, stream: bool) -> Value {
    let messages = json!([{"role": "user", "content": prompt}]);
    json!({"model": "emulated", "messages": messages, "max_tokens": tokens, "stream": stream})
}

/// The body of a batch request.
fn flex(prompt: &str, tokens: u32, stream: bool) -> Value {
    let mut body = body(prompt, tokens, stream);
    body["service_tier"] = json!("flex");
    if stream {
        body["stream_options"] = json!({"include_usage": true});
    }
    body
}

/// The text and the usage that a client ends up with.
fn read(answer: &str) -> (String, Value) {
    let data = answer.lines().filter_map(|line| line.strip_prefix("data: "));
    let events: Vec<Value> = data.filter_map(|json| serde_json::from_str(json).ok()).collect();
    let text = events.iter().filter_map(|event| event["choices"][0]["delta"]["content"].as_str());
    (text.collect(), events.last().unwrap()["usage"].clone())
}

async fn ask(address: SocketAddr, body: &Value) -> http::WholeAnswer {
    let connection = http::post(address, CHAT, &body.to_string()).await.unwrap();
    http::whole(connection).await.unwrap()
}

/// All that came, of an answer whose beginning was read.
async fn rest(mut connection: TcpStream, mut begun: Vec<u8>) -> String {
    connection.read_to_end(&mut begun).await.unwrap();
    String::from_utf8(begun).unwrap()
}

/// A long wait, in milliseconds.
const LONG: u64 = 600_000;

#[tokio::test]
async fn a_batch_stream_makes_room_and_goes_on_as_if_nothing_had_been() {
    let rig = Rig::new(LONG);
    let body = flex("a tale", 600, true);
    let (unbroken, unbroken_usage) = read(&ask(rig.engine.address, &body).await.body);
    let (connection, begun, others) = rig.preempted(&body).await;
    // Its engine is free of it.
    rig.until(|rig| rig.engine.state().aborted >= 1).await;
    let log = rig.engine.log(usize::MAX);
    let cut: Vec<_> = log.iter().filter(|one| one.outcome == LoggedOutcome::Aborted).collect();
    assert!(!cut.is_empty() && cut.iter().all(|one| one.hung_up.is_some()), "{cut:?}");
    assert!(rig.ear.cut.load(Ordering::Relaxed) >= 1);
    others.stop().await;
    let answer = rest(connection, begun).await;
    assert!(answer.contains("data: [DONE]") && answer.contains(": flyball: made room"), "{answer}");
    let (text, usage) = read(&answer);
    assert_eq!(text, unbroken);
    // What a cache had of its prompt depends on who asked before.
    let counted = |usage: &Value| {
        ["prompt_tokens", "completion_tokens", "total_tokens"].map(|name| usage[name].clone())
    };
    assert_eq!(counted(&usage), counted(&unbroken_usage), "counted once");
    rig.is_empty().await;
    let [(outcome, None, preempted)] = rig.batch()[..] else { panic!("{:?}", rig.batch()) };
    assert!(outcome == RequestOutcome::Answered && preempted >= 1, "{preempted}");
}

#[tokio::test]
async fn a_batch_request_that_has_sent_nothing_begins_again() {
    let rig = Rig::new(LONG);
    let body = flex("another tale", 300, false);
    let unbroken: Value = serde_json::from_str(&ask(rig.engine.address, &body).await.body).unwrap();
    let (connection, begun, others) = rig.preempted(&body).await;
    assert!(begun.is_empty());
    others.stop().await;
    let answer = http::whole(connection).await.unwrap();
    let answer: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(answer["choices"], unbroken["choices"]);
    let tokens = |answer: &Value| answer["usage"]["total_tokens"].clone();
    assert_eq!(tokens(&answer), tokens(&unbroken));
    rig.is_empty().await;
    assert!(
        matches!(rig.batch()[..], [(RequestOutcome::Answered, None, 1..)]),
        "{:?}",
        rig.batch()
    );
}

#[tokio::test]
async fn what_could_not_be_continued_is_never_cut() {
    let rig = Rig::new(LONG);
    let mut body = flex("a tale of penalties", 300, true);
    body["presence_penalty"] = json!(0.5);
    let address = rig.gateway.address();
    let mut connection = http::post(address, CHAT, &body.to_string()).await.unwrap();
    let mut begun = Vec::new();
    while begun.len() < 4_000 {
        assert_ne!(connection.read_buf(&mut begun).await.unwrap(), 0);
    }
    let others = Others::start(address);
    let answer = rest(connection, begun).await;
    assert!(answer.contains("data: [DONE]") && !answer.contains(": flyball"), "{answer}");
    others.stop().await;
    rig.is_empty().await;
    assert_eq!(rig.batch(), [(RequestOutcome::Answered, None, 0)]);
    assert_eq!(rig.ear.cut.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn whoever_hangs_up_while_it_waits_leaves_nothing_behind() {
    let rig = Rig::new(LONG);
    let (connection, _, others) = rig.preempted(&flex("a tale", 600, true)).await;
    drop(connection);
    // It is gone while the others still ask.
    rig.until(|rig| rig.demand().batch_waiting == 0).await;
    rig.until(|rig| !rig.batch().is_empty()).await;
    assert!(matches!(rig.batch()[..], [(RequestOutcome::Cancelled, _, 1..)]), "{:?}", rig.batch());
    others.stop().await;
    rig.is_empty().await;
}

#[tokio::test]
async fn who_waits_too_long_is_told_so_in_time() {
    let rig = Rig::new(300);
    let (connection, begun, others) = rig.preempted(&flex("a tale", 600, true)).await;
    let late = ask(rig.gateway.address(), &flex("too late", 5, false)).await;
    assert_eq!(late.status, 429);
    assert!(late.body.contains("no_idle_capacity"), "{}", late.body);
    let answer = rest(connection, begun).await;
    assert!(answer.contains("no_idle_capacity") && !answer.contains("[DONE]"), "{answer}");
    others.stop().await;
    rig.is_empty().await;
}

#[tokio::test]
async fn who_waits_when_the_gateway_ends_is_told_so() {
    let rig = Rig::new(LONG);
    let (connection, begun, others) = rig.preempted(&flex("a tale", 600, true)).await;
    let gateway = Arc::clone(&rig.gateway);
    // The others ask on until they cannot.
    others.asking.iter().for_each(JoinHandle::abort);
    let body = body("caller", 600, true);
    let mut busy = Vec::new();
    for _ in 0..4 {
        busy.push(http::post(rig.gateway.address(), CHAT, &body.to_string()).await.unwrap());
    }
    let ended = tokio::task::spawn_blocking(move || gateway.drain(Duration::ZERO));
    let answer = rest(connection, begun).await;
    assert!(answer.contains("draining") || answer.contains("[DONE]"), "{answer}");
    assert!(ended.await.unwrap() >= 1);
    drop(busy);
    rig.is_empty().await;
}
