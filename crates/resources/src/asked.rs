//! What people ask an operator, and what it answers: past decisions, and what would be.
//!
//! Spoken over HTTP on the operator's admin address: `GET /decisions` and `POST /whatif`.

use crate::model_service::{CandidateStatus, ReceiptStatus};
use crate::pool::PurchaseSpec;
use crate::{ModelService, Pool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Past decisions, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decisions {
    /// Each that was not like the one before.
    pub decisions: Vec<Entry>,
}

/// One decision that was not like the one before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The model, `namespace/name`.
    pub model: String,
    /// Replicas that it should have had before.
    pub from: Option<i32>,
    /// Replicas that it should have.
    pub to: Option<i32>,
    /// Replicas that served then.
    pub ready: Option<i32>,
    /// Whether it was carried out or only shown.
    pub mode: String,
    /// The decision.
    pub receipt: ReceiptStatus,
}

/// Another world than the one that the operator sees. What is absent is as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Changes {
    /// The model that `ratePercent`, `min` and `max` are about, `namespace/name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its work, in percent of what it is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_percent: Option<u32>,
    /// The fewest replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<u32>,
    /// The most replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// Pools that are gone with everything on them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost_pools: Vec<String>,
    /// Other prices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prices: Vec<OtherPrice>,
    /// ModelServices that are new or are written anew.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model_services: Vec<ModelService>,
    /// Pools that are new or are written anew.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<Pool>,
}

/// Another price of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OtherPrice {
    /// The pool.
    pub pool: String,
    /// How it is paid for; every way that has a price now if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purchase: Option<PurchaseSpec>,
    /// What one accelerator costs for an hour; a decimal.
    pub per_gpu_hour: String,
}

/// What would be decided under hypothetical conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhatIfOutcome {
    /// When the operator looked at the world that this starts from, RFC 3339.
    pub at: String,
    /// Every model that was asked about, and every other that would get something else.
    pub models: Vec<Imagined>,
}

/// A model in both worlds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Imagined {
    /// The model, `namespace/name`.
    pub model: String,
    /// As things are; absent if the model is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<WhatIfSide>,
    /// As they would be; absent if nothing can be decided about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<WhatIfSide>,
    /// Why nothing can be decided about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// What is decided about a model in one world.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhatIfSide {
    /// Replicas over all variants that there should be.
    pub replicas: i32,
    /// The same by variant.
    pub variants: Vec<VariantCount>,
    /// What an hour of them costs; unknown if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hourly_cost: Option<String>,
    /// Its currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Why, from Flyball's closed list.
    pub reason: String,
    /// What set the number of replicas, from a closed list.
    pub bound: String,
    /// The same in a sentence.
    pub message: String,
    /// What each bound alone would have given.
    pub candidates: Vec<CandidateStatus>,
}

/// Replicas that one variant should have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VariantCount {
    /// The variant.
    pub variant: String,
    /// Replicas.
    pub replicas: i32,
}
