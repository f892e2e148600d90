//! Settings of a gateway: one struct, read from one TOML file, unknown keys refused, all problems
//! reported at once.
//!
//! `sections` lists every setting, `parse` holds a file against that list, `check` finds what
//! contradicts, `reload` takes in a changed file while the gateway runs. It opens no file except in
//! `reload`, and nothing that it says contains a key.
//!
//! Start at [`GatewaySettingsFile::parse`].

mod check;
mod defaults;
mod fields;
mod kubernetes;
mod parse;
mod problem;
pub mod reload;
mod sections;
mod split;
mod tenants;
#[cfg(test)]
mod tests;

pub use kubernetes::{KubernetesSettings, ModelServicePods, VariantPods, WatchSetting};
pub(crate) use parse::is_name;
pub use problem::{Code, SettingProblem};
pub use split::{Arm, Mirror, Split, SplitRule, Sticky};
pub use tenants::{IssuerSettings, TenantsSettings};

use flyball_admin::AdminClients;
use flyball_engines::Engine;
use flyball_quota::TokenPrices;
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

/// All settings of a gateway.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct GatewaySettingsFile {
    /// Address for client connections.
    pub listen: SocketAddr,
    /// Address of health, metrics and the admin API. It is separate from `listen` so that it can
    /// stay private.
    pub admin: SocketAddr,
    /// Who may use it beyond health and metrics.
    pub admin_clients: AdminClients,
    /// Worker threads; 0 means one per core.
    pub threads: usize,
    /// Allow serving without keys on an address that others can reach.
    pub open: bool,
    /// Certificate and key. If absent, the gateway serves plain HTTP.
    pub tls: Option<Tls>,
    /// API keys of callers. If empty, no key is required, unless Tenants are watched.
    pub keys: Vec<Key>,
    /// Models to serve, and where their engines are.
    pub models: Vec<ModelSettings>,
    /// Discovery of models that are not in this file.
    pub kubernetes: KubernetesSettings,
    /// Callers that are not in this file.
    pub tenants: TenantsSettings,
    /// Names that stand for several models.
    pub splits: Vec<Split>,
    /// Limits on requests and connections.
    pub limits: RequestLimits,
    /// How long each step may take.
    pub timeouts: Timeouts,
    /// URL of a collector of engine loads, in another gateway or in the operator. If absent, this
    /// gateway polls the engines itself.
    pub collector: Option<String>,
    /// Whom to notify when a request arrives for a model without engines. If absent, such requests
    /// are refused.
    pub waker: Option<WakerSettings>,
    /// Connection to the operator: the gateway reports demand and receives directives.
    pub operator: Option<Operator>,
    /// How slow and broken responses are handled.
    pub recovery: Recovery,
    /// Cache of responses.
    pub response_cache: ResponseCache,
    /// Logs and traces.
    pub telemetry: Telemetry,
}

/// A certificate and its key, as PEM files.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// The certificate chain, the server's own certificate first.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// A caller's API key.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Key {
    /// Name of the caller, as logs and metrics show it.
    pub name: String,
    /// SHA-256 of the key in hexadecimal, so that this file contains no secret. It is never shown:
    /// a reader could test guesses against it.
    #[serde(skip_serializing)]
    pub sha256: String,
    /// Requests per minute at each gateway; unlimited if absent. Each replica counts by itself.
    pub requests_per_minute: Option<u32>,
    /// Relative share of the engines when demand exceeds capacity.
    pub weight: u32,
    /// Queue priority: lower priorities wait for higher ones.
    pub priority: Priority,
    /// Callers of one group share engine cache entries. If absent, the caller shares with nobody.
    pub cache_group: Option<String>,
}

/// A model, and where its engines are. Exactly one of `endpoints`, `service` and `pool` is set, and none for a
/// model that comes from a ModelService.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSettings {
    /// Model name in client requests. It is forwarded unchanged unless `known_as` is set.
    pub name: String,
    /// Engine addresses.
    pub endpoints: Vec<SocketAddr>,
    /// `namespace/name:port` of a Service whose EndpointSlices are watched. The port is a number or
    /// a name.
    pub service: Option<String>,
    /// `namespace/name` of an `InferencePool` whose pods are watched.
    pub pool: Option<String>,
    /// Engine type.
    pub engine: Engine,
    /// Maximum time in the queue. A request that would wait longer is refused at once.
    pub queue_ms: u64,
    /// Maximum time in the queue of a request of the class batch, in all.
    pub batch_ms: u64,
    /// Maximum wait for a model that is waking from zero replicas.
    pub hold_ms: u64,
    /// How an engine is chosen.
    pub policy: RoutingSetting,
    /// Policies to score on live requests without routing by them.
    pub shadow: Vec<RoutingSetting>,
    /// Cache deterministic responses and reuse them.
    pub cache_responses: bool,
    /// Port on which engines publish KV cache events. If absent, the gateway does not subscribe.
    pub kv_events: Option<u16>,
    /// Body keys to forward although they steer engines; a request with another such key is refused.
    pub engine_keys: Vec<String>,
    /// Model name that the engines expect, if it differs from the name in client requests.
    pub known_as: Option<String>,
    /// Objective: maximum time to first token. An objective from the operator takes precedence.
    pub first_token_ms: Option<u64>,
    /// Objective: maximum mean time between the tokens of a response. An objective from the
    /// operator takes precedence.
    pub between_tokens_ms: Option<u64>,
    /// What its tokens cost, if its ModelService says. The file cannot set this: budgets are those of Tenants.
    #[serde(skip)]
    pub prices: Option<TokenPrices>,
    /// The ModelService it comes from, if not from the file. The file cannot set this.
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

