//! What a policy sees of a fluid world: a snapshot as the operator would take it, and readings.

use super::pool::Accelerators;
use super::queue::{Queue, Since};
use super::{FluidModel, FluidWorld};
use crate::cold_start::ColdStart;
use crate::policy::{PolicyView, Reading};
use crate::seconds::Seconds;
use flyball_core::ids::{ModelId, PoolId, ReplicaId, RunId, VariantName};
use flyball_core::interval::{Interval, Origin};
use flyball_core::snapshot::{
    Capacity, Mode, Objectives, Observed, Pool, Purchase, Replica, ReplicaState, TrainingRun,
};
use flyball_core::units::{Gpus, Micros, Requests, Timestamp, Tokens, TokensPerSecond};
use flyball_estimator::reading::{
    GatewayCounts, GatewayReading, ModelReading, Paces, VariantReading,
};
use flyball_estimator::{CounterWindow, Estimator, Readings};
use std::collections::{BTreeMap, BTreeSet};

/// What is read of the world, and the picture that it gives.
pub(super) struct View {
    start: Timestamp,
    estimator: Estimator,
    pool: PoolId,
    pools: BTreeMap<PoolId, Pool>,
    runs: BTreeMap<RunId, TrainingRun>,
    pub(super) models: Vec<ModelView>,
    readings: Vec<Reading>,
}

/// How many replicas of a model there are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) starting: u32,
    pub(super) ready: u32,
    pub(super) draining: u32,
}

/// What is read of one model.
#[derive(Clone, Debug)]
pub(super) struct ModelView {
    id: ModelId,
    start: Timestamp,
    /// What stays as it is; replicas are put in when it is shown.
    described: ModelReading,
    replicas: BTreeMap<ReplicaId, Replica>,
    /// Replicas that began to serve since the last look, and how long that took.
    started: Vec<(ReplicaId, Micros)>,
    requested_at: BTreeMap<ReplicaId, Seconds>,
    /// Not where accelerators are shared: there a start takes as long as the wait for one.
    starts_are_known: bool,
    gateway: Option<GatewayReading>,
    counted: Counted,
    reading: Reading,
}

/// Counts since the start. A flow has no whole requests, so that they are made whole when they are told.
#[derive(Clone, Debug)]
struct Counted {
    /// What was told lately.
    window: CounterWindow<GatewayCounts>,
    work: f64,
    done: f64,
    paced_seconds: f64,
    requests: f64,
    missed: f64,
}

impl View {
    /// With the replicas that each model has at first.
    pub(super) fn new<'a>(
        world: &FluidWorld,
        members: impl Iterator<Item = impl Iterator<Item = (&'a ReplicaId, ReplicaState)>>,
    ) -> Self {
        let pool: PoolId = "pool".parse().expect("a word is a name");
        let kind = "gpu".parse().expect("a word is a name");
        let prices = world.price.map(|price| (Purchase::OnDemand, price)).into_iter().collect();
        let shared = world.pool.as_ref();
        let fixed = shared.is_some_and(|pool| pool.fixed.is_some());
        let described = Pool {
            accelerator: kind,
            allocatable: BTreeMap::new(),
            held_by_others: Gpus::ZERO,
            shares: BTreeMap::new(),
            can_grow: !fixed,
            supply: shared.filter(|_| !fixed).and_then(|_| stated(&world.cold_start)),
            take_back: shared
                .and_then(|pool| pool.training.as_ref())
                .map(|training| training.take_back.to_micros()),
            limit: None,
            prices,
        };
        let mut runs = BTreeMap::new();
        let training = shared.and_then(|pool| pool.training.as_ref());
        if training.is_some_and(|training| training.runs.is_empty()) {
            runs.insert(
                RunId::new("training", "borrower").expect("words are names"),
                TrainingRun {
                    pool: pool.clone(),
                    acts: true,
                    gpus: Gpus::ZERO,
                    least: Gpus::ZERO,
                    most: Gpus::MAX,
                    value: None,
                    deadline: None,
                    last_saved: Observed::Missing,
                },
            );
        }
        let models = world.models.iter().zip(members);
        let models = models.map(|(model, there)| ModelView::new(model, there, &pool, world));
        let models = models.collect();
        Self {
            start: world.start,
            estimator: Estimator::default(),
            pools: [(pool.clone(), described)].into(),
            pool,
            runs,
            models,
            readings: Vec::new(),
        }
    }

