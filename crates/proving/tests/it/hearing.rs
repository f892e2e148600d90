//! Engines tell what they forget, and gateways hope for less.

use flyball_emulator::{Emulator, Running as Engine, Settings as Emulated, Shape};
use flyball_gateway::fleet::{Endpoint, Found, Listing};
use flyball_gateway::kv_events::{self, Standing};
use flyball_gateway::meter::Finished;
use flyball_gateway::serve::{self, Listener};
use flyball_gateway::settings::{Engine as Kind, Settings};
use serde_json::json;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Prompt tokens, those hoped to be cached, and those of the hoped that were.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    prompt: u64,
    cached: u64,
    hoped: u64,
    kept: u64,
}

#[derive(Default)]
struct Ear(Mutex<Sums>);

impl Listener for Ear {
    fn finished(&self, finished: &Finished<'_>) {
        let hoped = u64::from(finished.hoped_blocks.unwrap_or(0)) * 256;
        let mut sums = self.0.lock().unwrap();
        sums.prompt += finished.usage.input;
        sums.cached += finished.usage.cached;
        sums.hoped += hoped;
        sums.kept += hoped.min(finished.usage.cached);
    }

    fn cancelled(&self, _: &Arc<Endpoint>) {}
}

/// Two engines whose caches hold 8,192 tokens each, on two addresses with the same port for events.
fn engines(shape: Shape) -> [Engine; 2] {
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

async fn ask(address: SocketAddr, conversation: u32) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let history: String = (0..256).map(|word| format!("{conversation:07} {word:07} ")).collect();
    let body = json!({"model": "emulated", "max_tokens": 2,
        "messages": [{"role": "user", "content": history}]})
    .to_string();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n";
    let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// Forty conversations of 1,024 tokens in turn, of which each engine gets about twenty and has room
/// for eight; and between them four that are never out of use for long.
async fn rounds(hears: bool, shape: Shape) -> (Sums, u64, u64) {
    let engines = engines(shape);
    let mut settings = Settings { threads: 1, ..Settings::default() };
    settings.listen.set_port(0);
    let ear = Arc::new(Ear::default());
    let gateway = serve::start(&settings, Arc::clone(&ear) as Arc<dyn Listener>).unwrap();
    let gateway = Arc::new(gateway);
    let found = engines.iter().map(|engine| Found {
        name: engine.address.to_string(),
        address: engine.address,
        draining: false,
        engine: Kind::Vllm,
        uid: None,
    });
    gateway.list(&Listing { models: [("emulated".to_owned(), found.collect())].into() });
    let standing = Arc::new(Standing::default());
    let port = engines[0].kv_events.unwrap().port();
    let ports = BTreeMap::from([("emulated".to_owned(), port)]);
    let fleet = Arc::clone(&gateway);
    let hearing = kv_events::follow(
        move || fleet.fleet(),
        move || if hears { ports.clone() } else { BTreeMap::new() },
        gateway.began(),
        Arc::clone(&standing),
    );
    let hearing = tokio::spawn(hearing);
    while hears && standing.heard() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for _ in 0..4 {
        for conversation in 0..40 {
            ask(gateway.address(), conversation).await;
            ask(gateway.address(), 1_000 + conversation % 4).await;
        }
        // Times are kept in quarters of a second, and events come after 20 ms.
        tokio::time::sleep(Duration::from_millis(600)).await;
    }
    hearing.abort();
    let sums = *ear.0.lock().unwrap();
    (sums, standing.batches(), standing.missed())
}

#[tokio::test]
async fn what_is_gone_is_not_hoped_for() {
    let (deaf, none, _) = rounds(false, Shape::Map).await;
    assert_eq!(none, 0);
    for shape in [Shape::Map, Shape::Array] {
        let (hearing, batches, missed) = rounds(true, shape).await;
        println!(
            "{shape:?}: deaf {deaf:?}, hearing {hearing:?}, {batches} batches, {missed} missed"
        );
        assert!(batches > 50 && missed == 0, "{batches} {missed}");
        let broken = |sums: Sums| sums.hoped - sums.kept;
        assert!(broken(hearing) * 3 < broken(deaf), "{hearing:?} and {deaf:?}");
        assert!(
            deaf.cached > 0 && hearing.cached * 20 >= deaf.cached * 19,
            "{hearing:?} and {deaf:?}"
        );
    }
}
