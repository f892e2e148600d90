//! Settings of splits: which part of a name's requests goes where.

use serde::{Deserialize, Serialize};

/// A name that stands for several models.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Split {
    /// The name that clients say.
    pub name: String,
    /// The models behind it.
    pub arms: Vec<Arm>,
    /// What keeps a caller's requests on one arm.
    pub sticky: Sticky,
    /// The header whose value is a session, if `sticky` is `header`.
    pub sticky_header: Option<String>,
    /// Requests that go to one arm whatever the weights say. The first that fits counts.
    pub rules: Vec<SplitRule>,
    /// Where copies go.
    pub mirror: Option<Mirror>,
}

/// One of the models behind a name.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Arm {
    /// A model of these settings.
    pub model: String,
    /// Its part of all weights.
    pub weight: u32,
    /// The name that its engines know the model by, if it is not the one that clients say.
    pub known_as: Option<String>,
}

/// A kind of request that goes to one arm. Both conditions must hold where both are said.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct SplitRule {
    /// A caller, by the name of its key.
    pub caller: Option<String>,
    /// A header that must be there.
    pub header: Option<String>,
    /// The value that it must have.
    pub value: Option<String>,
    /// The model of the arm.
    pub arm: String,
}

/// Copies of requests, whose answers nobody gets.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Mirror {
    /// A model of these settings.
    pub model: String,
    /// Requests that are copied, in thousandths.
    pub per_thousand: u32,
    /// The name that its engines know the model by, if it is not the one that clients say.
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
