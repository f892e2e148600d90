//! What is shown of a model: its numbers in the picture, and what is said about it.

use crate::report::status::hourly_cost;
use flyball_core::decision::ModelDecision;
use flyball_core::ids::{ModelId, VariantName};
use flyball_core::interval::Interval;
use flyball_core::reason::Reason;
use flyball_core::snapshot::{Freshness, Model, ReplicaState, Snapshot, Variant};
use flyball_core::units::{Money, Timestamp};
use flyball_resources::conditions::ConditionKind;
use flyball_resources::model_service::ModelServiceStatus;
use flyball_telemetry::metrics::Metric;

/// One number. Small, because 10,000 models have 400,000 of them.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub(super) metric: Metric,
    variant: Option<VariantName>,
    /// Values of the labels after the model and the variant; as many as the metric has.
    words: [&'static str; 2],
    pub(super) value: f64,
}

impl Point {
    /// The values of its labels, in the metric's order.
    pub(super) fn labels<'a>(&'a self, id: &'a ModelId) -> Vec<&'a str> {
        let variant = self.variant.as_ref().map(VariantName::as_str);
        let first = [id.namespace().as_str(), id.name()].into_iter().chain(variant);
        first.chain(self.words).take(self.metric.labels().len()).collect()
    }
}

/// Collects numbers.
#[derive(Default)]
struct Points(Vec<Point>);

impl Points {
    fn add(&mut self, metric: Metric, words: &[&'static str], value: f64) {
        self.of_variant(metric, None, words, value);
    }

    fn of_variant(
        &mut self,
        metric: Metric,
        variant: Option<&VariantName>,
        words: &[&'static str],
        value: f64,
    ) {
        let word = |at: usize| words.get(at).copied().unwrap_or_default();
        let words = [word(0), word(1)];
        self.0.push(Point { metric, variant: variant.cloned(), words, value });
    }

    fn maybe(&mut self, metric: Metric, words: &[&'static str], value: Option<f64>) {
        if let Some(value) = value {
            self.add(metric, words, value);
        }
    }
}

/// The numbers of a model that was decided about.
pub(super) fn points(
    snapshot: &Snapshot,
    decided: &ModelDecision,
    attained_per_million: Option<u32>,
) -> Option<Vec<Point>> {
    let model = snapshot.models.get(&decided.model)?;
    let mut points = Points::default();
    of_replicas(&mut points, snapshot.taken_at, model);
    of_decision(&mut points, decided);
    of_demand(&mut points, snapshot.taken_at, model);
    for (name, variant) in &model.variants {
        of_variant(&mut points, name, variant);
    }
    let million = |share: u32| f64::from(share) / 1e6;
    points.maybe(Metric::ModelAttainment, &["met"], attained_per_million.map(million));
    let required = million(model.objectives.attainment_per_million);
    points.add(Metric::ModelAttainment, &["objective"], required);
    points.maybe(Metric::ModelHourlyCost, &[], hourly_cost(snapshot, model).map(amount));
    Some(points.0)
}

/// What is said about a model, also about one that nothing can be decided about.
pub(super) fn points_of_status(status: &ModelServiceStatus) -> Vec<Point> {
    let mut points = Points::default();
    for condition in &status.conditions {
        let kind = ConditionKind::ALL.iter().find(|kind| kind.name() == condition.type_);
        let so = match condition.status.as_str() {
            "True" => Some(1.0),
            "False" => Some(0.0),
            _ => None,
        };
        if let Some(kind) = kind {
            points.maybe(Metric::ModelCondition, &[kind.name()], so);
        }
    }
    if status.decision.is_none() {
        points.add(Metric::ModelReason, &[Reason::SpecRefused.name()], 1.0);
    }
    points.0
}

fn of_replicas(points: &mut Points, now: Timestamp, model: &Model) {
    let all = || model.variants.values().flat_map(|variant| variant.replicas.values());
    for state in ReplicaState::ALL {
        let count = all().filter(|replica| replica.state == *state).count();
        points.add(Metric::ModelReplicas, &[state.name()], count as f64);
        let waits = *state != ReplicaState::Ready;
        let ages = all().filter(|replica| waits && replica.state == *state);
        let oldest = ages.filter_map(|replica| now.since(replica.since)).max();
        let oldest = oldest.map(|age| age.as_seconds());
        points.maybe(Metric::ModelOldestWait, &[state.name()], oldest);
    }
    let bounds = model.bounds;
    for (end, replicas) in [("min", bounds.min), ("max", bounds.max)] {
        points.add(Metric::ModelAllowed, &[end], f64::from(replicas.get()));
    }
}

fn of_decision(points: &mut Points, decided: &ModelDecision) {
    let sum = |of: fn(&flyball_core::decision::Target) -> u32| {
        f64::from(decided.targets.iter().map(of).sum::<u32>())
    };
    points.add(Metric::ModelRecommended, &[], sum(|target| target.replicas.get()));
    points.add(Metric::ModelUnconstrained, &[], sum(|target| target.unconstrained.get()));
    points.add(Metric::ModelReason, &[decided.reason.name()], 1.0);
    points.add(Metric::ModelBound, &[decided.bound.name()], 1.0);
    if let Some(work) = decided.receipt.work {
        for (kind, need) in [("now", work.need_now), ("ahead", work.look_ahead)] {
            points.add(Metric::ModelNeed, &[kind], need.get() as f64 / 1e3);
        }
    }
    let cost = decided.expected.hourly_cost.map(|cost| amount(cost.point()));
    points.maybe(Metric::ModelRecommendedCost, &[], cost);
    for (signal, freshness) in &decided.receipt.signals {
        let trust = match freshness {
            Freshness::Fresh => 0.0,
            Freshness::Stale => 1.0,
            Freshness::Missing => 2.0,
        };
        points.add(Metric::ModelSignals, &[signal.name()], trust);
    }
}

fn of_demand(points: &mut Points, now: Timestamp, model: &Model) {
    let demand = &model.demand;
    for (work, rate) in [("prefill", demand.prefill), ("decode", demand.decode)] {
        let rate = rate.last_seen().map(|rate| rate.get() as f64);
        points.maybe(Metric::ModelDemand, &[work], rate);
    }
    let backlog = demand.backlog.last_seen().map(|tokens| tokens.get() as f64);
    points.maybe(Metric::ModelBacklog, &[], backlog);
    let seen = [demand.prefill.at(), demand.decode.at(), demand.resident.at(), demand.backlog.at()];
    let oldest = seen.into_iter().flatten().min().and_then(|at| now.since(at));
    points.maybe(Metric::ModelSignalAge, &[], oldest.map(|age| age.as_seconds()));
}

fn of_variant(points: &mut Points, name: &VariantName, variant: &Variant) {
    fn ends<T: Copy>(span: &Interval<T>) -> [(&'static str, T); 3] {
        [("low", span.low()), ("point", span.point()), ("high", span.high())]
    }
    let capacity = &variant.capacity;
    for (work, rate) in [("prefill", capacity.prefill), ("decode", capacity.decode)] {
        for (end, rate) in rate.iter().flat_map(ends) {
            let rate = rate.get() as f64;
            points.of_variant(Metric::ModelCapacity, Some(name), &[work, end], rate);
        }
    }
    for (end, took) in variant.cold_start.iter().flat_map(ends) {
        let took = took.as_seconds();
        points.of_variant(Metric::ModelColdStart, Some(name), &[end], took);
    }
}

fn amount(money: Money) -> f64 {
    money.micros() as f64 / 1e6
}
