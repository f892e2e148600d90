//! The operator's page of metrics. An HPA or KEDA can act on `flyball_model_recommended_replicas` without
//! giving us any permission to write.
//!
//! Every operator of several shows what it sees; who asks takes the `max` over them. [`Board`] is what is
//! shown, `model` has the numbers of models, `runs` has those of training
//! runs, `rounds` counts how long rounds took.

mod model;
mod rounds;
mod runs;

use super::pools::SeenPool;
use super::tenants::BudgetShare;
use crate::lead::Fence;
use flyball_core::decision::ModelDecision;
use flyball_core::ids::ModelId;
use flyball_core::reason::Reason;
use flyball_core::snapshot::Snapshot;
use flyball_core::units::Timestamp;
use flyball_resources::model_service::ModelServiceStatus;
use flyball_telemetry::metrics::{Metric, MetricsSource, Page};
use model::Point;
use rounds::Rounds;
pub use runs::ShownRun;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What is shown.
#[derive(Debug, Default)]
pub struct Board {
    shown: Mutex<Shown>,
    fence: Fence,
}

/// What is shown, as of the last decision.
#[derive(Clone, Debug)]
pub struct Shown {
    /// When that was.
    pub decided_at: Option<Timestamp>,
    /// When each input was last heard.
    last_input_at: BTreeMap<&'static str, Timestamp>,
    /// Whether a person froze everything.
    pub frozen: bool,
    /// Pools as they are seen.
    pub pools: Arc<Vec<SeenPool>>,
    /// Budgets of Tenants as the bank knows them.
    pub budgets: Arc<Vec<BudgetShare>>,
    /// Training runs as they are seen.
    pub runs: Arc<Vec<ShownRun>>,
    /// How long observing them, deciding and writing took.
    pub runs_took: Option<[Duration; 3]>,
    /// Decisions so far that were not like the one before, by reason.
    decisions: Counts,
    /// Writes so far, by kind.
    writes: Counts,
    /// Watches that broke so far.
    pub watch_failures: u64,
    /// Connected gateways.
    pub gateways: usize,
    /// Gateways that are known and told nothing lately.
    pub silent_gateways: usize,
    /// Configured interval between reconciles.
    pub tick_seconds: f64,
    errors: BTreeMap<[&'static str; 2], u64>,
    rounds: Rounds,
    took_seconds: [f64; 3],
    models: Arc<Numbers>,
    published: Arc<Numbers>,
}

/// Counts by a word.
type Counts = BTreeMap<&'static str, u64>;

/// Numbers about each model.
type Numbers = BTreeMap<ModelId, Vec<Point>>;

/// Kinds of writes.
const WRITES: [&str; 15] = [
    "admission",
    "check",
    "cost",
    "drain",
    "object",
    "pool",
    "priority",
    "protect",
    "replace",
    "run",
    "save",
    "scale",
    "status",
    "undrain",
    "unprotect",
];

/// Errors that are possible, by step.
const ERRORS: [[&str; 2]; 10] = [
    ["apply", "unreachable"],
    ["apply", "forbidden"],
    ["apply", "conflict"],
    ["apply", "not-leading"],
    ["apply", "refused"],
    ["observe", "unreachable"],
    ["report", "unreachable"],
    ["report", "conflict"],
    ["report", "not-leading"],
    ["report", "refused"],
];

impl Default for Shown {
    /// A series must exist before its first count, or the step from nothing to one is not seen as an
    /// increase.
    fn default() -> Self {
        Self {
            decided_at: None,
            last_input_at: BTreeMap::new(),
            frozen: false,
            pools: Arc::default(),
            budgets: Arc::default(),
            runs: Arc::default(),
            runs_took: None,
            decisions: Reason::ALL.iter().map(|reason| (reason.name(), 0)).collect(),
            writes: WRITES.into_iter().map(|kind| (kind, 0)).collect(),
            watch_failures: 0,
            gateways: 0,
            silent_gateways: 0,
            tick_seconds: 0.0,
            errors: ERRORS.into_iter().map(|error| (error, 0)).collect(),
            rounds: Rounds::default(),
            took_seconds: [0.0; 3],
            models: Arc::default(),
            published: Arc::default(),
        }
    }
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
    /// Shows a picture and what was decided on it. `attained` says how many requests of a million met
    /// the objectives.
    pub fn show(
        &mut self,
        snapshot: &Snapshot,
        decisions: &[ModelDecision],
        attained: impl Fn(&ModelId) -> Option<u32>,
    ) {
        self.decided_at = Some(snapshot.taken_at);
        let points = |one: &ModelDecision| {
            let points = model::points(snapshot, one, attained(&one.model))?;
            Some((one.model.clone(), points))
        };
        self.models = Arc::new(decisions.iter().filter_map(points).collect());
    }

    /// Shows what is said about models, and nothing of others.
    pub fn publish<'a>(
        &mut self,
        all: impl Iterator<Item = (&'a ModelId, &'a ModelServiceStatus)>,
    ) {
        self.published = Arc::new(
            all.map(|(id, status)| (id.clone(), model::points_of_status(status))).collect(),
        );
    }

    /// Shows nothing that only the operator knows which leads: gateways talk to that one, and another that
    /// hears none of them would seem to have lost its signals.
    pub fn stand_by(&mut self) {
        self.published = Arc::default();
        for points in Arc::make_mut(&mut self.models).values_mut() {
            points.retain(|point| {
                !matches!(point.metric, Metric::ModelSignals | Metric::ModelSignalAge)
            });
        }
    }

    /// Notes when an input was heard.
    pub fn note_input(&mut self, input: &'static str, at: Timestamp) {
        self.last_input_at.insert(input, at);
    }

