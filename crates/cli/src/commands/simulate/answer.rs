//! What `flyball simulate` answers, as `-o json` prints it.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::backtest::answer::{ModelView, PolicyView};
use super::backtest::board::Board;
use super::backtest::clock::Clock;

/// Result of a scenario under each policy.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Simulation {
    pub(super) scenario: String,
    /// Summary in a sentence.
    pub(super) about: String,
    /// Random seed.
    pub(super) seed: u64,
    /// Length of the scored part.
    pub(super) span_seconds: f64,
    /// Share of requests that may miss, of the strictest model.
    pub(super) allowed_missed: f64,
    pub(super) models: Vec<ModelView>,
    /// In the requested order. The first is checked against the expectations.
    pub(super) policies: Vec<SimulatedView>,
    /// Whether people are shown every minute.
    #[serde(skip)]
    pub(super) minutes: bool,
    /// How long it took. Not in the document, which is the same for the same seed.
    #[serde(skip)]
    pub(super) took: Duration,
    /// File and size of the page that was written.
    #[serde(skip)]
    pub(super) page: Option<(String, usize)>,
    #[serde(skip)]
    pub(super) clock: Clock,
}

/// Result of the scenario under one policy.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SimulatedView {
    #[serde(flatten)]
    pub(super) came: PolicyView,
    /// Replicas over time, from request to end.
    pub(super) replica_hours: f64,
    /// Bytes of `status.learnt` handed to the next process, if one was replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) learnt_bytes: Option<usize>,
    /// Expectations of the scenario and their results.
    pub(super) expectations: Vec<ExpectationView>,
    /// Violated invariants. Each is a bug.
    pub(super) broken: Vec<String>,
    /// Settings in a policy file that have no effect here.
    pub(super) notes: Vec<String>,
}

/// One expectation and its result.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExpectationView {
    /// What was measured, as the scenario calls it.
    pub(super) what: String,
    pub(super) value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) min: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max: Option<f64>,
    /// Whether the value lies in its range.
    pub(super) holds: bool,
    /// Where the expectation comes from.
    pub(super) origin: String,
}

impl Simulation {
    /// What is drawn of it.
    pub(super) fn board(&self) -> Board<'_> {
        Board {
            models: &self.models,
            policies: self.policies.iter().map(|policy| &policy.came).collect(),
            hull: &[],
            clock: self.clock,
            span_seconds: self.span_seconds,
            allowed_missed: self.allowed_missed,
        }
    }
}
