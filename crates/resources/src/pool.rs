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
    doc = "A pool of identical accelerators: its nodes, prices and limit.",
    printcolumn(name = "Accelerator", type_ = "string", json_path = ".spec.accelerator"),
    printcolumn(name = "Nodes", type_ = "integer", json_path = ".status.nodes"),
    printcolumn(name = "GPUs", type_ = "integer", json_path = ".status.gpus"),
    printcolumn(name = "Used", type_ = "integer", json_path = ".status.used"),
    printcolumn(name = "Lent", type_ = "integer", json_path = ".status.lending.lentGpus"),
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
#[x_kube(
    validation = Rule::new("!has(self.lending) || self.growth == 'Fixed'")
        .message("`lending` takes `growth: Fixed`: a pool that gets more nodes has none to lend")
)]
pub struct PoolSpec {
    /// Name of the accelerator in Flyball's catalogue, as `flyball gpus` lists it; example:
    /// `h100-sxm-80gb`. With it, Flyball predicts the speed of a model before it is measured.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub accelerator: String,
    /// Labels of the pool's nodes. If empty, every node with `resourceName` belongs to the pool.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub node_selector: BTreeMap<String, String>,
    /// Node resource that counts accelerators.
    #[serde(default = "nvidia")]
    #[schemars(length(min = 1, max = 253))]
    pub resource_name: String,
    /// Hourly prices of one accelerator, by purchase option. A missing price is unknown, not zero.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["purchase"]))]
    pub prices: Vec<PriceSpec>,
    /// Currency of `prices`, by ISO 4217.
    #[serde(default = "usd")]
    #[schemars(regex(pattern = r"^[A-Z]{3}$"), length(max = 3))]
    pub currency: String,
    /// Maximum accelerators of the pool that Flyball may use; no extra limit if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub limit: Option<i32>,
    /// Whether a cluster autoscaler adds nodes for pending pods.
    #[serde(default)]
    pub growth: Growth,
    /// Shares of namespaces when the pool is too small for all. Only shares move accelerators
    /// between namespaces; nothing in a ModelService does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["namespace"]))]
    pub shares: Vec<ShareSpec>,
    /// What TrainingRuns with `borrow` may use while models do not need it. If absent, nothing is lent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lending: Option<LendingSpec>,
}

/// What is lent of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LendingSpec {
    /// Accelerators that are never lent, so that models can start more replicas without waiting for a run to end.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub keep_free: i32,
    /// Seconds after a loan was given or taken back until more is lent. Each loan costs a run a restart.
    #[serde(default = "settle")]
    #[schemars(range(min = 0, max = 86_400))]
    pub settle_seconds: i32,
}

/// What a namespace may have of a pool against others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShareSpec {
    /// The namespace of the models.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub namespace: String,
    /// Accelerators that the namespace can always reclaim from namespaces above their own
    /// guarantee, regardless of priority, and never loses. Others may use them while they are idle.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub guaranteed_gpus: i32,
    /// A namespace reclaims from lower priorities what they hold above their guarantee, and gets free
    /// accelerators first. Namespaces that are not listed have 0.
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
    /// Purchase option.
    pub purchase: PurchaseSpec,
    /// Amount, a decimal in quotes; example: `"6.88"`.
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
    /// Paid for while used, and not preempted.
    OnDemand,
    /// Paid for while used, cheaper, and can be preempted at short notice.
    Spot,
}

/// What there is of a pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolStatus {
    /// Generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Usable nodes with accelerators of the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<i32>,
    /// Accelerators on these nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<i32>,
    /// Accelerators held by pods, in the namespaces that the operator watches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<i32>,
    /// Accelerators held by pods that are not replicas of a ModelService on this pool. Flyball plans
    /// with the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_by_others: Option<i32>,
    /// Accelerators by namespace, for namespaces that have a share or hold any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["namespace"]))]
    pub namespaces: Vec<NamespaceUse>,
    /// What is lent, to whom, and how soon it is back; absent unless the pool lends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lending: Option<LendingStatus>,
    /// Hourly cost of all accelerators, used or not. Absent if a price is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hourly_cost: Option<String>,
    /// Its currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Conditions in the standard Kubernetes form; the reference lists the types.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// What is lent of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LendingStatus {
    /// Accelerators that borrowing runs hold.
    pub lent_gpus: i32,
    /// Seconds within which all of it is promised back: the longest of the last take-backs and a quarter more, and no less
    /// than the present runs need to save and end. Absent while no run borrows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promise_seconds: Option<i64>,
    /// Take-backs so far.
    #[serde(default)]
    pub take_backs: i64,
    /// Take-backs that took longer than was promised.
    #[serde(default)]
    pub late_take_backs: i64,
    /// Seconds that the last take-backs took, newest last; at most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub last_seconds: Vec<i64>,
    /// Runs that borrow or would.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["namespace", "name"]))]
    pub runs: Vec<LoanStatus>,
}

/// One run that borrows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoanStatus {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// How its loan stands: Lent, Returning, Waiting, or Shown in mode Recommend.
    pub state: String,
    /// Accelerators that it holds.
    pub gpus: i32,
    /// Accelerators that it needs.
    pub needed_gpus: i32,
    /// What taking it back now would throw away: work since the last save and a restart, in seconds of an accelerator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub take_back_gpu_seconds: Option<i64>,
    /// The same in the pool's currency; a decimal. Absent if a price is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub take_back_cost: Option<String>,
}

/// What models of a namespace hold of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceUse {
    /// The namespace.
    pub namespace: String,
    /// Accelerators of replicas, without draining ones.
    pub used: i32,
    /// Accelerators of all desired replicas; more than `used` while some start or are unavailable.
    pub wanted: i32,
    /// Guaranteed accelerators.
    pub guaranteed: i32,
}

/// The order of a restore of a large run.
const fn settle() -> i32 {
    600
}

fn nvidia() -> String {
    "nvidia.com/gpu".to_owned()
}

fn usd() -> String {
    "USD".to_owned()
}