    /// Counts a decision that was not like the one before.
    pub fn decided(&mut self, reason: &'static str) {
        *self.decisions.entry(reason).or_default() += 1;
    }

    /// Counts a write.
    pub fn wrote(&mut self, kind: &'static str) {
        *self.writes.entry(kind).or_default() += 1;
    }

    /// Counts an error of a step.
    pub fn failed(&mut self, step: &'static str, error: &'static str) {
        *self.errors.entry([step, error]).or_default() += 1;
    }

    /// Notes how many seconds looking, deciding and writing took.
    pub fn took(&mut self, seconds: [f64; 3]) {
        self.took_seconds = seconds;
        self.rounds.add(seconds.iter().sum());
    }
}

impl MetricsSource for Board {
    fn write(&self, page: &mut Page<'_>) -> fmt::Result {
        let Ok(shown) = self.shown.lock().map(|shown| shown.clone()) else { return Ok(()) };
        shown.write_models(page)?;
        shown.write_pools(page)?;
        shown.write_budgets(page)?;
        let leads = self.leads();
        runs::write(&shown, leads, page)?;
        let leads = f64::from(u8::from(leads));
        page.gauge(Metric::OperatorLeads, [(NONE, leads)])?;
        shown.write_itself(page)
    }
}

const NONE: [&str; 0] = [];

impl Shown {
    fn write_models(&self, page: &mut Page<'_>) -> fmt::Result {
        let of_models =
            |metric: &&Metric| metric.labels().starts_with(&["target_namespace", "model"]);
        for metric in Metric::ALL.iter().filter(of_models) {
            let numbers = self.models.iter().chain(self.published.iter());
            let series = numbers.flat_map(|(id, points)| {
                let points = points.iter().filter(|point| point.metric == *metric);
                points.map(move |point| (point.labels(id), point.value))
            });
            page.gauge(*metric, series)?;
        }
        Ok(())
    }

    fn write_pools(&self, page: &mut Page<'_>) -> fmt::Result {
        let gpus = self.pools.iter().flat_map(|pool| {
            let kinds = [
                ("schedulable", pool.status.gpus),
                ("used", pool.status.used),
                ("others", pool.status.used_by_others),
                ("limit", pool.limit),
                ("lent", pool.status.lending.as_ref().map(|lending| lending.lent_gpus)),
            ];
            let known = kinds.into_iter().filter_map(|(kind, count)| Some((kind, count?)));
            known.map(|(kind, count)| ([pool.name.as_str(), kind], f64::from(count)))
        });
        page.gauge(Metric::PoolGpus, gpus)?;
        let costs = self.pools.iter().filter_map(|pool| Some(([pool.name.as_str()], pool.cost?)));
        page.gauge(Metric::PoolHourlyCost, costs)?;
        let lending =
            || self.pools.iter().filter_map(|pool| Some((pool, pool.status.lending.as_ref()?)));
        let promises = lending().filter_map(|(pool, lending)| {
            Some(([pool.name.as_str()], lending.promise_seconds? as f64))
        });
        page.gauge(Metric::PoolTakeBackPromise, promises)?;
        let take_backs = lending().flat_map(|(pool, lending)| {
            let late = u64::try_from(lending.late_take_backs).unwrap_or(0);
            let all = u64::try_from(lending.take_backs).unwrap_or(0);
            let results = [("in-time", all.saturating_sub(late)), ("late", late)];
            results.map(|(result, count)| ([pool.name.as_str(), result], count))
        });
        page.counter(Metric::PoolTakeBacks, take_backs)
    }

    fn write_budgets(&self, page: &mut Page<'_>) -> fmt::Result {
        let of = |one: &'_ BudgetShare| [one.tenant.clone(), one.budget.clone()];
        let spent = self.budgets.iter().map(|one| (of(one), one.spent));
        page.gauge(Metric::TenantBudgetSpent, spent)?;
        let ends =
            self.budgets.iter().filter_map(|one| Some((of(one), one.empty_at?.as_seconds())));
        page.gauge(Metric::TenantBudgetEnds, ends)
    }

    fn write_itself(&self, page: &mut Page<'_>) -> fmt::Result {
        page.gauge(Metric::OperatorDecidedAt, self.decided_at.map(|at| (NONE, at.as_seconds())))?;
        let inputs = self.last_input_at.iter().map(|(input, at)| ([*input], at.as_seconds()));
        page.gauge(Metric::OperatorLastInputAt, inputs)?;
        page.gauge(Metric::OperatorFrozen, [(NONE, f64::from(u8::from(self.frozen)))])?;
        page.gauge(Metric::OperatorGateways, [(NONE, self.gateways as f64)])?;
        page.gauge(Metric::OperatorSilentGateways, [(NONE, self.silent_gateways as f64)])?;
        page.gauge(Metric::OperatorTick, [(NONE, self.tick_seconds)])?;
        page.histogram(Metric::OperatorRound, [(NONE, self.rounds.sizes())])?;
        let steps = ["observe", "decide", "apply"].into_iter().zip(self.took_seconds);
        page.gauge(Metric::OperatorStepSeconds, steps.map(|(step, took)| ([step], took)))?;
        let counts = |counts: &Counts| {
            counts.iter().map(|(kind, count)| ([*kind], *count)).collect::<Vec<_>>()
        };
        page.counter(Metric::OperatorDecisions, counts(&self.decisions))?;
        page.counter(Metric::OperatorErrors, self.errors.iter().map(|(at, count)| (*at, *count)))?;
        page.counter(Metric::OperatorWrites, counts(&self.writes))?;
        page.counter(Metric::OperatorWatchFailures, [(NONE, self.watch_failures)])
    }
}
