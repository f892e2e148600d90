//! What is read of a cluster at one moment: counts and gauges, each with the time at which it was read.
//!
//! Counts only grow, and begin again with whoever counts. A reading that is not there is `None`, and never zero.

use crate::window::{CounterWindow, Counters};
use flyball_core::ids::{ModelId, PoolId, ReplicaId, RunId, VariantName};
use flyball_core::interval::Interval;
use flyball_core::snapshot::{
    Capacity, Mode, Objectives, Pool, Replica, ScalingBounds, TrainingRun,
};
use flyball_core::units::{Gpus, Micros, Replicas, Timestamp};
use std::collections::BTreeMap;

/// Everything that was read at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Readings {
    /// The moment.
    pub taken_at: Timestamp,
    /// Which shard of the operator read it.
    pub shard: u16,
    /// An older reading is good enough to add capacity on and not to give any away.
    pub max_age: Micros,
    /// The served models.
    pub models: BTreeMap<ModelId, ModelReading>,
    /// The pools of accelerators.
    pub pools: BTreeMap<PoolId, Pool>,
    /// The training runs that hold accelerators.
    pub runs: BTreeMap<RunId, TrainingRun>,
}

/// One model: what its owner asks for, and what was read of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelReading {
    /// Whether decisions are carried out.
    pub mode: Mode,
    /// The number of replicas a person set, if one did.
    pub pinned: Option<Replicas>,
    /// Whether a person stopped all changes.
    pub frozen: bool,
    /// Whether decisions cannot be carried out.
    pub blocked: bool,
    /// How few and how many replicas it may have.
    pub bounds: ScalingBounds,
    /// How fast it should answer.
    pub objectives: Objectives,
    /// What gateways count, each under each name that it serves the model by.
    pub gateways: Vec<GatewayReading>,
    /// Gateways that exist and did not say whether they serve it.
    pub silent_gateways: u32,
    /// Whether somebody waits for a first replica: gateways tell that at once, before they count.
    pub waited_for: bool,
    /// The ways to run it.
    pub variants: BTreeMap<VariantName, VariantReading>,
}

/// What one gateway counts of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayReading {
    /// When it said so.
    pub at: Timestamp,
    /// What it has counted, over the last half minute.
    pub counts: CounterWindow<GatewayCounts>,
    /// Prompt tokens of requests that wait in it.
    pub waiting_tokens: u64,
    /// Prompt tokens that it gave to engines and that they have not read.
    pub unread_tokens: u64,
    /// Tokens that engines hold for its requests, as it reckons.
    pub held_tokens: u64,
    /// Its requests at engines.
    pub in_flight: u64,
    /// Engines that it may send to.
    pub engines: u32,
}

/// What a gateway has counted since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GatewayCounts {
    /// Requests that came.
    pub arrived: u64,
    /// Their prompt tokens.
    pub prompt_tokens: u64,
    /// Those of them that no cache had; absent where it does not tell them apart.
    pub uncached_tokens: Option<u64>,
    /// Requests that were answered to the end.
    pub answered: u64,
    /// Their output tokens.
    pub output_tokens: u64,
    /// Of these, the ones that came after a first token, and the microseconds that they took.
    pub paced_tokens: u64,
    /// Microseconds from first to last tokens.
    pub paced_micros: u64,
    /// Requests that were judged by the objectives.
    pub judged: u64,
    /// Those of them that missed one.
    pub missed: u64,
}

/// One way to run a model.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantReading {
    /// Where its replicas run.
    pub pool: PoolId,
    /// Accelerators that one replica uses.
    pub gpus_per_replica: Gpus,
    /// What one replica can do as far as its owner says it.
    pub stated: Capacity,
    /// What can be predicted of the rest, if anything.
    pub predicted: Option<PredictedReplica>,
    /// How long tokens take, where that is known.
    pub paces: Option<Paces>,
    /// How long a start takes, as its owner says it or as its parts add up.
    pub cold_start: Option<Interval<Micros>>,
    /// What runs now.
    pub replicas: BTreeMap<ReplicaId, Replica>,
    /// Of replicas that have begun to serve: how long that took from asking for them. One that is named again is
    /// not counted again.
    pub started: Vec<(ReplicaId, Micros)>,
    /// The engines of those that serve, where somebody collects what they count.
    pub engines: BTreeMap<ReplicaId, EngineReading>,
    /// Whether a replica served, does not now, and may again.
    pub lapsed: bool,
}

