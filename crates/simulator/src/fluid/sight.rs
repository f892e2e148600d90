//! What a policy sees of a fluid world: a snapshot as the operator would take it, and readings.

use super::fleet::Fleet;
use super::pool::Accelerators;
use super::queue::Queue;
use super::{Model, World};
use crate::cold_start::ColdStart;
use crate::policy::{Reading, Sight};
use crate::seconds::Seconds;
use flyball_core::ids::{ModelId, PoolId, ReplicaId, RunId, VariantName};
use flyball_core::interval::{Interval, Origin};
use flyball_core::snapshot::{
    Capacity, Demand, Misses, Mode, Objectives, Observed, Pool, Purchase, Replica, ReplicaState,
    Snapshot, Sources, TrainingRun, Variant,
};
use flyball_core::units::{Gpus, Micros, Requests, Timestamp, Tokens, TokensPerSecond};
use std::collections::{BTreeMap, BTreeSet};

/// The picture that is kept up to date and shown.
pub(super) struct View {
    start: Timestamp,
    snapshot: Snapshot,
    pool: PoolId,
    pub(super) models: Vec<ModelView>,
    readings: Vec<Reading>,
}

/// The part of the picture that shows one model; put into the snapshot when it is shown.
#[derive(Clone, Debug)]
pub(super) struct ModelView {
    id: ModelId,
    start: Timestamp,
    replicas: BTreeMap<ReplicaId, Replica>,
    demand: Demand,
    misses: Observed<Misses>,
    /// Requests and misses since the start.
    counted: (f64, f64),
    reading: Reading,
}

impl View {
    pub(super) fn new<'a>(world: &World, fleets: impl Iterator<Item = &'a Fleet>) -> Self {
        let pool: PoolId = "pool".parse().expect("a word is a name");
        let mut snapshot = Snapshot::empty(world.start, 0);
        let kind = "gpu".parse().expect("a word is a name");
        let prices = world.price.map(|price| (Purchase::OnDemand, price)).into_iter().collect();
        let shared = world.pool.as_ref();
        let fixed = shared.is_some_and(|pool| pool.fixed.is_some());
        snapshot.pools.insert(
            pool.clone(),
            Pool {
                accelerator: kind,
                allocatable: BTreeMap::new(),
                held_by_others: Gpus::ZERO,
                shares: BTreeMap::new(),
                can_grow: !fixed,
                supply: shared.filter(|_| !fixed).and_then(|_| stated(&world.cold_start)),
                limit: None,
                prices,
            },
        );
        if shared.is_some_and(|pool| pool.training.is_some()) {
            snapshot.runs.insert(
                RunId::new("training", "borrower").expect("words are names"),
                TrainingRun {
                    pool: pool.clone(),
                    gpus: Gpus::ZERO,
                    least: Gpus::ZERO,
                    most: Gpus::MAX,
                    value: None,
                    deadline: None,
                    last_saved: Observed::Missing,
                },
            );
        }
        for model in &world.models {
            snapshot.models.insert(model.id.clone(), described(model, &pool, world));
        }
        let models = world.models.iter().zip(fleets);
        let models =
            models.map(|(model, fleet)| ModelView::new(model, fleet, world.start)).collect();
        Self { start: world.start, snapshot, pool, models, readings: Vec::new() }
    }

    /// Shows the picture to somebody.
    pub(super) fn show<T>(
        &mut self,
        now: Seconds,
        slots: &Accelerators,
        look: impl FnOnce(Sight<'_>) -> T,
    ) -> T {
        let at = now.after(self.start);
        self.snapshot.taken_at = at;
        if let Some(pool) = self.snapshot.pools.get_mut(&self.pool) {
            let gpus = self.snapshot.models.values().flat_map(|model| model.variants.values());
            let each = gpus.map(|variant| variant.gpus_per_replica.get()).max().unwrap_or(1);
            let value = Gpus::new(slots.total() * each);
            pool.allocatable.insert(Purchase::OnDemand, Observed::Fresh { value, at });
            for run in self.snapshot.runs.values_mut() {
                run.gpus = Gpus::new(slots.lent() * each);
            }
        }
        self.swap_in();
        let answer = look(Sight { now, snapshot: &self.snapshot, readings: &self.readings });
        self.swap_in();
        answer
    }

    /// Exchanges replicas and demand between the views and the snapshot: moving them in for the
    /// time of one decision and out again is cheaper than keeping two copies.
    fn swap_in(&mut self) {
        self.readings.clear();
        for view in &mut self.models {
            self.readings.push(view.reading);
            let Some(model) = self.snapshot.models.get_mut(&view.id) else { continue };
            std::mem::swap(&mut model.demand, &mut view.demand);
            std::mem::swap(&mut model.misses, &mut view.misses);
            if let Some(variant) = model.variants.values_mut().next() {
                std::mem::swap(&mut variant.replicas, &mut view.replicas);
            }
        }
    }
}

impl ModelView {
    fn new(model: &Model, fleet: &Fleet, start: Timestamp) -> Self {
        let mut view = Self {
            id: model.id.clone(),
            start,
            replicas: BTreeMap::new(),
            demand: Demand::UNKNOWN,
            misses: Observed::Missing,
            counted: (0.0, 0.0),
            reading: Reading::default(),
        };
        for (id, state) in fleet.members() {
            view.join(id, state, Seconds::ZERO);
        }
        view
    }

    pub(super) fn namespace(&self) -> &str {
        self.id.namespace().as_str()
    }

    pub(super) fn join(&mut self, id: &ReplicaId, state: ReplicaState, now: Seconds) {
        let at = now.after(self.start);
        let replica = Replica {
            state,
            since: at,
            in_flight: Observed::Fresh { value: Requests::ZERO, at },
            nodes: BTreeSet::new(),
            purchase: Some(Purchase::OnDemand),
        };
        self.replicas.insert(id.clone(), replica);
    }

