//! What a gateway is told: one struct, read from one TOML file, unknown keys refused, all problems
//! reported at once.
//!
//! `sections` lists every setting, `parse` holds a file against that list, `check` finds what
//! contradicts, `reload` takes in a changed file while the gateway runs. It opens no file except in
//! `reload`, and nothing that it says contains a key.
//!
//! Start at [`Settings::parse`].

mod check;
mod defaults;
mod fields;
mod kubernetes;
mod parse;
mod problem;
pub mod reload;
mod sections;
mod split;
#[cfg(test)]
mod tests;

pub use kubernetes::{KubernetesSettings, ModelServicePods, VariantPods, WatchSetting};
pub(crate) use parse::is_name;
pub use problem::{Code, SettingProblem};
pub use split::{Arm, Mirror, Split, SplitRule, Sticky};

use flyball_admin::Askers;
use flyball_engines::Engine;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Bytes of a settings file. 10,000 models with a Service each take about 1 MiB, which is also the
/// most that a ConfigMap holds.
pub const MAX_BYTES: usize = 4 << 20;

/// Models, and keys: what one cluster carries (10^4 each) and a bit.
pub const MAX_MODELS: usize = 20_000;

/// Bytes of a model's name. It may be a path; a label in Prometheus should stay readable.
pub const NAME_BYTES: usize = 256;

/// Engines of one model.
pub const MAX_ENDPOINTS: usize = 10_000;

/// Models that are scored by policies they do not route by; of more, the first in the settings. Four at
/// 59 MiB are the most that something beside the work should cost.
pub const SHADOWED_MODELS: usize = 4;

/// Everything a gateway is told.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct GatewaySettingsFile {
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Where health and metrics are. Another address, because nobody outside needs them.
    pub admin: SocketAddr,
    /// Who may ask there for more.
    pub askers: Askers,
    /// Threads that serve; 0 means one per core.
    pub threads: usize,
    /// Serve without keys on an address that others can reach.
    pub open: bool,
    /// Certificate and key; plain HTTP without.
    pub tls: Option<Tls>,
    /// Who may ask. Nobody is asked for a key if this is empty.
    pub keys: Vec<Key>,
    /// What is served, and where.
    pub models: Vec<ModelSettings>,
    /// What is read in Kubernetes beside the places that models name.
    pub kubernetes: KubernetesSettings,
    /// Names that stand for several models.
    pub splits: Vec<Split>,
    /// What requests may cost.
    pub limits: RequestLimits,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// Where another gateway's or the operator's collector of engine loads is. Without, this gateway
    /// asks the engines itself.
    pub collector: Option<String>,
    /// Who is told that a model is wanted which has no engine. Without, requests for it are refused.
    pub waker: Option<WakerSettings>,
    /// Who is told what is wanted, and says what to go by.
    pub operator: Option<Operator>,
    /// What is done about slow and broken answers.
    pub recovery: Recovery,
    /// Answers that are kept.
    pub response_cache: ResponseCache,
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
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Key {
    /// Who holds it, as logs and metrics say it.
    pub name: String,
    /// SHA-256 of the key in hexadecimal, so that this file opens nothing. Not shown: who
    /// sees it could try guesses.
    #[serde(skip_serializing)]
    pub sha256: String,
    /// Requests per minute at each gateway, which count by themselves; unlimited without.
    pub requests_per_minute: Option<u32>,
    /// Its part of an engine when there is not enough for all.
    pub weight: u32,
    /// Who waits for whom.
    pub priority: Priority,
    /// Callers of one group share what engines have cached; without, a caller shares with nobody.
    pub cache_group: Option<String>,
}