/// How long tokens of a replica take on the mean, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paces {
    /// With one request inside.
    pub idle: f64,
    /// With as much work as it has the time for.
    pub full: f64,
    /// With as many requests as it carries: shorter where room ends before time does.
    pub carried: f64,
}

/// What a replica is made of, so that its speed can be predicted for the requests that come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PredictedReplica {
    /// The model, by its name in the list of known ones.
    pub model: String,
    /// The accelerator, by its name in the catalogue.
    pub accelerator: String,
    /// Accelerators that one replica is spread over.
    pub tensor: u32,
    /// Prompt tokens that a step of its engine holds; where nobody sets them, they are chosen by the objectives.
    pub step_tokens: Option<u32>,
}

/// The engine of a replica that serves.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineReading {
    /// Since when it serves.
    pub serves_since: Option<Timestamp>,
    /// What it counted over the last minute.
    pub counts: CounterWindow<EngineCounts>,
    /// Requests that it works on.
    pub running: Option<f64>,
    /// Requests that wait in it.
    pub waiting: Option<f64>,
    /// Share of its cache in use. What an engine of this kind cannot tell is not missing.
    pub cache_used: CacheUsed,
    /// Tokens that its cache holds, where it says so.
    pub cache_tokens: Option<f64>,
}

/// How much of its cache an engine uses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum CacheUsed {
    /// This share.
    Share(f64),
    /// It should tell and does not.
    #[default]
    Missing,
    /// Engines of its kind do not tell.
    Untold,
}

impl GatewayReading {
    /// Rates of what gateways count are taken over this long.
    pub const WINDOW: Micros = Micros::from_seconds(30);
}

impl EngineReading {
    /// Rates of what engines count are taken over this long: they are scraped every half minute or so, and a rate takes
    /// two scrapes.
    pub const WINDOW: Micros = Micros::from_minutes(1);

    /// One that has counted so much at this moment, and of which nothing else is known.
    pub fn counted(at: Timestamp, counts: EngineCounts) -> Self {
        let mut engine = Self::unread();
        engine.counts.add(at, Timestamp::default(), counts);
        engine
    }

    /// One that nothing was read of.
    pub fn unread() -> Self {
        Self {
            serves_since: None,
            counts: CounterWindow::of(Self::WINDOW),
            running: None,
            waiting: None,
            cache_used: CacheUsed::default(),
            cache_tokens: None,
        }
    }

    /// When it was last read.
    pub fn at(&self) -> Option<Timestamp> {
        self.counts.last().map(|(at, _)| at)
    }
}

/// What an engine has counted since it began; NaN is nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EngineCounts {
    /// Tokens of prompts that it was given.
    pub prompt_tokens: f64,
    /// Those of them that its cache had, where it tells them apart.
    pub cached_tokens: f64,
    /// Tokens that it has written.
    pub output_tokens: f64,
    /// Requests that it has answered.
    pub answered: f64,
    /// Of the tokens, those that came after a first one.
    pub paced_tokens: f64,
    /// Seconds from first to last tokens.
    pub paced_seconds: f64,
}

impl EngineCounts {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self {
        prompt_tokens: f64::NAN,
        cached_tokens: f64::NAN,
        output_tokens: f64::NAN,
        answered: f64::NAN,
        paced_tokens: f64::NAN,
        paced_seconds: f64::NAN,
    };

    /// Prompt tokens that it had to read: all of them where it does not say what its cache had.
    pub fn read_tokens(&self) -> f64 {
        let cached = if self.cached_tokens.is_nan() { 0.0 } else { self.cached_tokens };
        self.prompt_tokens - cached
    }
}

impl Counters for EngineCounts {
    fn fell(before: &Self, now: &Self) -> bool {
        now.prompt_tokens < before.prompt_tokens || now.output_tokens < before.output_tokens
    }
}

impl Counters for GatewayCounts {
    fn fell(before: &Self, now: &Self) -> bool {
        now.arrived < before.arrived
    }
}
