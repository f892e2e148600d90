//! What a gateway is told: one struct, read from one TOML file, unknown keys refused, all problems
//! reported at once.
//!
//! `fields` lists every setting, `parse` holds a file against that list, `check` finds what
//! contradicts, `reload` takes in a changed file while the gateway runs. It opens no file except in
//! `reload`, and nothing that it says contains a key.
//!
//! Start at [`Settings::parse`].

mod check;
mod fields;
mod parse;
mod problem;
pub mod reload;
#[cfg(test)]
mod tests;

pub use problem::{Code, Problem};

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Bytes of a settings file. 10,000 models with a Service each take about 1 MiB, which is also the
/// most that a ConfigMap holds.
pub const MAX_BYTES: usize = 4 << 20;

/// Engines of one model.
pub const MAX_ENDPOINTS: usize = 10_000;

/// Everything a gateway is told.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Where health and metrics are. Another address, because nobody outside needs them.
    pub admin: SocketAddr,
    /// Threads that serve; 0 means one per core.
    pub threads: usize,
    /// Serve without keys on an address that others can reach.
    pub open: bool,
    /// Certificate and key; plain HTTP without.
    pub tls: Option<Tls>,
    /// Who may ask. Nobody is asked for a key if this is empty.
    pub keys: Vec<Key>,
    /// What is served, and where.
    pub models: Vec<Model>,
    /// What requests may cost.
    pub limits: Limits,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// Where another gateway's or the operator's collector of engine loads is. Without, this gateway
    /// asks the engines itself.
    pub collector: Option<String>,
    /// Logs and traces.
    pub telemetry: Telemetry,
}

/// A certificate and its key, as PEM files.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// The chain, the server's own first.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// A key that opens the door.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Key {
    /// Who holds it, as logs and metrics say it.
    pub name: String,
    /// SHA-256 of the key in hexadecimal, so that this file opens nothing. Not shown: who
    /// sees it could try guesses.
    #[serde(skip_serializing)]
    pub sha256: String,
    /// Requests per minute; unlimited without.
    pub requests_per_minute: Option<u32>,
}

/// A model, and where its engines are. Exactly one of `endpoints`, `service` and `pool` is said.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Model {
    /// The name that clients say. Goes to the engine as it is.
    pub name: String,
    /// Addresses of engines.
    pub endpoints: Vec<SocketAddr>,
    /// `namespace/name:port` of a Service; its EndpointSlices are watched. The port is a number or
    /// a name.
    pub service: Option<String>,
    /// `namespace/name` of an `InferencePool`; its pods are watched.
    pub pool: Option<String>,
    /// What the engines are.
    pub engine: Engine,
}

/// A kind of engine: how its load is read and how it is told to stop.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// vLLM, and everything with its metric names.
    #[default]
    Vllm,
    /// SGLang.
    Sglang,
    /// llama.cpp's server.
    LlamaCpp,
}

/// What requests may cost.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Bytes of a body.
    pub body_bytes: usize,
    /// Bytes of all bodies that are held at once.
    pub held_bytes: usize,
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// Connections at once.
    pub connections: usize,
    /// Requests at once.
    pub in_flight: usize,
    /// Streams at once on one HTTP/2 connection.
    pub streams_per_connection: u32,
    /// Answers to one request (`n`, `best_of`).
    pub answers: u64,
}

/// How long things may take, in milliseconds.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// From the first byte of a head to its last.
    pub head_ms: u64,
    /// Between two pieces of a body.
    pub body_idle_ms: u64,
    /// To connect to an engine.
    pub connect_ms: u64,
    /// From the last byte sent to an engine to the first that comes back.
    pub first_byte_ms: u64,
    /// Between two pieces of an answer that carry something.
    pub answer_idle_ms: u64,
    /// A client that reads nothing of what is there for it.
    pub client_idle_ms: u64,
    /// A connection without a request.
    pub keep_alive_ms: u64,
    /// From SIGTERM to the end, whatever still runs.
    pub drain_ms: u64,
}

/// Logs and traces.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    /// One line of JSON per request on standard output.
    pub access_log: bool,
    /// An OTLP (gRPC) receiver, for example `http://127.0.0.1:4317`; no traces without.
    pub otlp: Option<String>,
    /// Traces kept of those that the caller did not decide on, in thousandths.
    pub sampled_per_thousand: u32,
}

impl Settings {
    /// Reads a file's text, or says everything that is wrong with it.
    pub fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        parse::parse(text)
    }

    /// What is allowed and yet worth a word.
    pub fn warnings(&self) -> Vec<String> {
        check::warnings(self)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            admin: SocketAddr::from(([127, 0, 0, 1], 9090)),
            threads: 0,
            open: false,
            tls: None,
            keys: Vec::new(),
            models: Vec::new(),
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            collector: None,
            telemetry: Telemetry::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 32 << 20,
            held_bytes: 1 << 30,
            head_bytes: 64 << 10,
            connections: 20_000,
            in_flight: 20_000,
            streams_per_connection: 256,
            answers: 16,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            head_ms: 10_000,
            body_idle_ms: 30_000,
            connect_ms: 1_000,
            first_byte_ms: 120_000,
            answer_idle_ms: 60_000,
            client_idle_ms: 60_000,
            keep_alive_ms: 75_000,
            drain_ms: 30_000,
        }
    }
}

impl Default for Telemetry {
    fn default() -> Self {
        Self { access_log: true, otlp: None, sampled_per_thousand: 10 }
    }
}
