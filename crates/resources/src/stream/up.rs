//! What a gateway says.

use super::quota::ReportedQuota;

/// A message from a gateway. The first has `hello`, later ones any other field.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Up {
    /// The sender. Only in the first message.
    #[prost(message, optional, tag = "1")]
    pub hello: Option<Hello>,
    /// Current demand, every second. Always complete, never a delta.
    #[prost(message, optional, tag = "2")]
    pub demand: Option<ReportedDemand>,
    /// A request arrived for a model without engines. Sent immediately, once until the model has engines again.
    #[prost(message, optional, tag = "3")]
    pub wake: Option<Wake>,
    /// Demand of the last half minute, oldest first. Sent once, before the first `demand`, so that an operator
    /// that has just started can compute rates.
    #[prost(message, repeated, tag = "4")]
    pub past: Vec<ReportedPast>,
    /// Tenant quotas: all of them first, then what changed, four times a second; requests for more immediately.
    #[prost(message, optional, tag = "5")]
    pub quota: Option<ReportedQuota>,
}

/// Version of this protocol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct Protocol {
    /// Peers with different major versions do not connect.
    #[prost(uint32, tag = "1")]
    pub major: u32,
    /// Peers with different minor versions connect.
    #[prost(uint32, tag = "2")]
    pub minor: u32,
}

/// The sender.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct Hello {
    /// Protocol version of the sender.
    #[prost(message, optional, tag = "1")]
    pub protocol: Option<Protocol>,
    /// Name of the gateway: the name of its pod.
    #[prost(string, tag = "2")]
    pub gateway: String,
    /// Program version of the sender.
    #[prost(string, tag = "3")]
    pub program: String,
    /// Start time, in milliseconds since 1970. Totals count from then; a different time means that they were
    /// reset.
    #[prost(uint64, tag = "4")]
    pub started_ms: u64,
}

/// Current state of a gateway.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ReportedDemand {
    /// All models that it serves.
    #[prost(message, repeated, tag = "1")]
    pub models: Vec<ModelDemand>,
    /// All engines that it knows.
    #[prost(message, repeated, tag = "2")]
    pub endpoints: Vec<EndpointLoad>,
    /// Sequence number of the directives in effect, of those received on this stream; 0 if none.
    #[prost(uint64, tag = "3")]
    pub orders: u64,
    /// Models that did not fit into the message.
    #[prost(uint32, tag = "4")]
    pub models_left_out: u32,
    /// Endpoints that did not fit into the message. Idle ones are left out first.
    #[prost(uint32, tag = "5")]
    pub endpoints_left_out: u32,
}

/// Past state of a gateway.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ReportedPast {
    /// Age of this state.
    #[prost(uint64, tag = "1")]
    pub age_ms: u64,
    /// Models whose totals changed since the state before; all models in the first.
    #[prost(message, repeated, tag = "2")]
    pub models: Vec<ModelDemand>,
}

