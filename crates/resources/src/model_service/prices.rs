//! What the tokens of a model cost whoever asks.

use crate::decimal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Dollars for a million tokens, decimals in quotes; example: `"0.05"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenPricesSpec {
    /// Prompt tokens.
    #[schemars(regex(pattern = decimal::PATTERN), length(max = 16))]
    pub input_per_million_tokens: String,
    /// Cached prompt tokens; the price of other prompt tokens if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = decimal::PATTERN), length(max = 16))]
    pub cached_input_per_million_tokens: Option<String>,
    /// Output tokens.
    #[schemars(regex(pattern = decimal::PATTERN), length(max = 16))]
    pub output_per_million_tokens: String,
}
