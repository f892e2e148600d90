//! Engines tell what they forget, and gateways hope for less.

use flyball_emulator::{
    Emulator, EmulatorSettings as Emulated, EventShape, RunningEmulator as Engine,
};
use flyball_engines::Engine as Kind;
use flyball_fleet::kv_events::{self, EventsStatus};
use flyball_fleet::{FleetEndpoint, FoundEngines, Listing};
use flyball_gateway::meter::Finished;
use flyball_gateway::serve::{self, Listener, RunningGateway as Gateway};
use flyball_gateway::settings::GatewaySettingsFile;
use flyball_proving::http;
use flyball_routing::ObservedMoment;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Of one request: prompt tokens hoped to be cached, and those that were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hope {
    hoped: u64,
    cached: u64,
}

#[derive(Default)]
struct Ear(Mutex<Vec<Hope>>);

impl Listener for Ear {
    fn finished(&self, finished: &Finished<'_>) {
        let hoped = u64::from(finished.hoped_blocks.unwrap_or(0)) * 256;
        self.0.lock().unwrap().push(Hope { hoped, cached: finished.usage.cached.unwrap_or(0) });
    }

    fn cancelled(&self, _: &Arc<FleetEndpoint>) {}
}

/// Two engines whose caches hold 8,192 tokens each, on two addresses with the same port for events.
fn engines(shape: EventShape) -> [Engine; 2] {
    let start = |address: [u8; 4], port| {
        let mut settings = Emulated::quick();
        settings.speed.settings.blocks = 512;
        settings.speed_up = 8.0;
        settings.listen = SocketAddr::from((address, 0));
        settings.kv_events = Some((port, shape));
        Emulator::start(settings).unwrap()
    };
    let first = start([127, 0, 0, 1], 0);
    let port = first.kv_events.unwrap().port();
    [first, start([127, 0, 0, 2], port)]
}

/// A gateway before the two.
struct Rig {
    _engines: [Engine; 2],
    gateway: Arc<Gateway>,
    ear: Arc<Ear>,
    standing: Arc<EventsStatus>,
    hearing: JoinHandle<()>,
}

impl Rig {
    async fn start(follows: bool, shape: EventShape) -> Self {
        let engines = engines(shape);
        let mut settings = GatewaySettingsFile { threads: 1, ..GatewaySettingsFile::default() };
        settings.listen.set_port(0);
        let ear = Arc::new(Ear::default());
        let gateway = serve::start(&settings, Arc::clone(&ear) as Arc<dyn Listener>).unwrap();
        let gateway = Arc::new(gateway);
        // By names of their own, so that each gets the same conversations every time.
        let found = engines.iter().zip(["one", "two"]).map(|(engine, name)| FoundEngines {
            name: name.to_owned(),
            address: engine.address,
            draining: false,
            engine: Kind::Vllm,
            uid: None,
        });
        gateway.list(&Listing { models: [("emulated".to_owned(), found.collect())].into() });
        let standing = Arc::new(EventsStatus::default());
        let port = engines[0].kv_events.unwrap().port();
        let ports = BTreeMap::from([("emulated".to_owned(), port)]);
        let fleet = Arc::clone(&gateway);
        let hearing = tokio::spawn(kv_events::follow(
            move || fleet.fleet(),
            move || if follows { ports.clone() } else { BTreeMap::new() },
            gateway.began(),
            Arc::clone(&standing),
        ));
        let rig = Self { _engines: engines, gateway, ear, standing, hearing };
        rig.until(|rig| !follows || rig.standing.streams() == 2).await;
        rig
    }

    /// What became of each of these conversations, one after the other.
    async fn ask(&self, conversations: Range<u32>) -> Vec<Hope> {
        let before = self.ear.0.lock().unwrap().len();
        let all = before + conversations.len();
        for conversation in conversations {
            ask(self.gateway.address(), conversation).await;
        }
        self.until(|rig| rig.ear.0.lock().unwrap().len() == all).await;
        self.ear.0.lock().unwrap()[before..].to_vec()
    }

    /// Whether both engines told that what was used before this is gone.
    fn forgot(&self, since: ObservedMoment) -> bool {
        let fleet = self.gateway.fleet();
        let mut forgot = fleet.endpoints().map(|endpoint| endpoint.forgot());
        forgot.all(|forgot| forgot.is_some_and(|forgot| since.is_before(forgot)))
    }

    /// Waits for it, as long as the runner of tests lets it.
    async fn until(&self, holds: impl Fn(&Self) -> bool) {
        while !holds(self) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.hearing.abort();
    }
}

async fn ask(address: SocketAddr, conversation: u32) {
    let history: String = (0..256).map(|word| format!("{conversation:07} {word:07} ")).collect();
    let body = json!({"model": "emulated", "max_tokens": 2,
        "messages": [{"role": "user", "content": history}]})
    .to_string();
    let connection = http::post(address, "/v1/chat/completions", &body).await.unwrap();
    let answer = http::whole(connection).await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
}

/// Conversations of 1,024 tokens, of which an engine has room for eight: six, the same six again,
/// eighty others, and the six once more. Returns what became of the second and the last time.
///
/// How many hopes are kept and what that is worth is measured where time is virtual:
/// `simulator::affinity`. Here it is whether the news arrive and are heeded.
async fn twice(follows: bool, shape: EventShape) -> [Vec<Hope>; 2] {
    let rig = Rig::start(follows, shape).await;
    rig.ask(0..6).await;
    let there = rig.ask(0..6).await;
    let used = ObservedMoment::of_millis(rig.gateway.began().elapsed().as_millis() as u64);
    // Times are kept in quarters of a second: what comes now comes later than the six.
    tokio::time::sleep(Duration::from_millis(300)).await;
    rig.ask(100..180).await;
    rig.until(|rig| !follows || rig.forgot(used)).await;
    let gone = rig.ask(0..6).await;
    assert_eq!(rig.standing.missed(), 0);
    assert_eq!(rig.standing.batches() > 0, follows);
    [there, gone]
}

const HOPED: u64 = 4 * 256;

#[tokio::test]
async fn what_is_gone_is_hoped_for_by_who_is_deaf() {
    let [there, gone] = twice(false, EventShape::Map).await;
    assert!(there.iter().all(|one| one.hoped == HOPED && one.cached > 0), "{there:?}");
    assert_eq!(gone, [Hope { hoped: HOPED, cached: 0 }; 6]);
}

#[tokio::test]
async fn what_is_gone_is_not_hoped_for() {
    for shape in [EventShape::Map, EventShape::Array] {
        let [there, gone] = twice(true, shape).await;
        assert!(there.iter().all(|one| one.hoped == HOPED && one.cached > 0), "{there:?}");
        assert_eq!(gone, [Hope { hoped: 0, cached: 0 }; 6], "{shape:?}");
    }
}
