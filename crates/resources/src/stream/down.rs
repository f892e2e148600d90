//! What the operator answers.

use super::Protocol;

/// One message of the operator. One with neither part says that the operator is there.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Down {
    /// Who answers. In the first message, and only there.
    #[prost(message, optional, tag = "1")]
    pub welcome: Option<Welcome>,
    /// What gateways are to go by from now on. A whole, not a difference.
    #[prost(message, optional, tag = "2")]
    pub orders: Option<Orders>,
    /// The number of the orders that hold, in every message; 0 while there are none. A gateway that has
    /// them knows by it that they still hold.
    #[prost(uint64, tag = "3")]
    pub holds: u64,
}

/// Who answers.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct Welcome {
    /// The version of its protocol.
    #[prost(message, optional, tag = "1")]
    pub protocol: Option<Protocol>,
    /// The version of its program.
    #[prost(string, tag = "2")]
    pub program: String,
}

/// What gateways are to go by.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Orders {
    /// Their number, greater than that of the orders before, within one life of the operator.
    #[prost(uint64, tag = "1")]
    pub sequence: u64,
    /// By model. A model that is not here has no objectives and no promised time.
    #[prost(message, repeated, tag = "2")]
    pub models: Vec<ModelOrders>,
    /// Engines that get nothing new and finish what they have.
    #[prost(message, repeated, tag = "3")]
    pub drains: Vec<DrainMark>,
    /// Weights of splits. A split that is not here keeps the weights of the gateway's settings.
    #[prost(message, repeated, tag = "4")]
    pub splits: Vec<SplitWeights>,
    /// The version of the operator's program.
    #[prost(string, tag = "5")]
    pub program: String,
}

/// What holds for one model.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct ModelOrders {
    /// Model name in client requests.
    #[prost(string, tag = "1")]
    pub model: String,
    /// The longest time to the first token; not judged if absent.
    #[prost(uint32, optional, tag = "2")]
    pub first_token_ms: Option<u32>,
    /// The longest time between tokens, on the mean of an answer; not judged if absent.
    #[prost(uint32, optional, tag = "3")]
    pub between_tokens_ms: Option<u32>,
    /// From the sending of these orders until an engine will be up, if one is on its way.
    #[prost(uint64, optional, tag = "4")]
    pub wake_eta_ms: Option<u64>,
    /// The namespace of the model. A gateway whose engines of that name are elsewhere does not go by it.
    #[prost(string, tag = "5")]
    pub namespace: String,
}

/// An engine that gets no new requests. Empty fields do not restrict it: with a name and an address,
/// a pod that came back elsewhere under the same name is not meant.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct DrainMark {
    /// `namespace/pod`.
    #[prost(string, tag = "1")]
    pub name: String,
    /// `IP:PORT`.
    #[prost(string, tag = "2")]
    pub address: String,
    /// Since when, in milliseconds since 1970.
    #[prost(uint64, tag = "3")]
    pub since_ms: u64,
}

/// The weights of one split.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct SplitWeights {
    /// Model name in client requests.
    #[prost(string, tag = "1")]
    pub split: String,
    /// Its arms. One that is not here gets nothing; if none has a weight, the settings' weights stay.
    #[prost(message, repeated, tag = "2")]
    pub arms: Vec<ArmWeight>,
}

/// The weight of one arm.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct ArmWeight {
    /// The model of the arm.
    #[prost(string, tag = "1")]
    pub model: String,
    /// Its part of all weights.
    #[prost(uint32, tag = "2")]
    pub weight: u32,
}
