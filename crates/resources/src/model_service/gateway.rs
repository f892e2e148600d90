//! How gateways treat requests for a model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How gateways treat requests for a model. What is absent is as the gateway's own default has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatewaySpec {
    /// Maximum time in the queue, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400_000))]
    pub queue_milliseconds: Option<i32>,
    /// Maximum wait for a model that is waking from zero replicas, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400_000))]
    pub hold_milliseconds: Option<i32>,
    /// How an engine is chosen for a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing: Option<RoutingSpec>,
    /// Cache deterministic responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_responses: Option<bool>,
}

/// How an engine is chosen for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RoutingSpec {
    /// By what it may have cached, and by load.
    Prefix,
    /// By load alone.
    LeastLoad,
    /// One after the other.
    RoundRobin,
}

impl GatewaySpec {
    /// Whether nothing is said.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
