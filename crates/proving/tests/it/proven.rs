//! Clients hang up; engines let go, or are found out.

use flyball_emulator::{Emulator, EmulatorSettings as Emulated, Faults, RunningEmulator as Engine};
use flyball_engines::Engine as Kind;
use flyball_fleet::collect::{self, CollectionStatus, Verifier, VerifierEvent};
use flyball_fleet::{FleetEndpoint, FoundEngines, Listing};
use flyball_gateway::meter::Finished;
use flyball_gateway::serve::{self, Listener, RunningGateway};
use flyball_gateway::settings::GatewaySettingsFile;
use flyball_proving::http;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// Only so that a test that hangs ends.
const LONG: Duration = Duration::from_secs(120);

/// Tells the verifier of every cut.
struct Ear(Arc<Verifier>);

impl Listener for Ear {
    fn finished(&self, _: &Finished<'_>) {}

    fn cancelled(&self, endpoint: &Arc<FleetEndpoint>) {
        self.0.cancelled(endpoint, Instant::now());
    }
}

/// A gateway that proves its cancels.
struct Rig {
    gateway: Arc<RunningGateway>,
    verifier: Arc<Verifier>,
    events: Arc<Mutex<Vec<VerifierEvent>>>,
}

impl Rig {
    fn start(engines: &[&Engine]) -> Self {
        Self::before(Kind::Vllm, engines)
    }

    fn before(kind: Kind, engines: &[&Engine]) -> Self {
        let events = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&events);
        let verifier = Arc::new(Verifier::new(move |one| notes.lock().unwrap().push(one)));
        let mut settings = GatewaySettingsFile { threads: 1, ..GatewaySettingsFile::default() };
        settings.listen.set_port(0);
        let ear: Arc<dyn Listener> = Arc::new(Ear(Arc::clone(&verifier)));
        let gateway = Arc::new(serve::start(&settings, ear).unwrap());
        let found = engines.iter().map(|engine| FoundEngines {
            name: engine.address.to_string(),
            address: engine.address,
            draining: false,
            engine: kind,
            uid: None,
        });
        gateway.list(&Listing { models: [("emulated".to_owned(), found.collect())].into() });
        Self { gateway, verifier, events }
    }

    /// Runs the story while engines are asked.
    async fn during<T>(&self, story: impl Future<Output = T>) -> T {
        let (gateway, standing) = (Arc::clone(&self.gateway), CollectionStatus::default());
        let fleet = move || gateway.fleet();
        let asking = collect::run(&fleet, &self.verifier, &standing, None, std::future::pending());
        tokio::select! {
            () = asking => panic!("it has no end"),
            events = story => events,
        }
    }

    fn freed(&self) -> Vec<Duration> {
        let events = self.events.lock().unwrap();
        let freed = events.iter().filter_map(|event| match event {
            VerifierEvent::Freed(took) => Some(*took),
            _ => None,
        });
        let mut freed: Vec<_> = freed.collect();
        freed.sort();
        freed
    }

    fn is_open(&self, address: SocketAddr) -> bool {
        let fleet = self.gateway.fleet();
        fleet.endpoints().find(|endpoint| endpoint.address == address).unwrap().is_open()
    }
}

/// A stream of 2,000 tokens, which would take ten seconds, with its first event read.
async fn stream(to: SocketAddr, number: usize) -> TcpStream {
    let body = json!({
        "model": "emulated",
        "stream": true,
        "max_tokens": 2000,
        "messages": [{"role": "user", "content": format!("Question {number}: why?")}],
    })
    .to_string();
    let mut connection = http::post(to, "/v1/chat/completions", &body).await.unwrap();
    let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
    while !seen.windows(6).any(|six| six == b"data: ") {
        let read = connection.read(&mut buffer).await.unwrap();
        assert_ne!(read, 0, "{}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&buffer[..read]);
    }
    connection
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(timeout(LONG, waiting).await.is_ok(), "{what}");
}

#[tokio::test]
async fn every_engine_is_read_by_its_own_names_at_its_own_path() {
    for kind in Kind::ALL {
        let engine = Emulator::start(Emulated { engine: kind, ..Emulated::quick() }).unwrap();
        let rig = Rig::before(kind, &[&engine]);
        let cancels = 5;
        rig.during(async {
            let _other = stream(rig.gateway.address(), 0).await;
            for number in 0..cancels {
                drop(stream(rig.gateway.address(), 1 + number).await);
            }
            until(kind.name(), || rig.freed().len() == cancels).await;
        })
        .await;
    }
}

#[tokio::test]
async fn an_engine_that_obeys_is_proven_to() {
    let engine = Emulator::start(Emulated::quick()).unwrap();
    let rig = Rig::start(&[&engine]);
    let cancels = 200;
    rig.during(async {
        // Ten others go on, so that an engine is never simply empty.
        let mut others = Vec::new();
        for number in 0..10 {
            others.push(stream(rig.gateway.address(), number).await);
        }
        for number in 0..cancels {
            drop(stream(rig.gateway.address(), 10 + number).await);
        }
        until("all proven", || rig.freed().len() == cancels).await;
        assert_eq!(rig.verifier.zombies(), 0);
    })
    .await;
    let freed = rig.freed();
    let (p50, p99) = (freed[cancels / 2], freed[cancels * 99 / 100]);
    println!(
        "cancel to free of {cancels}: p50 {p50:?}, p99 {p99:?}, most {:?}",
        freed[cancels - 1]
    );
    assert!(rig.is_open(engine.address));
}

#[tokio::test]
async fn an_engine_that_ignores_hang_ups_is_kept_away_and_the_other_is_not() {
    let deaf = Faults { ignore_aborts: true, ..Faults::default() };
    let deaf = Emulator::start(Emulated { faults: deaf, ..Emulated::quick() }).unwrap();
    let good = Emulator::start(Emulated::quick()).unwrap();
    let rig = Rig::start(&[&deaf, &good]);
    let took = rig
        .during(async {
            let began = Instant::now();
            // Clients come and go, as they do; about half of them at each engine.
            let mut number = 0;
            while rig.is_open(deaf.address) {
                assert!(began.elapsed() < LONG);
                drop(stream(rig.gateway.address(), number).await);
                number += 1;
                sleep(Duration::from_millis(100)).await;
            }
            began.elapsed()
        })
        .await;
    println!("an engine that ignores hang-ups was kept away after {took:?}");
    assert!(took >= Duration::from_secs(5), "{took:?}");
    assert!(rig.is_open(good.address));
    assert!(rig.verifier.zombies() > 0 && !rig.freed().is_empty());
}
