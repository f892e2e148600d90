//! A gateway in this process, and a client that speaks plain HTTP/1.1.

use super::process::Engine;
use flyball_engines::Engine as Kind;
use flyball_fleet::{FleetEndpoint, FoundEngines, Listing};
use flyball_gateway::meter::{Finished, RequestOutcome};
use flyball_gateway::serve::{self, Listener, RunningGateway};
use flyball_gateway::settings::GatewaySettingsFile;
use flyball_proving::http;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

/// Silence after which the gateway gives up a stream, in these tests.
pub(crate) const IDLE: Duration = Duration::from_secs(3);

/// How requests ended: outcome, retries and the engine that answered last.
type Line = (RequestOutcome, u32, Option<String>);

#[derive(Default)]
pub(crate) struct Recorded(Mutex<Vec<Line>>);

impl Listener for Recorded {
    fn finished(&self, finished: &Finished<'_>) {
        let endpoint = finished.endpoint.map(str::to_owned);
        self.0.lock().unwrap().push((finished.outcome, finished.retries, endpoint));
    }

    fn cancelled(&self, _: &Arc<FleetEndpoint>) {}
}

/// A gateway, and what it told.
pub(crate) struct Rig {
    pub(crate) gateway: RunningGateway,
    recorded: Arc<Recorded>,
}

impl Rig {
    /// Model `nano` on these engines.
    pub(crate) fn before(engines: &[&Engine]) -> Self {
        Self::patient(engines, IDLE)
    }

    /// The same, and streams that break off are not gone on with elsewhere.
    pub(crate) fn cutting(engines: &[&Engine]) -> Self {
        Self::start(engines, IDLE, false)
    }

    /// The same, with more patience for silence.
    pub(crate) fn patient(engines: &[&Engine], idle: Duration) -> Self {
        Self::start(engines, idle, true)
    }

    fn start(engines: &[&Engine], idle: Duration, continue_streams: bool) -> Self {
        let mut settings = GatewaySettingsFile { threads: 1, ..GatewaySettingsFile::default() };
        settings.listen.set_port(0);
        settings.timeouts.answer_idle_ms = idle.as_millis() as u64;
        settings.timeouts.first_byte_ms = 30_000;
        settings.recovery.continue_streams = continue_streams;
        let recorded = Arc::new(Recorded::default());
        let gateway = serve::start(&settings, Arc::clone(&recorded) as Arc<dyn Listener>).unwrap();
        let rig = Self { gateway, recorded };
        rig.list(engines, &[]);
        rig
    }

    /// Tells where engines are, and which of them get nothing new.
    pub(crate) fn list(&self, engines: &[&Engine], draining: &[&Engine]) {
        let found = |engine: &&Engine, draining| FoundEngines {
            name: engine.address.to_string(),
            address: engine.address,
            draining,
            engine: Kind::LlamaCpp,
            uid: None,
        };
        let all = engines.iter().map(|e| found(e, false));
        let all = all.chain(draining.iter().map(|e| found(e, true))).collect();
        self.gateway.list(&Listing { models: [("nano".to_owned(), all)].into() });
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.gateway.address()
    }

    /// What is over so far.
    pub(crate) fn finished(&self) -> Vec<Line> {
        self.recorded.0.lock().unwrap().clone()
    }
}

/// A chat request of so many tokens, never fewer, always the same ones.
pub(crate) fn chat(content: &str, tokens: u32, stream: bool) -> Value {
    json!({
        "model": "nano", "stream": stream, "max_tokens": tokens, "temperature": 0,
        "ignore_eos": true, "messages": [{ "role": "user", "content": content }],
        "stream_options": if stream { json!({ "include_usage": true }) } else { Value::Null },
    })
}

/// An answer that is being read.
pub(crate) struct Reading {
    stream: TcpStream,
    text: String,
    began: Instant,
}

/// How a stream ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With `[DONE]`.
    Done,
    /// With an event that says that it broke.
    Error,
    /// With neither: its last words.
    Cut(String),
}

impl Reading {
    /// Sends a chat request on a connection of its own.
    pub(crate) async fn of(address: SocketAddr, body: &Value) -> Self {
        let stream = http::post(address, "/v1/chat/completions", &body.to_string()).await.unwrap();
        Self { stream, text: String::new(), began: Instant::now() }
    }

    /// Reads until so many events have come; the time since the request was sent.
    pub(crate) async fn events(&mut self, count: usize) -> Duration {
        while self.data().count() < count {
            assert!(self.more().await, "the answer ended before event {count}: {}", self.text);
        }
        self.began.elapsed()
    }

    /// Reads to the end of the connection, which must come within `limit`.
    pub(crate) async fn end(&mut self, limit: Duration) -> End {
        let reading = async { while self.more().await {} };
        let timely = tokio::time::timeout(limit, reading).await;
        assert!(timely.is_ok(), "hangs after {limit:?}; the last of it: {}", tail(&self.text));
        let last = self.data().last().unwrap_or_default();
        match last {
            "[DONE]" => End::Done,
            last if last.contains("\"error\"") => End::Error,
            _ => End::Cut(tail(&self.text).to_owned()),
        }
    }

    /// The whole answer as JSON.
    pub(crate) async fn json(mut self) -> (u16, Value) {
        while self.more().await {}
        let (head, body) = self.text.split_once("\r\n\r\n").unwrap_or((&self.text, ""));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        (status, serde_json::from_str(body).unwrap_or(Value::String(body.to_owned())))
    }

    /// The text that the events carry.
    pub(crate) fn content(&self) -> String {
        let events = self.data().filter_map(|data| serde_json::from_str::<Value>(data).ok());
        let texts = events.map(|e| e["choices"][0]["delta"]["content"].as_str().map(str::to_owned));
        texts.flatten().collect()
    }

    /// Comment lines, which engines send to keep a connection alive.
    pub(crate) fn comments(&self) -> usize {
        self.text.lines().filter(|line| line.starts_with(':')).count()
    }

    fn data(&self) -> impl Iterator<Item = &str> {
        self.text.lines().filter_map(|line| line.strip_prefix("data: "))
    }

    async fn more(&mut self) -> bool {
        let mut piece = [0; 16 << 10];
        match self.stream.read(&mut piece).await {
            Ok(0) | Err(_) => false,
            Ok(read) => {
                self.text.push_str(&String::from_utf8_lossy(&piece[..read]));
                true
            }
        }
    }
}

/// A GET on a connection of its own; `None` if nobody answers.
pub(crate) async fn get(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    let reading = tokio::time::timeout(Duration::from_secs(60), http::get(address, path));
    let answer = reading.await.ok()?.ok()?;
    Some((answer.status, answer.body))
}

/// Asks every 5 ms until there is an answer.
pub(crate) async fn until<T>(
    what: &str,
    limit: Duration,
    mut ask: impl AsyncFnMut() -> Option<T>,
) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited {limit:?} in vain for {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn tail(text: &str) -> &str {
    let from = text.len().saturating_sub(300);
    text.get(from..).unwrap_or(text)
}
