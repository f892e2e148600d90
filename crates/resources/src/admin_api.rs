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

/// One decision that differs from the previous one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The model, `namespace/name`.
    pub model: String,
    /// Previously recommended replicas.
    pub from: Option<i32>,
    /// Recommended replicas.
    pub to: Option<i32>,
    /// Ready replicas at that time.
    pub ready: Option<i32>,
    /// Whether it was applied or only shown.
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
    /// Minimum replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<u32>,
    /// Maximum replicas.
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
    /// Time of the snapshot that this starts from, RFC 3339.
    pub at: String,
    /// Every requested model, and every other model whose decision would change.
    pub models: Vec<Imagined>,
}

/// A model before and after.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Imagined {
    /// The model, `namespace/name`.
    pub model: String,
    /// Under the current conditions; absent if the model does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<WhatIfSide>,
    /// Under the changed conditions; absent if no decision is possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<WhatIfSide>,
    /// Why no decision is possible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// The decision about a model under one set of conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhatIfSide {
    /// Recommended replicas over all variants.
    pub replicas: i32,
    /// Recommended replicas by variant.
    pub variants: Vec<VariantCount>,
    /// Hourly cost of the replicas; unknown if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hourly_cost: Option<String>,
    /// Its currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Reason, from a fixed list.
    pub reason: String,
    /// The bound that set the number of replicas, from a fixed list.
    pub bound: String,
    /// The reason in a sentence.
    pub message: String,
    /// Replicas that each bound alone would allow.
    pub candidates: Vec<CandidateStatus>,
}

/// Recommended replicas of one variant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VariantCount {
    /// The variant.
    pub variant: String,
    /// Replicas.
    pub replicas: i32,
}
