//! Tenant: who may ask for which models, how much, and by which keys.
//!
//! Gateways take keys, members, models, weight and priority from it. The operator writes the status.
//! Seven lines let a team in; the key itself is nowhere, only its hash is:
//!
//! ```yaml
//! apiVersion: flyball.dev/v1alpha1
//! kind: Tenant
//! metadata: { name: search, namespace: ml }
//! spec:
//!   models: ["llama-*"]
//!   keys:
//!     - { name: app, id: k3J9xQ2mZa, sha256: "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae" }
//! ```
//!
//! `access` has keys and members, `budget` what may be spent, `status` what Flyball says about it. What several Tenants
//! come to together is in [`crate::resolve`].

mod access;
mod budget;
mod status;

pub use access::{ServiceAccountRef, TenantKeySpec, TenantMember};
pub use budget::{BudgetPeriod, TenantBudgetSpec, WhenExhausted};
pub use status::{KeyCounts, TenantBudgetStatus, TenantStatus};

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The issuer of members that are service accounts of this cluster.
pub const KUBERNETES: &str = "kubernetes";

/// Who may ask, for what, and how much.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "flyball.dev",
    version = "v1alpha1",
    kind = "Tenant",
    namespaced,
    status = "TenantStatus",
    derive = "PartialEq",
    shortname = "ftn",
    category = "flyball",
    doc = "Who is served and billed: keys or tokens, models, rate limits and budgets.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(name = "Keys", type_ = "integer", json_path = ".status.keys.valid"),
    printcolumn(name = "Spent", type_ = "string", json_path = ".status.budgets[0].spent"),
    printcolumn(name = "Left", type_ = "string", json_path = ".status.budgets[0].left"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Path", type_ = "string", json_path = ".status.path", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct TenantSpec {
    /// Parent Tenant in this namespace: its restrictions apply to this Tenant too, and this Tenant's spending
    /// counts against it. At most four levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"))]
    pub parent: Option<String>,
    /// Models that the Tenant may use, by the names in client requests; a `*` at the end matches any ending. Other
    /// models are not served to it.
    #[schemars(
        length(min = 1, max = 256),
        inner(length(min = 1, max = 256), regex(pattern = r"^[^*\s]*\*?$")),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub models: Vec<String>,
    /// API keys, by their hashes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub keys: Vec<TenantKeySpec>,
    /// Callers with a token of another issuer. A caller that matches any entry belongs to the
    /// Tenant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub members: Vec<TenantMember>,
    /// Rate limits, including all Tenants below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<TenantLimitsSpec>,
    /// Relative share of the engines when demand exceeds capacity.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000))]
    pub weight: i32,
    /// Highest priority that its requests may use; no higher than that of a parent Tenant.
    #[serde(default)]
    pub priority_ceiling: PriorityCeiling,
    /// Tenants of this namespace with the same group share engine cache entries, and can infer from response times
    /// what others of the group have sent. If absent, the Tenant shares with nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub cache_group: Option<String>,
    /// Spending limits, including all Tenants below it. All of them apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub budgets: Vec<TenantBudgetSpec>,
}

/// How much a Tenant may ask for at a time. What is absent is not limited by it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantLimitsSpec {
    /// Requests per minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000_000))]
    pub requests_per_minute: Option<i64>,
    /// Prompt tokens per minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_000_i64))]
    pub input_tokens_per_minute: Option<i64>,
    /// Output tokens per minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_000_i64))]
    pub output_tokens_per_minute: Option<i64>,
    /// Maximum requests in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub concurrency: Option<i64>,
}

/// Who waits for whom: nobody of a later kind gets a turn while one of an earlier kind waits.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum PriorityCeiling {
    /// Before all others.
    High,
    /// As usual.
    #[default]
    Normal,
    /// Work that can wait, and is the first to be turned away.
    Low,
    /// Work that takes only what nobody else wants.
    Batch,
}

const fn one() -> i32 {
    1
}
