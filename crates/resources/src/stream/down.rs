//! What the operator answers.

use super::Protocol;
use super::quota::QuotaOrders;

/// A message from the operator. Without any other field it is a heartbeat.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Down {
    /// The sender. Only in the first message.
    #[prost(message, optional, tag = "1")]
    pub welcome: Option<Welcome>,
    /// Directives for gateways from now on. Always complete, never a delta.
    #[prost(message, optional, tag = "2")]
    pub orders: Option<Orders>,
    /// Sequence number of the directives in effect, in every message; 0 if none. It confirms to a gateway
    /// that the directives it has are current.
    #[prost(uint64, tag = "3")]
    pub holds: u64,
    /// Answers about Tenant quotas. Only what is new.
    #[prost(message, optional, tag = "4")]
    pub quota: Option<QuotaOrders>,
}

/// The sender.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct Welcome {
    /// Protocol version of the sender.
    #[prost(message, optional, tag = "1")]
    pub protocol: Option<Protocol>,
    /// Program version of the sender.
    #[prost(string, tag = "2")]
    pub program: String,
}

/// Directives for gateways.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Orders {
    /// Sequence number. It increases for as long as the operator's process runs.
    #[prost(uint64, tag = "1")]
    pub sequence: u64,
    /// Directives by model. A model that is absent has no objectives and no expected start.
    #[prost(message, repeated, tag = "2")]
    pub models: Vec<ModelOrders>,
    /// Engines that get no new requests and finish those in flight.
    #[prost(message, repeated, tag = "3")]
    pub drains: Vec<DrainMark>,
    /// Weights of splits. A split that is absent keeps the weights of the gateway's settings.
    #[prost(message, repeated, tag = "4")]
    pub splits: Vec<SplitWeights>,
    /// Program version of the operator.
    #[prost(string, tag = "5")]
    pub program: String,
}

/// Directives for one model.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct ModelOrders {
    /// Model name in client requests.
    #[prost(string, tag = "1")]
    pub model: String,
    /// Objective for TTFT; none if absent.
    #[prost(uint32, optional, tag = "2")]
    pub first_token_ms: Option<u32>,
    /// Objective for TPOT; none if absent.
    #[prost(uint32, optional, tag = "3")]
    pub between_tokens_ms: Option<u32>,
    /// Expected time from this message until an engine is ready, if one is starting.
    #[prost(uint64, optional, tag = "4")]
    pub wake_eta_ms: Option<u64>,
    /// Namespace of the model. A gateway with engines of that name in another namespace ignores the directives.
    #[prost(string, tag = "5")]
    pub namespace: String,
}

/// An engine that gets no new requests. All fields that are not empty must match: with a name and an address,
/// a later pod of the same name at another address does not match.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct DrainMark {
    /// `namespace/pod`.
    #[prost(string, tag = "1")]
    pub name: String,
    /// `IP:PORT`.
    #[prost(string, tag = "2")]
    pub address: String,
    /// Start of the drain, in milliseconds since 1970.
    #[prost(uint64, tag = "3")]
    pub since_ms: u64,
}

/// The weights of one split.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct SplitWeights {
    /// Model name in client requests.
    #[prost(string, tag = "1")]
    pub split: String,
    /// Arms. An arm that is absent gets no requests; if all weights are 0, those of the settings apply.
    #[prost(message, repeated, tag = "2")]
    pub arms: Vec<ArmWeight>,
}

/// The weight of one arm.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct ArmWeight {
    /// Model of the arm.
    #[prost(string, tag = "1")]
    pub model: String,
    /// Weight, relative to the other arms.
    #[prost(uint32, tag = "2")]
    pub weight: u32,
}
