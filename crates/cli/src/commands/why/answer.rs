//! What is known about why a model has the replicas it has.

use flyball_resources::admin_api::Entry;
use flyball_resources::model_service::{
    Band, ModelServiceStatus, ReceiptStatus, ScalingMode, Sleep, VariantStatus,
};
use flyball_resources::{ModelService, labels};
use kube::ResourceExt as _;
use schemars::JsonSchema;
use serde::Serialize;

use crate::served::full_name;

/// Why a model has its replicas, and why others are recommended. Absent fields are unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Why {
    /// The model, `namespace/name`.
    pub(super) model: String,
    /// Act or Recommend.
    pub(super) mode: String,
    /// Time of the query, RFC 3339.
    pub(super) asked_at: String,
    /// Whether this is a past decision, about which less is known.
    pub(super) past: bool,
    /// Recommended replicas.
    pub(super) wants: Option<i32>,
    /// Ready replicas.
    pub(super) ready: Option<i32>,
    /// The decision and its inputs.
    pub(super) decision: Option<ReceiptStatus>,
    /// Limits and settings of the owner.
    pub(super) bounds: Option<Bounds>,
    /// Current and expected demand, in replicas.
    pub(super) forecast: Option<Band>,
    /// Each variant.
    pub(super) variants: Vec<VariantStatus>,
    /// Replicas that are not ready: pending, starting or draining.
    pub(super) waiting: Vec<Waiting>,
    /// Why nothing is known about the replicas that are not ready.
    pub(super) waiting_unknown: Option<String>,
    /// Hourly cost of the running replicas.
    pub(super) hourly_cost: Option<String>,
    /// Hourly cost of the recommended replicas.
    pub(super) recommended_hourly_cost: Option<String>,
    /// Currency of the costs.
    pub(super) currency: Option<String>,
    /// The share of the last hour's requests that met the objectives, in percent.
    pub(super) attainment_percent: Option<String>,
    /// The share that should.
    pub(super) wanted_percent: Option<String>,
    /// Conditions of the model that need attention.
    pub(super) troubles: Vec<Trouble>,
    /// Earlier decisions, oldest first, if requested.
    pub(super) earlier: Vec<Entry>,
    #[serde(skip)]
    pub(super) flat: bool,
}

/// Limits and settings of the owner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Bounds {
    /// Minimum replicas.
    pub(super) min: i32,
    /// Maximum replicas.
    pub(super) max: i32,
    /// Whether it may scale to zero while idle.
    pub(super) may_sleep: bool,
    /// Manually set number of replicas.
    pub(super) pinned: Option<i32>,
    /// End of the freeze, as it is written.
    pub(super) frozen_until: Option<String>,
    /// Why.
    pub(super) frozen_because: Option<String>,
}

/// A replica that is not ready.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Waiting {
    /// Its pod.
    pub(super) pod: String,
    /// Pending, Starting or Draining.
    pub(super) state: String,
    /// Since when, RFC 3339.
    pub(super) since: String,
    /// Message of the cluster about it.
    pub(super) why: Option<String>,
}

/// A condition that needs attention.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Trouble {
    /// The condition.
    pub(super) kind: String,
    /// Why, in a word of the closed list.
    pub(super) reason: String,
    /// In a sentence.
    pub(super) message: String,
}

impl Why {
    /// As the status of the model says.
    pub(super) fn of(model: &ModelService, now: jiff::Timestamp) -> Why {
        let status: ModelServiceStatus = model.status.clone().unwrap_or_default();
        let asked_at = now.to_string();
        Why {
            model: full_name(model),
            mode: mode(model),
            asked_at,
            wants: status.recommended_replicas,
            ready: status.ready_replicas,
            bounds: Some(bounds(model, now)),
            forecast: status.forecast.clone(),
            hourly_cost: status.hourly_cost.clone(),
            recommended_hourly_cost: status.recommended_hourly_cost.clone(),
            currency: status.currency.clone(),
            attainment_percent: status.attainment_percent.clone(),
            wanted_percent: Some(model.spec.objectives.attainment_percent.clone()),
            troubles: troubles(&status),
            variants: status.variants,
            decision: status.decision,
            ..Why::default()
        }
    }

    /// As the operator remembers a decision.
    pub(super) fn then(entry: &Entry, now: jiff::Timestamp) -> Why {
        Why {
            model: entry.model.clone(),
            mode: entry.mode.clone(),
            asked_at: now.to_string(),
            past: true,
            wants: entry.to,
            ready: entry.ready,
            decision: Some(entry.receipt.clone()),
            ..Why::default()
        }
    }

    /// Whether there are replicas that do not serve, as far as the status knows.
    pub(super) fn is_in_motion(&self) -> bool {
        let moving = |one: &VariantStatus| one.pending + one.starting + one.draining > 0;
        self.variants.iter().any(moving)
    }
}

fn mode(model: &ModelService) -> String {
    match model.spec.scaling.mode {
        ScalingMode::Act => "Act".to_owned(),
        ScalingMode::Recommend => "Recommend".to_owned(),
    }
}

fn bounds(model: &ModelService, now: jiff::Timestamp) -> Bounds {
    let scaling = &model.spec.scaling;
    let frozen = model.is_frozen(now);
    let note = |name: &str| model.annotations().get(name).cloned().filter(|_| frozen);
    Bounds {
        min: scaling.min,
        max: scaling.max,
        may_sleep: scaling.sleep == Sleep::WhenIdle,
        pinned: model.spec.replicas,
        frozen_until: note(labels::FROZEN_UNTIL),
        frozen_because: note(labels::FROZEN_BECAUSE),
    }
}

/// Conditions that are false, unknown ones that say that signals are, and what stalls.
fn troubles(status: &ModelServiceStatus) -> Vec<Trouble> {
    let wrong = status.conditions.iter().filter(|one| match one.type_.as_str() {
        "Reconciling" | "Ready" => false,
        "Stalled" => one.status == "True",
        _ => one.status == "False",
    });
    wrong
        .map(|one| Trouble {
            kind: one.type_.clone(),
            reason: one.reason.clone(),
            message: one.message.clone(),
        })
        .collect()
}
