//! The operator's page of metrics. An HPA or KEDA can act on `flyball_model_recommended_replicas` without
//! giving us any permission to write.

use super::status::hourly_cost;
use crate::lead::Fence;
use flyball_core::decision::ModelDecision;
use flyball_core::ids::ModelId;
use flyball_core::snapshot::{Freshness, ReplicaState, Snapshot};
use flyball_core::units::Timestamp;
use flyball_telemetry::metrics::{Metric, Page, Source};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::time::Instant;

/// What is shown.
#[derive(Debug, Default)]
pub struct Board {
    shown: Mutex<Shown>,
    fence: Fence,
}

/// What is shown, as of the last decision.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// When that was.
    pub decided_at: Option<Timestamp>,
    /// Each model.
    models: BTreeMap<ModelId, ShownModel>,
    /// Decisions so far that were not like the one before, by reason.
    pub decisions: BTreeMap<&'static str, u64>,
    /// Errors so far, by step.
    pub errors: BTreeMap<&'static str, u64>,
    /// Writes so far, by kind.
    pub writes: BTreeMap<&'static str, u64>,
    /// Seconds that the last look, decision and writing took.
    pub took_seconds: [f64; 3],
    /// Gateways that are connected.
    pub gateways: usize,
}

#[derive(Clone, Debug, Default)]
struct ShownModel {
    replicas: Vec<(&'static str, f64)>,
    recommended: f64,
    need: Option<(f64, f64)>,
    reason: &'static str,
    cost: Option<f64>,
    signals: Vec<(&'static str, f64)>,
}

impl Board {
    /// Of an operator behind this fence.
    pub fn new(fence: Fence) -> Self {
        Self { fence, ..Self::default() }
    }

    /// Whether this operator leads, at this moment: a turn of the loop may hang for longer than a lease
    /// lasts.
    pub fn leads(&self) -> bool {
        self.fence.may_write(Instant::now())
    }

    /// Changes what is shown.
    pub fn change(&self, change: impl FnOnce(&mut Shown)) {
        if let Ok(mut shown) = self.shown.lock() {
            change(&mut shown);
        }
    }
}

impl Shown {
    /// Shows a picture and what was decided on it.
    pub fn show(&mut self, snapshot: &Snapshot, decisions: &[ModelDecision]) {
        self.decided_at = Some(snapshot.taken_at);
        self.models = decisions.iter().filter_map(|one| shown(snapshot, one)).collect();
    }

    /// Counts one of a kind.
    pub fn count(counts: &mut BTreeMap<&'static str, u64>, kind: &'static str) {
        *counts.entry(kind).or_default() += 1;
    }
}

fn shown(snapshot: &Snapshot, decided: &ModelDecision) -> Option<(ModelId, ShownModel)> {
    let model = snapshot.models.get(&decided.model)?;
    let states = ReplicaState::ALL.iter().map(|state| {
        let count: u32 = model.variants.values().map(|one| one.count(*state).get()).sum();
        (state.name(), f64::from(count))
    });
    let recommended: u32 = decided.targets.iter().map(|target| target.replicas.get()).sum();
    let milli = |value: u64| value as f64 / 1e3;
    let age = |freshness| match freshness {
        Freshness::Fresh => 0.0,
        Freshness::Stale => 1.0,
        Freshness::Missing => 2.0,
    };
    let signals = decided.receipt.signals.iter();
    Some((
        decided.model.clone(),
        ShownModel {
            replicas: states.collect(),
            recommended: f64::from(recommended),
            need: decided
                .receipt
                .work
                .map(|work| (milli(work.need_now.get()), milli(work.look_ahead.get()))),
            reason: decided.reason.name(),
            cost: hourly_cost(snapshot, model).map(|money| money.micros() as f64 / 1e6),
            signals: signals.map(|(signal, fresh)| (signal.name(), age(*fresh))).collect(),
        },
    ))
}

impl Source for Board {
    fn write(&self, page: &mut Page<'_>) -> fmt::Result {
        let Ok(shown) = self.shown.lock().map(|shown| shown.clone()) else { return Ok(()) };
        shown.write_models(page)?;
        let seconds = shown.decided_at.map(|at| at.as_micros() as f64 / 1e6);
        page.gauge(Metric::OperatorDecidedAt, seconds.map(|at| (NONE, at)))?;
        page.gauge(Metric::OperatorLeads, [(NONE, f64::from(u8::from(self.leads())))])?;
        page.gauge(Metric::OperatorGateways, [(NONE, shown.gateways as f64)])?;
        let steps = ["observe", "decide", "apply"].into_iter().zip(shown.took_seconds);
        page.gauge(Metric::OperatorStepSeconds, steps.map(|(step, took)| ([step], took)))?;
        let counts = |counts: &BTreeMap<&'static str, u64>| {
            counts.iter().map(|(kind, count)| ([*kind], *count)).collect::<Vec<_>>()
        };
        page.counter(Metric::OperatorDecisions, counts(&shown.decisions))?;
        page.counter(Metric::OperatorErrors, counts(&shown.errors))?;
        page.counter(Metric::OperatorWrites, counts(&shown.writes))
    }
}

const NONE: [&str; 0] = [];

impl Shown {
    fn write_models(&self, page: &mut Page<'_>) -> fmt::Result {
        let each =
            || self.models.iter().map(|(id, model)| (id.namespace().as_str(), id.name(), model));
        page.gauge(
            Metric::ModelReplicas,
            each().flat_map(|(namespace, name, model)| {
                model.replicas.iter().map(move |(state, count)| ([namespace, name, *state], *count))
            }),
        )?;
        page.gauge(
            Metric::ModelRecommended,
            each().map(|(namespace, name, model)| ([namespace, name], model.recommended)),
        )?;
        page.gauge(
            Metric::ModelNeed,
            each().flat_map(|(namespace, name, model)| {
                let kinds = model.need.map(|(now, ahead)| [("now", now), ("ahead", ahead)]);
                kinds.into_iter().flatten().map(move |(kind, need)| ([namespace, name, kind], need))
            }),
        )?;
        page.gauge(
            Metric::ModelReason,
            each().map(|(namespace, name, model)| ([namespace, name, model.reason], 1.0)),
        )?;
        page.gauge(
            Metric::ModelHourlyCost,
            each().filter_map(|(namespace, name, model)| Some(([namespace, name], model.cost?))),
        )?;
        page.gauge(
            Metric::ModelSignals,
            each().flat_map(|(namespace, name, model)| {
                model.signals.iter().map(move |(signal, age)| ([namespace, name, *signal], *age))
            }),
        )
    }
}
