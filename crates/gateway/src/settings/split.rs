//! Settings of splits: which part of a name's requests goes where.

use serde::{Deserialize, Serialize};

/// A name that stands for several models.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Split {
    /// Model name in client requests.
    pub name: String,
    /// Models that share the traffic.
    pub arms: Vec<Arm>,
    /// What keeps a caller's requests on one arm.
    pub sticky: Sticky,
    /// The header whose value is a session, if `sticky` is `header`.
    pub sticky_header: Option<String>,
    /// Rules that send requests to one arm regardless of weights. The first match wins.
    pub rules: Vec<SplitRule>,
    /// Where copies go.
    pub mirror: Option<Mirror>,
}

/// One of the models behind a name.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Arm {
    /// Name of a model in these settings.
    pub model: String,
    /// Relative weight of this arm.
    pub weight: u32,
    /// Model name that the engines expect, if it differs from the name in client requests.
    pub known_as: Option<String>,
}

/// A kind of request that goes to one arm. Both conditions must hold where both are said.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct SplitRule {
    /// Match this caller, by the name of its key.
    pub caller: Option<String>,
    /// Match requests with this header.
    pub header: Option<String>,
    /// Match this value of the header.
    pub value: Option<String>,
    /// Model of the arm that gets matching requests.
    pub arm: String,
}

/// Copies of requests, whose answers nobody gets.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Mirror {
    /// Name of a model in these settings.
    pub model: String,
    /// Requests to copy, per thousand.
    pub per_thousand: u32,
    /// Model name that the engines expect, if it differs from the name in client requests.
    pub known_as: Option<String>,
}

/// What keeps requests on one arm.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Sticky {
    /// Nothing: each request is dealt out by itself.
    #[default]
    None,
    /// Who asks.
    Caller,
    /// The body's `user` (or `prompt_cache_key`), together with who asks.
    User,
    /// A header's value, together with who asks.
    Header,
}
