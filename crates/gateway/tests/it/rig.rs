//! A gateway in front of some engines, and a client that speaks plain HTTP/1.1.

use crate::engine::Engine;
use flyball_engines::Engine as Kind;
use flyball_fleet::{FleetEndpoint, FoundEngines, Listing};
use flyball_gateway::meter::{Finished, RequestOutcome};
use flyball_gateway::serve::{self, Listener, RunningGateway};
use flyball_gateway::settings::{GatewaySettingsFile, Key};
use flyball_gateway::{RefusedKey, UnauthorizedReason};
use sha2::{Digest as _, Sha256};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Only so that a test that hangs ends.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// A gateway, and what it said.
pub(crate) struct Rig {
    pub(crate) gateway: RunningGateway,
    recorded: Arc<Recorded>,
}

/// What a gateway said.
#[derive(Default)]
pub(crate) struct Recorded {
    finished: Mutex<Vec<Line>>,
    cancelled: Mutex<u32>,
    woken: Mutex<Vec<String>>,
    keys_refused: Mutex<Vec<(UnauthorizedReason, String)>>,
    copies_dropped: Mutex<u32>,
}

/// A request that was over, as far as tests look at it.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) outcome: RequestOutcome,
    pub(crate) reason: Option<&'static str>,
    pub(crate) status: u16,
    pub(crate) retries: u32,
    pub(crate) model: Option<String>,
    pub(crate) output: u64,
    pub(crate) held: bool,
    pub(crate) caller: String,
    pub(crate) key: Option<String>,
    pub(crate) split: Option<String>,
    pub(crate) mirrored: bool,
    pub(crate) cached: bool,
    pub(crate) hedged: bool,
    pub(crate) continued: u32,
}

impl Listener for Recorded {
    fn finished(&self, finished: &Finished<'_>) {
        self.finished.lock().expect("no thread panicked").push(Line {
            outcome: finished.outcome,
            reason: finished.reason,
            status: finished.status,
            retries: finished.retries,
            model: finished.model.map(str::to_owned),
            output: finished.usage.output,
            held: finished.held,
            caller: finished.caller.to_owned(),
            key: finished.key.map(str::to_owned),
            split: finished.split.map(str::to_owned),
            mirrored: finished.mirrored,
            cached: finished.cached,
            hedged: finished.hedged,
            continued: finished.continued,
        });
    }

    fn key_refused(&self, refused: &RefusedKey<'_>) {
        let refused = (refused.why, refused.id.to_owned());
        self.keys_refused.lock().expect("no thread panicked").push(refused);
    }

    fn wake(&self, model: &Arc<str>) {
        self.woken.lock().expect("no thread panicked").push(model.to_string());
    }

    fn copy_dropped(&self) {
        *self.copies_dropped.lock().expect("no thread panicked") += 1;
    }

    fn cancelled(&self, _: &Arc<FleetEndpoint>) {
        *self.cancelled.lock().expect("no thread panicked") += 1;
    }
}

impl Rig {
    /// One thread, port of the kernel's choice, model `m` on these engines.
    pub(crate) fn start(
        engines: &[&Engine],
        change: impl FnOnce(&mut GatewaySettingsFile),
    ) -> Self {
        let addresses: Vec<_> = engines.iter().map(|engine| engine.address).collect();
        Self::on(&addresses, change)
    }

    /// The same, on addresses.
    pub(crate) fn on(
        addresses: &[SocketAddr],
        change: impl FnOnce(&mut GatewaySettingsFile),
    ) -> Self {
        Self::of(&[("m", addresses)], change)
    }

    /// The same, for these models.
    pub(crate) fn of(
        models: &[(&str, &[SocketAddr])],
        change: impl FnOnce(&mut GatewaySettingsFile),
    ) -> Self {
        let mut settings = GatewaySettingsFile { threads: 1, ..GatewaySettingsFile::default() };
        settings.listen.set_port(0);
        // On a busy machine any engine may look slow; nobody is asked twice unless a test wants that.
        settings.recovery.hedge_per_thousand = 0;
        change(&mut settings);
        let recorded = Arc::new(Recorded::default());
        let gateway = serve::start(&settings, Arc::clone(&recorded) as Arc<dyn Listener>)
            .expect("loopback works");
        let rig = Self { gateway, recorded };
        rig.list_of(models);
        rig
    }

