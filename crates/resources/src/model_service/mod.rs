//! ModelService: a model that is served, how fast it should answer, and the ways to run it.
//!
//! Six lines adopt a Deployment that already runs; see `docs/guides/operator.md`. `variant` has the
//! ways to run it, `scaling` what its owner allows, `gateway` how its requests are treated, `prices` what its tokens
//! cost, `status` what Flyball says about it.

mod gateway;
mod prices;
mod scaling;
mod status;
mod variant;

pub use gateway::{GatewaySpec, RoutingSpec};
pub use prices::TokenPricesSpec;
pub use scaling::{CalendarEntry, MoneySpec, Once, Scaling, ScalingMode, Sleep, Weekday, Weekly};
pub use status::{
    AdoptedStatus, Band, CandidateStatus, CapacityStatus, ChosenLawStatus, ModelServiceStatus,
    ReceiptStatus, SignalSeen, SpanStatus, TriedLawStatus, VariantStatus,
};
pub use variant::{CapacityPrior, EngineSpec, TargetKind, TargetRef, VariantSpec};

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A model that is served.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "flyball.dev",
    version = "v1alpha1",
    kind = "ModelService",
    namespaced,
    status = "ModelServiceStatus",
    derive = "PartialEq",
    shortname = "msvc",
    category = "flyball",
    doc = "A served model: its latency objectives, the ways to run it, and what Flyball recommends \
           or does.",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(name = "Desired", type_ = "integer", json_path = ".status.recommendedReplicas"),
    printcolumn(name = "Current", type_ = "integer", json_path = ".status.readyReplicas"),
    printcolumn(name = "SLO", type_ = "string", json_path = ".status.attainmentPercent"),
    printcolumn(name = "Cost/h", type_ = "string", json_path = ".status.hourlyCost"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Mode", type_ = "string", json_path = ".spec.scaling.mode", priority = 1),
    printcolumn(
        name = "Bound",
        type_ = "string",
        json_path = ".status.decision.bound",
        priority = 1
    ),
    printcolumn(
        name = "Recommended/h",
        type_ = "string",
        json_path = ".status.recommendedHourlyCost",
        priority = 1
    ),
    printcolumn(name = "Decided", type_ = "date", json_path = ".status.decision.at", priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.replicas) || self.scaling.mode == 'Act'")
        .message("`replicas` must be absent while `scaling.mode` is Recommend: it would have no \
                  effect"),
    validation = Rule::new("!has(self.replicas) || self.replicas <= self.scaling.max")
        .message("`replicas` must be at most `scaling.max`"),
    validation = Rule::new("self.variants.all(v, !has(v.engine) || has(self.model))")
        .message("`model` must be set if a variant has an `engine`: it names what to load")
)]
pub struct ModelServiceSpec {
    /// The model to load and to predict the speed of, by its name on Hugging Face or, only to load it, as a
    /// path inside the engine's pod; example: `Qwen/Qwen3-32B`. Required if a variant has an `engine`; for an
    /// adopted vLLM or SGLang workload it is read from the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub model: Option<String>,
    /// Model names in client requests, and in the metrics of engines and gateways. The name of this
    /// object if absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 256)), extend("x-kubernetes-list-type" = "set"))]
    pub names: Vec<String>,
    /// Manually set number of replicas, over all variants. Flyball decides if absent; `kubectl
    /// scale` sets it. Only with `scaling.mode: Act`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10_000))]
    pub replicas: Option<i32>,
    /// Latency objectives, and the share of requests that must meet them.
    #[serde(default)]
    pub objectives: ObjectivesSpec,
    /// Limits and mode of scaling.
    #[serde(default)]
    pub scaling: Scaling,
    /// How gateways handle its requests.
    #[serde(default, skip_serializing_if = "GatewaySpec::is_default")]
    pub gateway: GatewaySpec,
    /// Price of a million tokens for the caller, in dollars; decimals in quotes, example: `"0.05"`. If absent, the
    /// price is unknown, not zero. Not yet: nothing is charged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<TokenPricesSpec>,
    /// The ways to run it. One is enough; Flyball mixes several by price and availability.
    #[schemars(length(min = 1, max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub variants: Vec<VariantSpec>,
}

/// How fast a model should answer. What is absent is not judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectivesSpec {
    /// Maximum time to first token, in milliseconds; example: 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3_600_000))]
    pub first_token_milliseconds: Option<i32>,
    /// Maximum mean time between the tokens of a response, in milliseconds; example: 40.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3_600_000))]
    pub between_tokens_milliseconds: Option<i32>,
    /// Share of requests that must meet the objectives, in percent; a decimal in quotes.
    #[serde(default = "ninety_nine")]
    #[schemars(regex(pattern = r"^([0-9]|[1-9][0-9])(\.[0-9]{1,4})?$"), length(max = 7))]
    pub attainment_percent: String,
}

impl Default for ObjectivesSpec {
    fn default() -> Self {
        Self {
            first_token_milliseconds: None,
            between_tokens_milliseconds: None,
            attainment_percent: ninety_nine(),
        }
    }
}

fn ninety_nine() -> String {
    "99".to_owned()
}