    pub(super) fn change(&mut self, id: &ReplicaId, state: ReplicaState, now: Seconds) {
        if let Some(replica) = self.replicas.get_mut(id) {
            replica.state = state;
            replica.since = now.after(self.start);
        }
    }

    /// It has finished all its requests.
    pub(super) fn drained(&mut self, id: &ReplicaId, now: Seconds) {
        let at = now.after(self.start);
        if let Some(replica) = self.replicas.get_mut(id) {
            replica.in_flight = Observed::Fresh { value: Requests::ZERO, at };
        }
    }

    pub(super) fn leave(&mut self, id: &ReplicaId) {
        self.replicas.remove(id);
    }

    /// Scrapes what happened since the last time.
    pub(super) fn scrape(&mut self, model: &Model, queue: &mut Queue, fleet: &Fleet, now: Seconds) {
        let since = queue.scrape();
        self.reading = Reading {
            at: now,
            ready: fleet.ready(),
            starting: fleet.starting(),
            draining: fleet.draining(),
            ..Reading::default()
        };
        self.counted.0 += since.requests;
        self.counted.1 += since.missed;
        if since.blind || since.seconds <= 0.0 {
            self.demand = Demand::UNKNOWN;
            self.misses = Observed::Missing;
            return;
        }
        let rate = |sum: f64| sum / since.seconds;
        let (prompt, output) = model.tokens;
        let running = rate(since.done) * model.service.get();
        let capacity = f64::from(fleet.ready()) * model.per_replica;
        let busy = if capacity > 0.0 { (rate(since.done) / capacity).min(1.0) } else { 0.0 };
        let reading = &mut self.reading;
        reading.arrivals_per_second = Some(rate(since.requests));
        reading.prompt_tokens_per_second = Some(rate(since.work) * prompt);
        reading.output_tokens_per_second = Some(rate(since.done) * output);
        reading.waiting = Some(queue.waiting());
        reading.waiting_tokens = Some(queue.waiting() * prompt);
        reading.running = Some(running);
        reading.cache_used = (fleet.ready() > 0).then_some(busy);
        reading.first_token_p90 = Some(model.first_token + Seconds(since.wait));
        reading.between_tokens_p90 = Some(between_tokens(model, busy));
        let at = now.after(self.start);
        self.demand = Demand {
            prefill: seen(TokensPerSecond::from_sample(rate(since.work) * prompt), at),
            decode: seen(TokensPerSecond::from_sample(rate(since.done) * output), at),
            resident: seen(Tokens::from_sample(running * (prompt + output / 2.0)), at),
            backlog: seen(Tokens::from_sample(queue.waiting() * prompt), at),
            sources: Sources::default(),
        };
        let (requests, missed) = self.counted;
        let counted = Requests::from_sample(requests).zip(Requests::from_sample(missed));
        self.misses = seen(counted.map(|(requests, missed)| Misses { requests, missed }), at);
        let each = if fleet.ready() > 0 { running / f64::from(fleet.ready()) } else { 0.0 };
        let busy = seen(Requests::from_sample(each), at);
        for replica in self.replicas.values_mut() {
            if replica.state == ReplicaState::Ready {
                replica.in_flight = busy;
            }
        }
    }
}

/// A step takes two fifths of the objective when a replica is idle and all of it at capacity, with
/// a straight line between: a batch's step time grows linearly with its requests, and a capacity
/// is chosen so that the objective is just met there.
fn between_tokens(model: &Model, busy: f64) -> Seconds {
    model.between_tokens_objective * (0.4 + 0.6 * busy)
}

fn seen<T>(value: Option<T>, at: Timestamp) -> Observed<T> {
    value.map_or(Observed::Missing, |value| Observed::Fresh { value, at })
}

/// A cold start as people state it.
fn stated(cold_start: &ColdStart) -> Option<Interval<Micros>> {
    let quantile = |share| cold_start.quantile(share).to_micros();
    Interval::new(quantile(0.05), quantile(0.5), quantile(0.95), Origin::Measured).ok()
}

fn described(model: &Model, pool: &PoolId, world: &World) -> flyball_core::snapshot::Model {
    let (prompt, output) = model.tokens;
    let rate = |tokens: f64| {
        let value = TokensPerSecond::new((model.per_replica * tokens).round() as u64);
        Interval::exact(value, Origin::Measured).ok()
    };
    let resident = model.per_replica * model.service.get() * (prompt + output / 2.0);
    let resident = Interval::exact(Tokens::new(resident.round() as u64), Origin::Measured).ok();
    // Where accelerators are shared, a replica that finds one only has to be swapped in.
    let cold_start = match &world.pool {
        Some(pool) => Interval::exact(pool.swap.to_micros(), Origin::Measured).ok(),
        None => stated(&world.cold_start),
    };
    let variant = Variant {
        pool: pool.clone(),
        gpus_per_replica: model.gpus,
        capacity: Capacity { prefill: rate(prompt), decode: rate(output), resident },
        cold_start,
        replicas: BTreeMap::new(),
    };
    let name = VariantName::new("only").expect("a word is a name");
    flyball_core::snapshot::Model {
        mode: Mode::Act,
        pinned: None,
        frozen: false,
        blocked: false,
        bounds: model.bounds,
        objectives: Objectives {
            first_token: Some(model.first_token_objective.to_micros()),
            between_tokens: Some(model.between_tokens_objective.to_micros()),
            attainment_per_million: model.attainment_per_million,
        },
        demand: Demand::UNKNOWN,
        misses: Observed::Missing,
        variants: [(name, variant)].into(),
    }
}