/// A model, and where its engines are. Exactly one of `endpoints`, `service` and `pool` is said, and none of a
/// model that comes from a ModelService.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSettings {
    /// The name that clients say. Goes to the engine as it is, unless `known_as` says another.
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
    /// The longest wait for a turn. Whoever would wait longer is told so at once.
    pub queue_ms: u64,
    /// The longest wait for a model that is being woken.
    pub hold_ms: u64,
    /// How engines are chosen.
    pub policy: RoutingSetting,
    /// Policies that are scored on its requests without choosing by them.
    pub shadow: Vec<RoutingSetting>,
    /// Whether answers that would be the same again are kept and given again.
    pub cache_responses: bool,
    /// The port on which engines tell about their caches; they are not listened to without.
    pub kv_events: Option<u16>,
    /// Keys of a body that steer engines and are passed on; a request with another of them is refused.
    pub engine_keys: Vec<String>,
    /// The name that its engines know it by, if it is not the one that clients say.
    pub known_as: Option<String>,
    /// The longest time to the first token; the operator's word comes first.
    pub first_token_ms: Option<u64>,
    /// The longest mean time between tokens of an answer; the operator's word comes first.
    pub between_tokens_ms: Option<u64>,
    /// Where it comes from if not from the file, in which this cannot stand.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub model_service: Option<ModelServicePods>,
}

impl ModelSettings {
    /// The namespace of its engines; `None` of one that names addresses.
    pub fn namespace(&self) -> Option<&str> {
        if let Some(from) = &self.model_service {
            return Some(&from.namespace);
        }
        let place = self.service.as_ref().or(self.pool.as_ref())?;
        place.split_once('/').map(|(namespace, _)| namespace)
    }
}

/// Who waits for whom: nobody of a later kind gets a turn while one of an earlier kind waits.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord, Hash,
)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// Before all others.
    High,
    /// As usual.
    #[default]
    Normal,
    /// Work that can wait, and is the first to be turned away.
    Low,
}

/// How an engine is chosen for a request.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub enum RoutingSetting {
    /// By what an engine may have cached, and by load.
    #[default]
    Prefix,
    /// By load alone.
    LeastLoad,
    /// One after the other.
    RoundRobin,
}

/// Who is told that a model is wanted which has no engine. Exactly one of the two is said.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct WakerSettings {
    /// Gets a POST with a JSON body that names the model.
    pub url: Option<String>,
    /// A folder in which a file is written that names the model.
    pub folder: Option<PathBuf>,
    /// Before it is told again that the model is still wanted.
    pub again_ms: u64,
}

/// Who is told what is wanted, and says what to go by.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Operator {
    /// Where it listens.
    pub address: String,
    /// A file with a token for it, read at each connection.
    pub token_file: Option<PathBuf>,
    /// Certificates, if the address begins with `https`.
    pub tls: Option<OperatorTls>,
}

/// Certificates for the operator, as PEM files that are read at each connection.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct OperatorTls {
    /// Who signs the operator's certificate.
    pub ca: PathBuf,
    /// The chain of this gateway, its own first, if the operator asks for one.
    pub certificate: Option<PathBuf>,
    /// Its private key.
    pub key: Option<PathBuf>,
}

/// What is done about slow and broken answers.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Recovery {
    /// Prompt tokens that may be sent a second time because the first engine is slow, in thousandths
    /// of all. 0 turns it off.
    pub hedge_per_thousand: u32,
    /// Whether a stream that broke off is continued by another engine.
    pub continue_streams: bool,
}

/// Answers that are kept.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct ResponseCache {
    /// Bytes of all that are kept.
    pub bytes: usize,
    /// How long one is kept.
    pub ttl_s: u64,
}

/// What requests may cost.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct RequestLimits {
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
    /// Requests that wait for one model, held ones among them.
    pub queued: usize,
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
    /// A whole body, beside a second for each 8 KB that came of it.
    pub body_ms: u64,
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
    /// From SIGTERM to the last new connection: as long as load balancers take to hear of it.
    pub settle_ms: u64,
    /// From then on to the end, whatever still runs.
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
    /// A file to which a line is added for every act that is not a request: changed settings, wake
    /// calls, quarantines, the end. On standard error without.
    pub audit_log: Option<PathBuf>,
}

impl GatewaySettingsFile {
    /// Reads a file's text, or says everything that is wrong with it.
    pub fn parse(text: &str) -> Result<Self, Vec<SettingProblem>> {
        parse::parse(text)
    }

    /// What is allowed and yet worth a word.
    pub fn warnings(&self) -> Vec<String> {
        check::warnings(self)
    }
}
