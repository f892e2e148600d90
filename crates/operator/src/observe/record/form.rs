//! A line of readings as it is written. Times are microseconds, counts are in the order of their fields.

use flyball_core::ids::NodeName;
use flyball_core::interval::{Interval, Origin};
use flyball_core::snapshot::{
    Capacity, Mode, Objectives, Observed, Pool, Purchase, Replica, ReplicaState, ScalingBounds,
    Share,
};
use flyball_core::units::{
    Gpus, Micros, Money, Price, Replicas, Requests, Timestamp, Tokens, TokensPerSecond,
};
use flyball_estimator::reading::{
    CacheUsed, EngineCounts, EngineReading, GatewayCounts, GatewayReading, ModelReading, Paces,
    PredictedReplica, VariantReading,
};
use flyball_estimator::{CounterWindow, Readings};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

/// Everything that was read at one moment. Training runs are not recorded.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Form {
    taken_at: u64,
    shard: u16,
    max_age: u64,
    models: BTreeMap<String, ModelForm>,
    pools: BTreeMap<String, PoolForm>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelForm {
    mode: String,
    pinned: Option<u32>,
    frozen: bool,
    blocked: bool,
    /// Fewest, most, and whether it may sleep.
    bounds: (u32, u32, bool),
    /// To the first token, between tokens, and the share that should meet both.
    objectives: (Option<u64>, Option<u64>, u32),
    gateways: Vec<GatewayForm>,
    silent_gateways: u32,
    waited_for: bool,
    variants: BTreeMap<String, VariantForm>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GatewayForm {
    at: u64,
    counts: Vec<Moment>,
    waiting_tokens: u64,
    unread_tokens: u64,
    held_tokens: u64,
    in_flight: u64,
    engines: u32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VariantForm {
    pool: String,
    gpus_per_replica: u32,
    stated: CapacityForm,
    /// Model, accelerator, accelerators, tokens of a step.
    predicted: Option<(String, String, u32, Option<u32>)>,
    /// Idle, full, carried.
    paces: Option<(f64, f64, f64)>,
    cold_start: Option<Span>,
    replicas: BTreeMap<String, ReplicaForm>,
    started: Vec<(String, u64)>,
    engines: BTreeMap<String, EngineForm>,
    lapsed: bool,
}

/// When, since when, arrived, prompt tokens, uncached ones, answered, output tokens, paced tokens and microseconds,
/// judged, missed.
type Moment = (u64, u64, u64, u64, Option<u64>, u64, u64, u64, u64, u64, u64);

/// Low, point, high, and where it came from.
type Span = (u64, u64, u64, String);

/// Whether it is fresh, the value, and when it was read.
type Seen = Option<(bool, u64, u64)>;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CapacityForm {
    prefill: Option<Span>,
    decode: Option<Span>,
    resident: Option<Span>,
    reading_per_million: Option<u32>,
    pooled_per_million: Option<u32>,
    measured_per_million: Option<u32>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplicaForm {
    state: String,
    since: u64,
    in_flight: Seen,
    nodes: Vec<String>,
    purchase: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EngineForm {
    serves_since: Option<u64>,
    /// When, since when, and counts; what is no number is nothing.
    counts: Vec<(u64, u64, [Option<f64>; 6])>,
    running: Option<f64>,
    waiting: Option<f64>,
    cache_used: Option<f64>,
    /// Whether engines of its kind do not tell of their cache.
    cache_untold: bool,
    cache_tokens: Option<f64>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PoolForm {
    accelerator: String,
    allocatable: BTreeMap<String, Seen>,
    held_by_others: u32,
    can_grow: bool,
    supply: Option<Span>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    take_back: Option<u64>,
    limit: Option<u32>,
    /// What is guaranteed, and the priority, by namespace.
    shares: BTreeMap<String, (u32, i32)>,
    /// Millionths per accelerator and hour, and of what.
    prices: BTreeMap<String, (i64, String)>,
}

impl Form {
    pub(super) fn of(readings: &Readings) -> Self {
        Self {
            taken_at: readings.taken_at.as_micros(),
            shard: readings.shard,
            max_age: readings.max_age.get(),
            models: texts(&readings.models, ModelForm::of),
            pools: texts(&readings.pools, PoolForm::of),
        }
    }

    pub(super) fn readings(self) -> Result<Readings, String> {
        Ok(Readings {
            taken_at: Timestamp::from_micros(self.taken_at),
            shard: self.shard,
            max_age: Micros::new(self.max_age),
            models: parsed(self.models, ModelForm::reading)?,
            pools: parsed(self.pools, PoolForm::pool)?,
            runs: BTreeMap::new(),
        })
    }
}

impl ModelForm {
    fn of(model: &ModelReading) -> Self {
        let ScalingBounds { min, max, may_sleep } = model.bounds;
        let Objectives { first_token, between_tokens, attainment_per_million } = model.objectives;
        Self {
            mode: model.mode.name().to_owned(),
            pinned: model.pinned.map(Replicas::get),
            frozen: model.frozen,
            blocked: model.blocked,
            bounds: (min.get(), max.get(), may_sleep),
            objectives: (
                first_token.map(Micros::get),
                between_tokens.map(Micros::get),
                attainment_per_million,
            ),
            gateways: model.gateways.iter().map(GatewayForm::of).collect(),
            silent_gateways: model.silent_gateways,
            waited_for: model.waited_for,
            variants: texts(&model.variants, VariantForm::of),
        }
    }

    fn reading(self) -> Result<ModelReading, String> {
        let (min, max, may_sleep) = self.bounds;
        let (first_token, between_tokens, attainment_per_million) = self.objectives;
        Ok(ModelReading {
            mode: Mode::from_name(&self.mode).ok_or(self.mode)?,
            pinned: self.pinned.map(Replicas::new),
            frozen: self.frozen,
            blocked: self.blocked,
            bounds: ScalingBounds { min: Replicas::new(min), max: Replicas::new(max), may_sleep },
            objectives: Objectives {
                first_token: first_token.map(Micros::new),
                between_tokens: between_tokens.map(Micros::new),
                attainment_per_million,
            },
            gateways: self.gateways.into_iter().map(GatewayForm::reading).collect(),
            silent_gateways: self.silent_gateways,
            waited_for: self.waited_for,
            variants: parsed(self.variants, VariantForm::reading)?,
        })
    }
}

impl GatewayForm {
    fn of(gateway: &GatewayReading) -> Self {
        let moments = gateway.counts.moments().map(|(at, since, one)| {
            (
                at.as_micros(),
                since.as_micros(),
                one.arrived,
                one.prompt_tokens,
                one.uncached_tokens,
                one.answered,
                one.output_tokens,
                one.paced_tokens,
                one.paced_micros,
                one.judged,
                one.missed,
            )
        });
        Self {
            at: gateway.at.as_micros(),
            counts: moments.collect(),
            waiting_tokens: gateway.waiting_tokens,
            unread_tokens: gateway.unread_tokens,
            held_tokens: gateway.held_tokens,
            in_flight: gateway.in_flight,
            engines: gateway.engines,
        }
    }

    fn reading(self) -> GatewayReading {
        let moments = self.counts.into_iter().map(|one| {
            let counts = GatewayCounts {
                arrived: one.2,
                prompt_tokens: one.3,
                uncached_tokens: one.4,
                answered: one.5,
                output_tokens: one.6,
                paced_tokens: one.7,
                paced_micros: one.8,
                judged: one.9,
                missed: one.10,
            };
            (Timestamp::from_micros(one.0), Timestamp::from_micros(one.1), counts)
        });
        GatewayReading {
            at: Timestamp::from_micros(self.at),
            counts: CounterWindow::recorded(GatewayReading::WINDOW, moments),
            waiting_tokens: self.waiting_tokens,
            unread_tokens: self.unread_tokens,
            held_tokens: self.held_tokens,
            in_flight: self.in_flight,
            engines: self.engines,
        }
    }
}

impl VariantForm {
    fn of(variant: &VariantReading) -> Self {
        let parts = |one: &PredictedReplica| {
            (one.model.clone(), one.accelerator.clone(), one.tensor, one.step_tokens)
        };
        Self {
            pool: variant.pool.to_string(),
            gpus_per_replica: variant.gpus_per_replica.get(),
            stated: CapacityForm::of(&variant.stated),
            predicted: variant.predicted.as_ref().map(parts),
            paces: variant.paces.map(|paces| (paces.idle, paces.full, paces.carried)),
            cold_start: variant.cold_start.map(|span| of_span(span, Micros::get)),
            replicas: texts(&variant.replicas, ReplicaForm::of),
            started: variant
                .started
                .iter()
                .map(|(id, took)| (id.to_string(), took.get()))
                .collect(),
            engines: texts(&variant.engines, EngineForm::of),
            lapsed: variant.lapsed,
        }
    }

    fn reading(self) -> Result<VariantReading, String> {
        let started =
            self.started.into_iter().map(|(id, took)| Ok((parse(&id)?, Micros::new(took))));
        let parts = |(model, accelerator, tensor, step_tokens)| PredictedReplica {
            model,
            accelerator,
            tensor,
            step_tokens,
        };
        Ok(VariantReading {
            pool: parse(&self.pool)?,
            gpus_per_replica: Gpus::new(self.gpus_per_replica),
            stated: self.stated.capacity()?,
            predicted: self.predicted.map(parts),
            paces: self.paces.map(|(idle, full, carried)| Paces { idle, full, carried }),
            cold_start: self.cold_start.map(|span| span_of(span, Micros::new)).transpose()?,
            replicas: parsed(self.replicas, ReplicaForm::replica)?,
            started: started.collect::<Result<_, String>>()?,
            engines: parsed(self.engines, |engine| Ok(engine.reading()))?,
            lapsed: self.lapsed,
        })
    }
}

impl CapacityForm {
    fn of(capacity: &Capacity) -> Self {
        Self {
            prefill: capacity.prefill.map(|span| of_span(span, TokensPerSecond::get)),
            decode: capacity.decode.map(|span| of_span(span, TokensPerSecond::get)),
            resident: capacity.resident.map(|span| of_span(span, Tokens::get)),
            reading_per_million: capacity.reading_per_million,
            pooled_per_million: capacity.pooled_per_million,
            measured_per_million: capacity.measured_per_million,
        }
    }

    fn capacity(self) -> Result<Capacity, String> {
        let rate =
            |span: Option<Span>| span.map(|span| span_of(span, TokensPerSecond::new)).transpose();
        Ok(Capacity {
            prefill: rate(self.prefill)?,
            decode: rate(self.decode)?,
            resident: self.resident.map(|span| span_of(span, Tokens::new)).transpose()?,
            reading_per_million: self.reading_per_million,
            pooled_per_million: self.pooled_per_million,
            measured_per_million: self.measured_per_million,
        })
    }
}

impl ReplicaForm {
    fn of(replica: &Replica) -> Self {
        Self {
            state: replica.state.name().to_owned(),
            since: replica.since.as_micros(),
            in_flight: of_seen(replica.in_flight, Requests::get),
            nodes: replica.nodes.iter().map(ToString::to_string).collect(),
            purchase: replica.purchase.map(|purchase| purchase.name().to_owned()),
        }
    }

    fn replica(self) -> Result<Replica, String> {
        let nodes = self.nodes.iter().map(|node| parse::<NodeName>(node));
        let purchase = |name: String| Purchase::from_name(&name).ok_or(name);
        Ok(Replica {
            state: ReplicaState::from_name(&self.state).ok_or(self.state)?,
            since: Timestamp::from_micros(self.since),
            in_flight: seen_of(self.in_flight, Requests::new),
            nodes: nodes.collect::<Result<_, _>>()?,
            purchase: self.purchase.map(purchase).transpose()?,
        })
    }
}

impl EngineForm {
    fn of(engine: &EngineReading) -> Self {
        let number = |value: f64| Some(value).filter(|value| !value.is_nan());
        let moments = engine.counts.moments().map(|(at, since, one)| {
            let counts = [
                one.prompt_tokens,
                one.cached_tokens,
                one.output_tokens,
                one.answered,
                one.paced_tokens,
                one.paced_seconds,
            ];
            (at.as_micros(), since.as_micros(), counts.map(number))
        });
        Self {
            serves_since: engine.serves_since.map(Timestamp::as_micros),
            counts: moments.collect(),
            running: engine.running,
            waiting: engine.waiting,
            cache_used: match engine.cache_used {
                CacheUsed::Share(share) => Some(share),
                CacheUsed::Missing | CacheUsed::Untold => None,
            },
            cache_untold: engine.cache_used == CacheUsed::Untold,
            cache_tokens: engine.cache_tokens,
        }
    }

    fn reading(self) -> EngineReading {
        let moments = self.counts.into_iter().map(|(at, since, counts)| {
            let counts = counts.map(|count| count.unwrap_or(f64::NAN));
            let [
                prompt_tokens,
                cached_tokens,
                output_tokens,
                answered,
                paced_tokens,
                paced_seconds,
            ] = counts;
            let counts = EngineCounts {
                prompt_tokens,
                cached_tokens,
                output_tokens,
                answered,
                paced_tokens,
                paced_seconds,
            };
            (Timestamp::from_micros(at), Timestamp::from_micros(since), counts)
        });
        EngineReading {
            serves_since: self.serves_since.map(Timestamp::from_micros),
            counts: CounterWindow::recorded(EngineReading::WINDOW, moments),
            running: self.running,
            waiting: self.waiting,
            cache_used: match (self.cache_used, self.cache_untold) {
                (Some(share), _) => CacheUsed::Share(share),
                (None, true) => CacheUsed::Untold,
                (None, false) => CacheUsed::Missing,
            },
            cache_tokens: self.cache_tokens,
        }
    }
}

impl PoolForm {
    fn of(pool: &Pool) -> Self {
        let price = |price: &Price| {
            let amount = price.amount();
            (amount.micros(), amount.currency().to_string())
        };
        let share = |share: &Share| (share.guaranteed.get(), share.priority);
        Self {
            accelerator: pool.accelerator.to_string(),
            allocatable: texts(&pool.allocatable, |gpus| of_seen(*gpus, |gpus| gpus.get().into())),
            held_by_others: pool.held_by_others.get(),
            can_grow: pool.can_grow,
            supply: pool.supply.map(|span| of_span(span, Micros::get)),
            take_back: pool.take_back.map(Micros::get),
            limit: pool.limit.map(Gpus::get),
            shares: texts(&pool.shares, share),
            prices: texts(&pool.prices, price),
        }
    }

    fn pool(self) -> Result<Pool, String> {
        let purchase = |name: String| Purchase::from_name(&name).ok_or(name);
        let gpus = |gpus: u64| Gpus::new(u32::try_from(gpus).unwrap_or(u32::MAX));
        let allocatable = self.allocatable.into_iter();
        let allocatable =
            allocatable.map(|(name, seen)| Ok((purchase(name)?, seen_of(seen, gpus))));
        let prices = self.prices.into_iter().map(|(name, (micros, currency))| {
            let amount = Money::from_micros(micros, parse(&currency)?);
            let price = Price::per_gpu_hour(amount).map_err(|error| error.to_string())?;
            Ok((purchase(name)?, price))
        });
        let share =
            |(guaranteed, priority)| Ok(Share { guaranteed: Gpus::new(guaranteed), priority });
        Ok(Pool {
            accelerator: parse(&self.accelerator)?,
            allocatable: allocatable.collect::<Result<_, String>>()?,
            held_by_others: Gpus::new(self.held_by_others),
            can_grow: self.can_grow,
            supply: self.supply.map(|span| span_of(span, Micros::new)).transpose()?,
            take_back: self.take_back.map(Micros::new),
            limit: self.limit.map(Gpus::new),
            shares: parsed(self.shares, share)?,
            prices: prices.collect::<Result<_, String>>()?,
        })
    }
}

fn of_span<T: Copy>(span: Interval<T>, number: impl Fn(T) -> u64) -> Span {
    let origin = span.origin().name().to_owned();
    (number(span.low()), number(span.point()), number(span.high()), origin)
}

fn span_of<T: Copy + PartialOrd>(span: Span, of: impl Fn(u64) -> T) -> Result<Interval<T>, String> {
    let (low, point, high, origin) = span;
    let origin = Origin::from_name(&origin).ok_or(origin)?;
    Interval::new(of(low), of(point), of(high), origin).map_err(|error| error.to_string())
}

fn of_seen<T: Copy>(seen: Observed<T>, number: impl Fn(T) -> u64) -> Seen {
    match seen {
        Observed::Fresh { value, at } => Some((true, number(value), at.as_micros())),
        Observed::Stale { value, at } => Some((false, number(value), at.as_micros())),
        Observed::Missing => None,
    }
}

fn seen_of<T>(seen: Seen, of: impl Fn(u64) -> T) -> Observed<T> {
    let Some((fresh, value, at)) = seen else { return Observed::Missing };
    let (value, at) = (of(value), Timestamp::from_micros(at));
    if fresh { Observed::Fresh { value, at } } else { Observed::Stale { value, at } }
}

fn parse<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

fn texts<K: Display, V, F>(all: &BTreeMap<K, V>, of: impl Fn(&V) -> F) -> BTreeMap<String, F> {
    all.iter().map(|(key, value)| (key.to_string(), of(value))).collect()
}

fn parsed<K: FromStr<Err: Display> + Ord, F, V>(
    all: BTreeMap<String, F>,
    of: impl Fn(F) -> Result<V, String>,
) -> Result<BTreeMap<K, V>, String> {
    all.into_iter().map(|(key, form)| Ok((parse(&key)?, of(form)?))).collect()
}