/// Queue priority: a lower one is not served while a higher one waits.
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

/// Whom to notify when a request arrives for a model without engines. Exactly one of the two is
/// set.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct WakerSettings {
    /// URL that gets a POST with a JSON body that names the model.
    pub url: Option<String>,
    /// Folder in which the gateway writes a file that names the model.
    pub folder: Option<PathBuf>,
    /// Time until the notification is repeated while the model is still needed.
    pub again_ms: u64,
}

/// Connection to the operator: the gateway reports demand and receives directives.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Operator {
    /// Address of the operator.
    pub address: String,
    /// File with a token for the operator, read at each connection.
    pub token_file: Option<PathBuf>,
    /// Certificates, if the address begins with `https`.
    pub tls: Option<OperatorTls>,
}

/// Certificates for the operator, as PEM files that are read at each connection.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct OperatorTls {
    /// The CA of the operator's certificate.
    pub ca: PathBuf,
    /// This gateway's certificate chain, its own certificate first, if the operator requires one.
    pub certificate: Option<PathBuf>,
    /// Its private key.
    pub key: Option<PathBuf>,
}

/// How slow and broken responses are handled.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Recovery {
    /// Hedging budget: prompt tokens that may be sent to a second engine because the first is slow,
    /// per thousand of all. 0 turns hedging off.
    pub hedge_per_thousand: u32,
    /// Continue a broken stream on another engine.
    pub continue_streams: bool,
}

/// Cache of responses.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct ResponseCache {
    /// Maximum bytes of all cached responses.
    pub bytes: usize,
    /// Lifetime of a cached response.
    pub ttl_s: u64,
}

/// Limits on requests and connections.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct RequestLimits {
    /// Maximum bytes of a request body.
    pub body_bytes: usize,
    /// Maximum bytes of all request bodies in memory.
    pub held_bytes: usize,
    /// Maximum bytes of a request head.
    pub head_bytes: usize,
    /// Maximum client connections.
    pub connections: usize,
    /// Maximum requests in flight.
    pub in_flight: usize,
    /// Maximum queued requests of one model, including held ones.
    pub queued: usize,
    /// Maximum concurrent streams on one HTTP/2 connection.
    pub streams_per_connection: u32,
    /// Maximum completions of one request (`n`, `best_of`).
    pub answers: u64,
}

/// How long each step may take, in milliseconds.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// From the first to the last byte of a request head.
    pub head_ms: u64,
    /// Between two chunks of a request body.
    pub body_idle_ms: u64,
    /// A whole request body, plus one second for each 8 KB received.
    pub body_ms: u64,
    /// Connecting to an engine.
    pub connect_ms: u64,
    /// From the last byte sent to an engine to the first byte of its response.
    pub first_byte_ms: u64,
    /// Between two chunks of a response that carry data.
    pub answer_idle_ms: u64,
    /// A client that does not read its response.
    pub client_idle_ms: u64,
    /// An idle connection.
    pub keep_alive_ms: u64,
    /// From SIGTERM until new connections are no longer accepted: as long as load balancers need to
    /// notice.
    pub settle_ms: u64,
    /// From then until the process ends, whatever is still in flight.
    pub drain_ms: u64,
}

/// Logs and traces.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    /// Write one line of JSON per request to standard output.
    pub access_log: bool,
    /// OTLP (gRPC) receiver, for example `http://127.0.0.1:4317`. If absent, no traces are
    /// exported.
    pub otlp: Option<String>,
    /// Traces to sample where the caller did not decide, per thousand.
    pub sampled_per_thousand: u32,
    /// File to which a line is appended for every action that is not a request: settings changes,
    /// wake calls, quarantines, shutdown. Standard error if absent.
    pub audit_log: Option<PathBuf>,
}

impl GatewaySettingsFile {
    /// Reads a file's text, or reports every problem in it.
    pub fn parse(text: &str) -> Result<Self, Vec<SettingProblem>> {
        parse::parse(text)
    }

    /// What is allowed and deserves a warning.
    pub fn warnings(&self) -> Vec<String> {
        check::warnings(self)
    }
}