/// Demand of one model. Totals count since the gateway started.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct ModelDemand {
    /// Model name in client requests.
    #[prost(string, tag = "1")]
    pub model: String,
    /// Engines that accept requests.
    #[prost(uint32, tag = "2")]
    pub engines: u32,
    /// Requests in the queue.
    #[prost(uint64, tag = "3")]
    pub waiting: u64,
    /// Queued requests that wait for an engine to start.
    #[prost(uint64, tag = "4")]
    pub held: u64,
    /// Prompt tokens of all queued requests.
    #[prost(uint64, tag = "5")]
    pub backlog_tokens: u64,
    /// Estimated cost of all queued requests, in units of a prompt token's time.
    #[prost(uint64, tag = "6")]
    pub backlog_cost: u64,
    /// Wait of the oldest queued request.
    #[prost(uint64, tag = "7")]
    pub oldest_ms: u64,
    /// Expected wait of an average request that arrives now; absent if unknown.
    #[prost(uint64, optional, tag = "8")]
    pub wait_ms: Option<u64>,
    /// Whether a wake-up is pending.
    #[prost(bool, tag = "9")]
    pub waking: bool,
    /// Requests in flight at engines.
    #[prost(uint64, tag = "10")]
    pub in_flight: u64,
    /// Prompt tokens in flight that no engine has computed.
    #[prost(uint64, tag = "11")]
    pub unread_tokens: u64,
    /// Maximum requests in flight of this gateway.
    #[prost(uint64, tag = "12")]
    pub window: u64,
    /// Total: requests received.
    #[prost(uint64, tag = "13")]
    pub arrived: u64,
    /// Total: their prompt tokens.
    #[prost(uint64, tag = "14")]
    pub arrived_tokens: u64,
    /// Total: cost of finished requests.
    #[prost(uint64, tag = "15")]
    pub spent_cost: u64,
    /// Total: requests refused at the queue, or that timed out in it.
    #[prost(uint64, tag = "16")]
    pub shed: u64,
    /// Total: wake-up calls.
    #[prost(uint64, tag = "17")]
    pub wake_calls: u64,
    /// Total: output tokens of finished requests.
    #[prost(uint64, tag = "18")]
    pub output_tokens: u64,
    /// Total: requests compared with the objectives; 0 without objectives.
    #[prost(uint64, tag = "19")]
    pub judged: u64,
    /// Total: requests that missed an objective, or were refused for lack of capacity.
    #[prost(uint64, tag = "20")]
    pub missed: u64,
    /// Total: requests that missed the objective for TTFT.
    #[prost(uint64, tag = "21")]
    pub missed_first_token: u64,
    /// Total: requests that missed the objective for TPOT.
    #[prost(uint64, tag = "22")]
    pub missed_between_tokens: u64,
    /// Estimated tokens in the KV cache of engines for requests of this gateway.
    #[prost(uint64, tag = "23")]
    pub held_tokens: u64,
    /// Total: prompt tokens that engines had to compute because no cache had them. Absent if the gateway
    /// does not count them.
    #[prost(uint64, optional, tag = "24")]
    pub uncached_tokens: Option<u64>,
    /// Total: completed responses. Absent if the gateway does not count them.
    #[prost(uint64, optional, tag = "25")]
    pub answered: Option<u64>,
    /// Total: output tokens of completed responses, without the first of each.
    #[prost(uint64, tag = "26")]
    pub paced_tokens: u64,
    /// Total: microseconds from the first to the last token of completed responses.
    #[prost(uint64, tag = "27")]
    pub paced_micros: u64,
    /// Namespace of its engines; empty if unknown. Another namespace may have a different model of the same
    /// name.
    #[prost(string, tag = "29")]
    pub namespace: String,
}

/// Load of one gateway on one engine.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct EndpointLoad {
    /// `namespace/pod`, or the address of an engine that is not a pod. The same on every gateway.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Address, as `IP:PORT`.
    #[prost(string, tag = "2")]
    pub address: String,
    /// The model that it serves.
    #[prost(string, tag = "3")]
    pub model: String,
    /// Requests of this gateway in flight at the engine.
    #[prost(uint32, tag = "4")]
    pub in_flight: u32,
    /// Whether it receives requests.
    #[prost(enumeration = "EndpointState", tag = "5")]
    pub state: i32,
    /// UID of its pod; empty if it is not a pod. A later pod may have the same name or address.
    #[prost(string, tag = "6")]
    pub uid: String,
}

/// Whether an engine receives requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum EndpointState {
    /// Not reported, or a state that this version does not know.
    Unknown = 0,
    /// It receives requests.
    Open = 1,
    /// It finishes its requests in flight.
    Draining = 2,
    /// It ignores cancellation.
    Quarantined = 3,
    /// It fails, or does not answer.
    Broken = 4,
    /// Discovery no longer lists it (its pod is not ready or terminates). It finishes its requests in flight.
    Gone = 5,
}

/// A request arrived for a model without engines.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct Wake {
    /// The model.
    #[prost(string, tag = "1")]
    pub model: String,
    /// Namespace of its engines; empty if unknown.
    #[prost(string, tag = "7")]
    pub namespace: String,
}