    /// Shows the picture to somebody.
    pub(super) fn show<T>(
        &mut self,
        now: Seconds,
        slots: &Accelerators,
        with: impl FnOnce(PolicyView<'_>) -> T,
    ) -> T {
        let at = now.after(self.start);
        let each = self.models.iter().map(ModelView::gpus).max().unwrap_or(1);
        if let Some(pool) = self.pools.get_mut(&self.pool) {
            let value = Gpus::new(slots.total() * each);
            pool.allocatable.insert(Purchase::OnDemand, Observed::Fresh { value, at });
        }
        for run in self.runs.values_mut() {
            run.gpus = Gpus::new(slots.lent() * each);
        }
        for (id, needs, has) in slots.loans().each() {
            let [needs, has] = [needs, has].map(|slots| Gpus::new(slots * each));
            self.runs.insert(id.clone(), borrower(&self.pool, needs, has));
        }
        self.read();
        let models = self.models.iter_mut().map(|view| (view.id.clone(), view.read()));
        let (mut snapshot, _) = self.estimator.see(Readings {
            taken_at: at,
            shard: 0,
            max_age: MAX_AGE,
            models: models.collect(),
            pools: self.pools.clone(),
            runs: self.runs.clone(),
        });
        let answer = with(PolicyView { now, snapshot: &snapshot, readings: &self.readings });
        // Replicas are moved into the picture and back: copies of them would be most of the time.
        for view in &mut self.models {
            let model = snapshot.models.get_mut(&view.id);
            if let Some(variant) = model.and_then(|model| model.variants.values_mut().next()) {
                view.replicas = std::mem::take(&mut variant.replicas);
            }
        }
        answer
    }

    /// Shows readings alone.
    pub(super) fn read_out<T>(
        &mut self,
        now: Seconds,
        with: impl FnOnce(PolicyView<'_>) -> T,
    ) -> T {
        self.read();
        // Nobody learns from them how long starts take.
        self.models.iter_mut().for_each(|view| view.started.clear());
        let (snapshot, _) = Estimator::default().see(Readings {
            taken_at: now.after(self.start),
            shard: 0,
            max_age: MAX_AGE,
            models: BTreeMap::new(),
            pools: BTreeMap::new(),
            runs: BTreeMap::new(),
        });
        with(PolicyView { now, snapshot: &snapshot, readings: &self.readings })
    }

    fn read(&mut self) {
        self.readings.clear();
        self.readings.extend(self.models.iter().map(|view| view.reading));
    }
}

/// A run that borrows all that it needs, or nothing.
fn borrower(pool: &PoolId, needs: Gpus, has: Gpus) -> TrainingRun {
    TrainingRun {
        pool: pool.clone(),
        acts: true,
        gpus: has,
        least: needs,
        most: needs,
        value: None,
        deadline: None,
        last_saved: Observed::Missing,
    }
}

/// A scrape that is older than this is not fresh.
const MAX_AGE: Micros = Micros::from_seconds(60);

impl ModelView {
    fn new<'a>(
        model: &FluidModel,
        members: impl Iterator<Item = (&'a ReplicaId, ReplicaState)>,
        pool: &PoolId,
        world: &FluidWorld,
    ) -> Self {
        let mut view = Self {
            id: model.id.clone(),
            start: world.start,
            described: described(model, pool, world),
            replicas: BTreeMap::new(),
            started: Vec::new(),
            requested_at: BTreeMap::new(),
            starts_are_known: world.pool.is_none(),
            gateway: None,
            counted: Counted::default(),
            reading: Reading::default(),
        };
        for (id, state) in members {
            view.join(id, state, Seconds::ZERO);
        }
        view
    }

    fn gpus(&self) -> u32 {
        let variants = self.described.variants.values();
        variants.map(|variant| variant.gpus_per_replica.get()).max().unwrap_or(1)
    }

    fn read(&mut self) -> ModelReading {
        let mut reading = self.described.clone();
        reading.gateways.extend(self.gateway.clone());
        if let Some(variant) = reading.variants.values_mut().next() {
            variant.replicas = std::mem::take(&mut self.replicas);
            variant.started = std::mem::take(&mut self.started);
        }
        reading
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
        if state != ReplicaState::Ready && self.starts_are_known {
            self.requested_at.insert(id.clone(), now);
        }
    }

    pub(super) fn change(&mut self, id: &ReplicaId, state: ReplicaState, now: Seconds) {
        if let Some(replica) = self.replicas.get_mut(id) {
            replica.state = state;
            replica.since = now.after(self.start);
        }
        if state == ReplicaState::Ready
            && let Some(requested) = self.requested_at.remove(id)
        {
            self.started.push((id.clone(), (now - requested).to_micros()));
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
        self.requested_at.remove(id);
        self.replicas.remove(id);
    }

    /// Scrapes what happened since the last time, into what metrics say.
    pub(super) fn scrape(
        &mut self,
        model: &FluidModel,
        queue: &mut Queue,
        counts: Counts,
        now: Seconds,
    ) -> Since {
        let since = queue.scrape();
        self.reading = Reading {
            at: now,
            ready: counts.ready,
            starting: counts.starting,
            draining: counts.draining,
            ..Reading::default()
        };
        if since.is_counted() {
            let rate = |sum: f64| sum / since.seconds;
            let (prompt, output) = model.tokens;
            let busy = busy(model, &since, counts.ready);
            let reading = &mut self.reading;
            reading.arrivals_per_second = Some(rate(since.requests));
            reading.prompt_tokens_per_second = Some(rate(since.work) * prompt);
            reading.output_tokens_per_second = Some(rate(since.done) * output);
            reading.waiting = Some(queue.waiting());
            reading.waiting_tokens = Some(queue.waiting() * prompt);
            reading.running = Some(running(model, &since));
            reading.cache_used = (counts.ready > 0).then_some(busy);
            reading.first_token_p90 = Some(model.first_token + Seconds(since.wait));
            reading.between_tokens_p90 = Some(long_between_tokens(model, busy));
        }
        since
    }

    /// Counts it as gateways and engines do.
    pub(super) fn count(&mut self, model: &FluidModel, since: &Since, waiting: f64, now: Seconds) {
        self.counted.requests += since.requests;
        self.counted.missed += since.missed;
        self.counted.work += since.work;
        self.counted.done += since.done;
        if !since.is_counted() {
            self.gateway = None;
            return;
        }
        let ready = self.reading.ready;
        let running = running(model, since);
        let at = now.after(self.start);
        let pace = between_tokens(model, busy(model, since, ready));
        self.counted.paced_seconds += since.done * model.tokens.1 * pace.get();
        self.gateway = Some(self.counted.reading(model, waiting, running, ready, at));
        let each = if ready > 0 { running / f64::from(ready) } else { 0.0 };
        let busy = seen(Requests::from_sample(each), at);
        for replica in self.replicas.values_mut() {
            if replica.state == ReplicaState::Ready {
                replica.in_flight = busy;
            }
        }
    }
}

/// Requests that engines work on.
fn running(model: &FluidModel, since: &Since) -> f64 {
    since.done / since.seconds * model.service.get()
}

/// What was done over what so many replicas carry.
fn busy(model: &FluidModel, since: &Since, ready: u32) -> f64 {
    let capacity = model.per_replica * model.pooling.carries(f64::from(ready));
    if capacity > 0.0 { (since.done / since.seconds / capacity).min(1.0) } else { 0.0 }
}

impl Default for Counted {
    fn default() -> Self {
        Self {
            window: CounterWindow::of(GatewayReading::WINDOW),
            work: 0.0,
            done: 0.0,
            paced_seconds: 0.0,
            requests: 0.0,
            missed: 0.0,
        }
    }
}

impl Counted {
    /// As a gateway tells it.
    fn reading(
        &mut self,
        model: &FluidModel,
        waiting: f64,
        running: f64,
        ready: u32,
        at: Timestamp,
    ) -> GatewayReading {
        let (prompt, output) = model.tokens;
        let whole = |count: f64| count.round() as u64;
        let counts = GatewayCounts {
            // Work in requests of the usual size: what is asked for is told by tokens.
            arrived: whole(self.work),
            prompt_tokens: whole(self.work * prompt),
            uncached_tokens: None,
            answered: whole(self.done),
            output_tokens: whole(self.done * output),
            paced_tokens: whole(self.done * output),
            paced_micros: whole(self.paced_seconds * 1e6),
            judged: whole(self.requests),
            missed: whole(self.missed),
        };
        self.window.add(at, Timestamp::default(), counts);
        GatewayReading {
            at,
            counts: self.window.clone(),
            waiting_tokens: whole(waiting * prompt),
            unread_tokens: 0,
            held_tokens: whole(running * (prompt + output / 2.0)),
            in_flight: whole(running),
            engines: ready,
        }
    }
}

/// Nine of ten steps are shorter than two fifths of the objective when a replica is idle and than all of it at
/// capacity, with a straight line between: a batch's step time grows linearly with its requests, and a capacity is
/// chosen so that the objective is just met there.
fn long_between_tokens(model: &FluidModel, busy: f64) -> Seconds {
    model.between_tokens_objective * (0.4 + 0.6 * busy)
}

/// The time of a step with next to nothing to do, as a share of the objective.
const IDLE: f64 = 0.4;

/// A step takes two fifths of the objective on the mean when a replica is idle, and all of it at what it does at most. The time
/// of a step is that of an empty one over the part of the time that is no work, and of what replicas do at most three
/// quarters are what they carry.
fn between_tokens(model: &FluidModel, busy: f64) -> Seconds {
    let most = (0.75 * busy).min(1.0);
    model.between_tokens_objective * (IDLE / (1.0 - (1.0 - IDLE) * most))
}

fn seen<T>(value: Option<T>, at: Timestamp) -> Observed<T> {
    value.map_or(Observed::Missing, |value| Observed::Fresh { value, at })
}

/// A cold start as people state it.
fn stated(cold_start: &ColdStart) -> Option<Interval<Micros>> {
    let quantile = |share| cold_start.quantile(share).to_micros();
    Interval::new(quantile(0.05), quantile(0.5), quantile(0.95), Origin::Measured).ok()
}

fn described(model: &FluidModel, pool: &PoolId, world: &FluidWorld) -> ModelReading {
    let (prompt, output) = model.tokens;
    let rate = |tokens: f64| {
        let value = TokensPerSecond::new((model.per_replica * tokens).round() as u64);
        Interval::exact(value, Origin::Measured).ok()
    };
    // A flow takes no room.
    let resident = Interval::exact(Tokens::MAX, Origin::Assumed).ok();
    // Where accelerators are shared, a replica that finds one only has to be swapped in.
    let cold_start = match &world.pool {
        Some(pool) => Interval::exact(pool.swap.to_micros(), Origin::Measured).ok(),
        None => stated(&world.cold_start),
    };
    let variant = VariantReading {
        pool: pool.clone(),
        gpus_per_replica: model.gpus,
        stated: Capacity {
            prefill: rate(prompt),
            decode: rate(output),
            resident,
            reading_per_million: model.reading_per_million,
            pooled_per_million: Some(model.pooling.per_million()),
            measured_per_million: None,
        },
        predicted: None,
        paces: Some(Paces {
            idle: between_tokens(model, 0.0).get(),
            full: between_tokens(model, 1.0).get(),
            carried: between_tokens(model, 1.0).get(),
        }),
        cold_start,
        replicas: BTreeMap::new(),
        started: Vec::new(),
        engines: BTreeMap::new(),
        lapsed: false,
    };
    let name = VariantName::new("only").expect("a word is a name");
    ModelReading {
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
        gateways: Vec::new(),
        silent_gateways: 0,
        waited_for: false,
        variants: [(name, variant)].into(),
    }
}