    /// From now on the engines of model `m` are here.
    pub(crate) fn list(&self, addresses: &[SocketAddr]) {
        self.list_of(&[("m", addresses)]);
    }

    /// From now on they are told to go.
    pub(crate) fn drain(&self, addresses: &[SocketAddr]) {
        let found = addresses.iter().map(|address| found(*address, true)).collect();
        self.gateway.list(&Listing { models: [("m".to_owned(), found)].into() });
    }

    fn list_of(&self, models: &[(&str, &[SocketAddr])]) {
        let listed = |(name, addresses): &(&str, &[SocketAddr])| {
            ((*name).to_owned(), addresses.iter().map(|a| found(*a, false)).collect())
        };
        self.gateway.list(&Listing { models: models.iter().map(listed).collect() });
    }

    /// Keys that were refused, by their ids.
    pub(crate) fn keys_refused(&self) -> Vec<(UnauthorizedReason, String)> {
        self.recorded.keys_refused.lock().expect("no thread panicked").clone()
    }

    /// The models that were called.
    pub(crate) fn woken(&self) -> Vec<String> {
        self.recorded.woken.lock().expect("no thread panicked").clone()
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.gateway.address()).await.expect("loopback works")
    }

    /// Sends a request on a connection of its own and reads until the gateway closes it.
    pub(crate) async fn whole(&self, request: &str) -> String {
        let mut stream = self.connect().await;
        stream.write_all(request.as_bytes()).await.expect("loopback works");
        let mut answer = Vec::new();
        let reading = stream.read_to_end(&mut answer);
        tokio::time::timeout(LONG, reading).await.expect("an end").expect("loopback works");
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// What is over, once so many are.
    pub(crate) async fn finished(&self, many: usize) -> Vec<Line> {
        let waiting = async {
            loop {
                let lines = self.recorded.finished.lock().expect("no thread panicked").clone();
                if lines.len() >= many {
                    return lines;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(LONG, waiting).await.expect("so many finished")
    }

    pub(crate) fn copies_dropped(&self) -> u32 {
        *self.recorded.copies_dropped.lock().expect("no thread panicked")
    }

    /// Requests that engines are thought to have.
    pub(crate) fn in_flight(&self) -> u32 {
        self.gateway.fleet().endpoints().map(|endpoint| endpoint.in_flight()).sum()
    }

    pub(crate) fn cancelled(&self) -> u32 {
        *self.recorded.cancelled.lock().expect("no thread panicked")
    }
}

fn found(address: SocketAddr, draining: bool) -> FoundEngines {
    FoundEngines { name: address.to_string(), address, uid: None, draining, engine: Kind::Vllm }
}

/// A chat request that closes its connection.
pub(crate) fn chat(body: &str) -> String {
    post("/v1/chat/completions", "connection: close\r\n", body)
}

/// A chat request of whoever holds this key, with these headers too.
pub(crate) fn chat_of(secret: &str, headers: &str, body: &str) -> String {
    let headers = format!("connection: close\r\nx-api-key: {secret}\r\n{headers}");
    post("/v1/chat/completions", &headers, body)
}

/// The key of a caller whose secret is its name.
pub(crate) fn key(name: &str, cache_group: Option<&str>) -> Key {
    let sha256 = Sha256::digest(name).iter().map(|byte| format!("{byte:02x}")).collect();
    let cache_group = cache_group.map(str::to_owned);
    Key { name: name.to_owned(), sha256, cache_group, ..Key::default() }
}

/// The body of a request or an answer.
pub(crate) fn body_of(message: &str) -> &str {
    message.split_once("\r\n\r\n").expect("a head").1
}

/// A POST.
pub(crate) fn post(path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {length}\r\n\r\n{body}")
}

pub(crate) const PLAIN: &str = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
pub(crate) const STREAM: &str =
    r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
