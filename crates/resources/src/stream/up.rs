//! What a gateway says.

/// One message of a gateway. The first one has `hello`; later ones any of the others.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Up {
    /// The sender. Only in the first message.
    #[prost(message, optional, tag = "1")]
    pub hello: Option<Hello>,
    /// How things stand, each second. A whole, not a difference.
    #[prost(message, optional, tag = "2")]
    pub demand: Option<ReportedDemand>,
    /// A request arrived for a model without engines. Sent at once, and once per sleep.
    #[prost(message, optional, tag = "3")]
    pub wake: Option<Wake>,
    /// How things stood in the last half minute, the oldest first. Said once, before the first `demand`: an
    /// operator that has just begun knows rates at once.
    #[prost(message, repeated, tag = "4")]
    pub past: Vec<ReportedPast>,
}

/// A version of what is spoken on this stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct Protocol {
    /// Two sides with different majors do not talk.
    #[prost(uint32, tag = "1")]
    pub major: u32,
    /// Nobody is refused for it.
    #[prost(uint32, tag = "2")]
    pub minor: u32,
}

/// The sender.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct Hello {
    /// The version of its protocol.
    #[prost(message, optional, tag = "1")]
    pub protocol: Option<Protocol>,
    /// The gateway's name: that of its pod.
    #[prost(string, tag = "2")]
    pub gateway: String,
    /// The version of its program.
    #[prost(string, tag = "3")]
    pub program: String,
    /// When it began, in milliseconds since 1970. All its sums count from then: another time means that
    /// they began again.
    #[prost(uint64, tag = "4")]
    pub started_ms: u64,
}

/// How things stand at a gateway.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ReportedDemand {
    /// Every model that it serves.
    #[prost(message, repeated, tag = "1")]
    pub models: Vec<ModelDemand>,
    /// Every engine that it knows.
    #[prost(message, repeated, tag = "2")]
    pub endpoints: Vec<EndpointLoad>,
    /// The number of the orders that it goes by, of those that came on this stream; 0 if none came.
    #[prost(uint64, tag = "3")]
    pub orders: u64,
    /// Models that did not fit into the message.
    #[prost(uint32, tag = "4")]
    pub models_left_out: u32,
    /// Endpoints that did not fit. Those that drain or are busy are never left out before idle ones.
    #[prost(uint32, tag = "5")]
    pub endpoints_left_out: u32,
}

/// How things stood a while ago.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ReportedPast {
    /// How long ago that was.
    #[prost(uint64, tag = "1")]
    pub age_ms: u64,
    /// Models whose sums differ from those of the moment before; in the first moment, all of them.
    #[prost(message, repeated, tag = "2")]
    pub models: Vec<ModelDemand>,
}

/// Demand of one model. Sums count since the gateway started.
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
    /// Those of them that wait for an engine to come up.
    #[prost(uint64, tag = "4")]
    pub held: u64,
    /// Prompt tokens of all queued requests.
    #[prost(uint64, tag = "5")]
    pub backlog_tokens: u64,
    /// What they will probably cost, in the time of a prompt token.
    #[prost(uint64, tag = "6")]
    pub backlog_cost: u64,
    /// How long the first has waited.
    #[prost(uint64, tag = "7")]
    pub oldest_ms: u64,
    /// How long a usual request would wait that came now; absent if unknown.
    #[prost(uint64, optional, tag = "8")]
    pub wait_ms: Option<u64>,
    /// Whether the model was called and has not come.
    #[prost(bool, tag = "9")]
    pub waking: bool,
    /// Requests under way at engines.
    #[prost(uint64, tag = "10")]
    pub in_flight: u64,
    /// Prompt tokens under way that no engine has read.
    #[prost(uint64, tag = "11")]
    pub unread_tokens: u64,
    /// Requests that this gateway may have under way at once.
    #[prost(uint64, tag = "12")]
    pub window: u64,
    /// Sum: requests that came.
    #[prost(uint64, tag = "13")]
    pub arrived: u64,
    /// Sum: their prompt tokens.
    #[prost(uint64, tag = "14")]
    pub arrived_tokens: u64,
    /// Sum: cost of all that ended.
    #[prost(uint64, tag = "15")]
    pub spent_cost: u64,
    /// Sum: requests that were turned away.
    #[prost(uint64, tag = "16")]
    pub shed: u64,
    /// Sum: calls to wake it.
    #[prost(uint64, tag = "17")]
    pub wake_calls: u64,
    /// Sum: tokens that engines wrote for requests that ended.
    #[prost(uint64, tag = "18")]
    pub output_tokens: u64,
    /// Sum: requests that were judged by the objectives. Without objectives none is.
    #[prost(uint64, tag = "19")]
    pub judged: u64,
    /// Sum: those of them that missed any objective, or got no answer for lack of room.
    #[prost(uint64, tag = "20")]
    pub missed: u64,
    /// Sum: those that missed the objective for the first token.
    #[prost(uint64, tag = "21")]
    pub missed_first_token: u64,
    /// Sum: those that missed the objective between tokens, on the mean of the answer.
    #[prost(uint64, tag = "22")]
    pub missed_between_tokens: u64,
    /// Tokens that engines hold in memory for requests of this gateway, as it reckons.
    #[prost(uint64, tag = "23")]
    pub held_tokens: u64,
    /// Sum: those of the prompt tokens that came which engines had to read, because no cache had them.
    /// Absent from gateways that do not distinguish them.
    #[prost(uint64, optional, tag = "24")]
    pub uncached_tokens: Option<u64>,
    /// Sum: requests that were answered to the end. Absent from gateways that do not count them.
    #[prost(uint64, optional, tag = "25")]
    pub answered: Option<u64>,
    /// Sum: output tokens of these that came after a first one.
    #[prost(uint64, tag = "26")]
    pub paced_tokens: u64,
    /// Sum: microseconds from first tokens to last ones.
    #[prost(uint64, tag = "27")]
    pub paced_micros: u64,
    /// The namespace of its engines; empty where the gateway does not know it. The same name may be
    /// another model elsewhere.
    #[prost(string, tag = "29")]
    pub namespace: String,
}

/// What a gateway has at one engine.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct EndpointLoad {
    /// The same on every gateway: `namespace/pod`, or the address where there is no name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Where it answers, as `IP:PORT`.
    #[prost(string, tag = "2")]
    pub address: String,
    /// The model that it serves.
    #[prost(string, tag = "3")]
    pub model: String,
    /// Requests of this gateway under way at it.
    #[prost(uint32, tag = "4")]
    pub in_flight: u32,
    /// Whether it may get requests.
    #[prost(enumeration = "EndpointState", tag = "5")]
    pub state: i32,
    /// Its pod's own id, for engines that are gone: another pod may have its name or address by now.
    /// Empty if it is no pod.
    #[prost(string, tag = "6")]
    pub uid: String,
}

/// Whether an engine may get requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum EndpointState {
    /// Not reported, or a state that this program does not know.
    Unknown = 0,
    /// It may.
    Open = 1,
    /// It finishes what it has.
    Draining = 2,
    /// It ignores hang-ups.
    Quarantined = 3,
    /// It keeps failing, or does not answer at all.
    Broken = 4,
    /// The gateway does not see it listed any more (its pod is not ready, or leaves), and has requests
    /// under way at it. It gets nothing new.
    Gone = 5,
}

/// A request arrived for a model without engines.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct Wake {
    /// The model.
    #[prost(string, tag = "1")]
    pub model: String,
    /// The namespace of its engines; empty where the gateway does not know it.
    #[prost(string, tag = "7")]
    pub namespace: String,
}
