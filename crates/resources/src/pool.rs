//! Pool: accelerators of one kind, what they cost, and how many there may be.

use crate::decimal;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Accelerators of one kind on the nodes that the selector finds.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "flyball.dev",
    version = "v1alpha1",
    kind = "Pool",
    status = "PoolStatus",
    derive = "PartialEq",
    shortname = "fpool",
    category = "flyball",
    doc = "A pool of like accelerators: which nodes have them, what they cost, how many there may be.",
    printcolumn(name = "Accelerator", type_ = "string", json_path = ".spec.accelerator"),
    printcolumn(name = "Nodes", type_ = "integer", json_path = ".status.nodes"),
    printcolumn(name = "GPUs", type_ = "integer", json_path = ".status.gpus"),
    printcolumn(name = "Used", type_ = "integer", json_path = ".status.used"),
    printcolumn(name = "Limit", type_ = "integer", json_path = ".spec.limit"),
    printcolumn(name = "Cost/h", type_ = "string", json_path = ".status.hourlyCost"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct PoolSpec {
    /// The accelerator by its name in Flyball's catalogue, as `flyball gpus` lists it; example:
    /// `h100-sxm-80gb`. With it, the speed of a model can be predicted before it is measured.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub accelerator: String,
    /// Labels that a node must have to belong to the pool. Every node that offers `resourceName`
    /// belongs to it if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub node_selector: BTreeMap<String, String>,
    /// The resource of a node that counts accelerators.
    #[serde(default = "nvidia")]
    #[schemars(length(min = 1, max = 253))]
    pub resource_name: String,
    /// What one accelerator costs for an hour, by how it is paid for. A price that is not here is
    /// unknown, not zero.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["purchase"]))]
    pub prices: Vec<PriceSpec>,
    /// The currency of `prices`, by ISO 4217.
    #[serde(default = "usd")]
    #[schemars(regex(pattern = r"^[A-Z]{3}$"), length(max = 3))]
    pub currency: String,
    /// The most accelerators that Flyball may use of the pool; no limit of its own if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub limit: Option<i32>,
    /// Whether more nodes come when pods wait for them.
    #[serde(default)]
    pub growth: Growth,
    /// What namespaces may have against others where the pool is too small for all. Only this takes
    /// accelerators from models of another namespace; nothing in a ModelService does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["namespace"]))]
    pub shares: Vec<ShareSpec>,
}

/// What a namespace may have of a pool against others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShareSpec {
    /// The namespace of the models.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub namespace: String,
    /// Accelerators that it gets back from namespaces that have more than theirs, whatever their
    /// priority, and that are not taken from it. Others use them while it does not want them.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub guaranteed_gpus: i32,
    /// It takes from namespaces of a lower priority what they have above their guarantee, and gets what
    /// is free before them. Namespaces that are not listed have 0.
    #[serde(default)]
    #[schemars(range(min = -1000, max = 1000))]
    pub priority: i32,
}

/// Whether a pool gets more nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Growth {
    /// The nodes that are there are all there will be.
    #[default]
    Fixed,
    /// A node autoscaler adds nodes for pods that wait.
    Autoscaled,
}

/// What one accelerator costs for an hour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PriceSpec {
    /// How it is paid for.
    pub purchase: PurchaseSpec,
    /// The amount, a decimal in quotes; example: `"6.88"`.
    #[schemars(regex(pattern = decimal::PATTERN), length(max = 16))]
    pub per_gpu_hour: String,
}

/// How an accelerator is paid for. Nodes say it with the label `karpenter.sh/capacity-type`; a node
/// without it is paid for on demand.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum PurchaseSpec {
    /// Paid for whether used or not.
    Reserved,
    /// Paid for while used, and not taken away.
    OnDemand,
    /// Paid for while used, cheaper, and can be taken away at short notice.
    Spot,
}

/// What there is of a pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolStatus {
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Nodes with accelerators of the pool that can be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<i32>,
    /// Accelerators on those nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<i32>,
    /// Accelerators that pods hold, of the namespaces that the operator looks at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<i32>,
    /// Those of them that pods hold which are no replicas of a ModelService on this pool. Flyball plans
    /// with the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_by_others: Option<i32>,
    /// What models of each namespace hold of it, of the namespaces that have a share or hold any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["namespace"]))]
    pub namespaces: Vec<NamespaceUse>,
    /// What an hour of the accelerators that are there costs, used or not. Absent if a price is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hourly_cost: Option<String>,
    /// Its currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// What is so, in the standard form; see the reference for the types.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// What models of a namespace hold of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceUse {
    /// The namespace.
    pub namespace: String,
    /// Accelerators of replicas that are there, without those that drain.
    pub used: i32,
    /// Accelerators of all replicas that are wanted; more than `used` while some start, or while it
    /// cannot have them.
    pub wanted: i32,
    /// What it is guaranteed.
    pub guaranteed: i32,
}

fn nvidia() -> String {
    "nvidia.com/gpu".to_owned()
}

fn usd() -> String {
    "USD".to_owned()
}
