//! A scenario as it is written.

use serde::Deserialize;
use std::collections::BTreeMap;

/// The file.
#[derive(Clone, Debug)]
pub(super) struct Form {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) seed: u64,
    pub(super) length_seconds: f64,
    pub(super) scored_from_seconds: f64,
    pub(super) grace_seconds: f64,
    pub(super) victim: VictimForm,
    pub(super) metrics: MetricsForm,
    pub(super) models: Vec<ModelForm>,
    pub(super) pools: Vec<PoolForm>,
    pub(super) faults: Vec<FaultForm>,
    pub(super) expect: ExpectForm,
}

/// What stands before the first table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    pub(super) name: String,
    pub(super) about: String,
    #[serde(default)]
    pub(super) seed: u64,
    pub(super) length_seconds: f64,
    #[serde(default)]
    pub(super) scored_from_seconds: f64,
    /// Kubernetes' default.
    #[serde(default = "thirty")]
    pub(super) grace_seconds: f64,
    #[serde(default)]
    pub(super) victim: VictimForm,
}

fn thirty() -> f64 {
    30.0
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum VictimForm {
    #[default]
    Youngest,
    Random,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MetricsForm {
    pub(super) every_seconds: Option<f64>,
    pub(super) delay_seconds: Option<f64>,
    pub(super) window_seconds: Option<f64>,
    pub(super) max_age_seconds: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelForm {
    pub(super) name: String,
    pub(super) replicas: ReplicasForm,
    pub(super) objectives: ObjectivesForm,
    pub(super) traffic: TrafficForm,
    pub(super) variants: Vec<VariantForm>,
    /// How long a request is held while nobody can take it.
    #[serde(default = "sixty")]
    pub(super) hold_seconds: f64,
    /// Requests that one replica is given at once.
    pub(super) admit: Option<u32>,
}

fn sixty() -> f64 {
    60.0
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplicasForm {
    pub(super) min: u32,
    pub(super) max: u32,
    #[serde(default)]
    pub(super) may_sleep: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ObjectivesForm {
    pub(super) first_token_ms: Option<u64>,
    pub(super) between_tokens_ms: Option<u64>,
    pub(super) attainment_percent: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrafficForm {
    #[serde(default)]
    pub(super) stages: Vec<StageForm>,
    #[serde(default)]
    pub(super) spacing: SpacingForm,
    pub(super) prompt: Option<TokensForm>,
    pub(super) output: Option<TokensForm>,
    pub(super) impatient: Option<ImpatientForm>,
    /// A trace, by its name, instead of stages.
    pub(super) replay: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SpacingForm {
    Even,
    #[default]
    Poisson,
}

/// Requests per second, for so long; `to_rps` if the rate changes on the way.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StageForm {
    pub(super) seconds: f64,
    pub(super) rps: f64,
    pub(super) to_rps: Option<f64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TokensForm {
    pub(super) mean: f64,
    #[serde(default)]
    pub(super) variation: f64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ImpatientForm {
    pub(super) share: f64,
    pub(super) seconds: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VariantForm {
    pub(super) name: String,
    pub(super) pool: String,
    pub(super) gpus: u32,
    #[serde(default)]
    pub(super) initial: u32,
    #[serde(default)]
    pub(super) purchase: PurchaseForm,
    pub(super) cold_start: ColdStartForm,
    /// What a step costs, where that is all that is known.
    pub(super) linear: Option<LinearForm>,
    /// A model on an accelerator, as the performance model knows them.
    pub(super) modelled: Option<ModelledForm>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PurchaseForm {
    Reserved,
    #[default]
    OnDemand,
    Spot,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ColdStartForm {
    pub(super) image: Option<LengthForm>,
    pub(super) weights: Option<LengthForm>,
    pub(super) warm_up: Option<LengthForm>,
}

/// One of: always the same, a middle and a 99th percentile, or what was measured.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LengthForm {
    pub(super) seconds: Option<f64>,
    pub(super) median_seconds: Option<f64>,
    pub(super) p99_seconds: Option<f64>,
    pub(super) measured_seconds: Option<Vec<f64>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinearForm {
    pub(super) step_ms: f64,
    pub(super) prompt_token_us: f64,
    #[serde(default)]
    pub(super) request_us: f64,
    #[serde(default)]
    pub(super) cached_token_ns: f64,
    pub(super) max_running: u32,
    pub(super) step_tokens: u32,
    pub(super) cache_tokens: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelledForm {
    pub(super) model: String,
    pub(super) accelerator: String,
    #[serde(default = "one")]
    pub(super) tensor: u32,
    #[serde(default = "batched")]
    pub(super) step_tokens: u32,
    #[serde(default = "sequences")]
    pub(super) max_running: u32,
}

fn one() -> u32 {
    1
}

/// vLLM's defaults on a data-centre part.
fn batched() -> u32 {
    8_192
}

fn sequences() -> u32 {
    256
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PoolForm {
    pub(super) name: String,
    pub(super) accelerator: String,
    pub(super) gpus_per_node: u32,
    #[serde(default)]
    pub(super) nodes: BTreeMap<PurchaseForm, u32>,
    #[serde(default)]
    pub(super) can_grow: bool,
    pub(super) limit_gpus: Option<u32>,
    #[serde(default)]
    pub(super) stock: Vec<StockForm>,
    pub(super) node_supply: Option<LengthForm>,
    #[serde(default = "sixty")]
    pub(super) idle_node_seconds: f64,
    #[serde(default)]
    pub(super) usd_cents_per_gpu_hour: BTreeMap<PurchaseForm, u32>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StockForm {
    pub(super) from_seconds: f64,
    pub(super) nodes: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FaultForm {
    pub(super) name: String,
    pub(super) kind: KindForm,
    pub(super) at_seconds: f64,
    /// How long, for those that last.
    pub(super) for_seconds: Option<f64>,
    pub(super) pool: Option<String>,
    pub(super) nodes: Option<u32>,
    pub(super) notice_seconds: Option<f64>,
    pub(super) by_seconds: Option<f64>,
    pub(super) factor: Option<f64>,
    /// Nothing is told at all.
    #[serde(default)]
    pub(super) unknown: bool,
    pub(super) replicas: Option<u32>,
    pub(super) prompt_factor: Option<f64>,
    pub(super) output_factor: Option<f64>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum KindForm {
    StockOut,
    Reclaim,
    NodeLoss,
    BadStarts,
    StaleMetrics,
    MissingMetrics,
    NotANumber,
    ClockJump,
    ToldCapacity,
    EngineSlows,
    ShapeShift,
    NoGateway,
    OperatorRestart,
}

/// What should come of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectForm {
    pub(super) missed_percent: Option<RangeForm>,
    pub(super) killed: Option<RangeForm>,
    pub(super) gpu_hours: Option<RangeForm>,
    pub(super) replica_hours: Option<RangeForm>,
    pub(super) episode_replicas: Option<RangeForm>,
    pub(super) reversals: Option<RangeForm>,
    #[serde(default)]
    pub(super) recovery_seconds: Vec<RecoveryForm>,
    #[serde(default)]
    pub(super) never_down_during: Vec<NeverDownForm>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RangeForm {
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
    /// Where the numbers come from.
    pub(super) origin: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecoveryForm {
    /// The name of a fault, or a time.
    pub(super) after: Option<String>,
    pub(super) after_seconds: Option<f64>,
    pub(super) max: f64,
    pub(super) origin: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NeverDownForm {
    /// The name of a fault.
    pub(super) fault: String,
    /// How long it takes until the fault is seen: a signal becomes stale some time after it stops.
    #[serde(default)]
    pub(super) seen_after_seconds: f64,
    pub(super) origin: String,
}
