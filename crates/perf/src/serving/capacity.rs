//! What one replica can do within its objectives, in the units that demand is counted in.
//!
//! The simulator asks it for the replicas of a scenario and the operator for those of a cluster, so
//! that both tell the governor the same.

use super::batch::{Batch, StepTime};
use super::fold::ServingReplica;
use super::steady::{EngineLimits, Operating, RequestShape, at_rate, most_running, operating};
use super::step::StepModel;
use crate::architecture::Architecture;
use crate::catalog::Catalog;
use crate::coefficients::Coefficients;
use crate::engine::Engine;
use crate::layout::ServingLayout;
use crate::memory::serving::{Budget, ReplicaMemory as InMemory};
use crate::models;
use crate::precision::Dtype;
use flyball_core::interval::{Interval, Origin};
use flyball_core::pooling::Pooling;
use flyball_core::snapshot::{Capacity, Objectives};
use flyball_core::units::{Micros, Tokens, TokensPerSecond};
use std::sync::LazyLock;

/// Share of the cache that is told: a cache filled to its last block sends requests back.
const FULLEST: f64 = 0.9;

/// Without an objective for the first token nothing limits a queue but the replica itself.
const UNBOUNDED: f64 = 0.9;

/// Room is what ends first where time would do for so many times as much: less than that is inside what both are off
/// by.
const ROOM_ENDS_FIRST: f64 = 1.05;

/// What capacity is told as: so much either way. The spread of the intervals for parts and models
/// that were measured is about this.
const SPREAD: f64 = 0.1;

/// The operator asks for every model at every look: reading the tables each time took most of that.
static CATALOG: LazyLock<Catalog> = LazyLock::new(Catalog::builtin);
static COEFFICIENTS: LazyLock<Coefficients> = LazyLock::new(Coefficients::serving);

/// A model on accelerators of one kind, served by vLLM.
#[derive(Clone, Copy, Debug)]
pub struct CapacityQuestion<'a> {
    /// The model, by its name in the list of known ones.
    pub model: &'a str,
    /// The accelerator, by its name in the catalogue.
    pub accelerator: &'a str,
    /// Accelerators that one replica is spread over.
    pub tensor: u32,
    /// Prompt tokens of one step.
    pub step_tokens: u32,
    /// Requests that run at once, at most.
    pub most_running: u32,
}

impl<'a> CapacityQuestion<'a> {
    /// With vLLM's own settings, where nobody sets others.
    pub fn unset(model: &'a str, accelerator: &'a str, tensor: u32) -> Self {
        let Budget { batched_tokens: step_tokens, sequences: most_running, .. } = Budget::default();
        Self { model, accelerator, tensor, step_tokens, most_running }
    }
}

/// How long steps take, and how many tokens the cache holds; or why that cannot be told.
pub fn predicted(
    question: &CapacityQuestion<'_>,
    shape: &RequestShape,
) -> Result<(StepModel, Tokens), String> {
    let config = models::config(question.model)
        .ok_or_else(|| format!("no model is called {}", question.model))?;
    let model = Architecture::from_config(&config).map_err(|error| error.to_string())?;
    let accelerator =
        CATALOG.accelerator(question.accelerator).map_err(|error| error.to_string())?;
    let kernels = accelerator
        .kernels
        .as_ref()
        .ok_or_else(|| format!("kernels were not measured on {}", question.accelerator))?;
    let layout = ServingLayout::tensor(question.tensor);
    let cache = model.stored.cache.unwrap_or(Dtype::Bf16);
    let replica =
        ServingReplica { model: &model, accelerator, layout, engine: Engine::Vllm, cache };
    let step =
        StepModel::new(&replica, kernels, &COEFFICIENTS).map_err(|error| error.to_string())?;
    let budget = Budget {
        batched_tokens: question.step_tokens,
        sequences: question.most_running,
        ..Budget::default()
    };
    let memory = InMemory::new(&model, layout, budget)
        .memory(accelerator.usable_memory, shape.input + shape.output);
    Ok((step, memory.cache_tokens.point()))
}

/// What one replica carries inside the objectives: the rate at which requests that come at random still meet
/// them.
///
/// Two things end. *Time*: at most it does what it does when every step is as long as the objective allows. At that
/// rate the queue would grow without end, so that some of it stays free. With work of variation `v` the wait in front
/// of a server with rate `most` is longer than `slack` for a share of `busy * exp(-2 (1 - busy) slack most / (1 + v))`
/// of the requests (Kingman). A first token waits for prompts only, so that the server is the one that reads: with a
/// part `r` of all work it is `1 / r` times as fast. `slack` is what the objective leaves beyond the prompt itself.
/// *Room*: of `n` requests that fit at once, those that come at random leave `z sqrt(n)` free but for the share that
/// may miss; who finds no room waits for an answer to end, which is longer than any objective.
///
/// Held against the engine's own replay of requests of six shapes with three models it is about 10 %
/// off with 3 s to the first token, 25 % with 1 s, and up to three times too low where one in a hundred prompts alone
/// takes as long as is allowed.
pub fn carried(
    step: &impl StepTime,
    limits: &EngineLimits,
    shape: &RequestShape,
    objectives: &Objectives,
) -> Option<Operating> {
    each_of(1.0, step, limits, shape, objectives)
}

/// The same as if the room had no end: what time alone allows.
pub fn in_time(
    step: &impl StepTime,
    limits: &EngineLimits,
    shape: &RequestShape,
    objectives: &Objectives,
) -> Option<Operating> {
    let rate = timely(1.0, step, limits, shape, objectives)?;
    at_rate(step, shape, &roomy(limits), rate)
}

/// The same of each of so many replicas: they are as one that is so many times as fast and has so many times the room.
fn each_of(
    replicas: f64,
    step: &impl StepTime,
    limits: &EngineLimits,
    shape: &RequestShape,
    objectives: &Objectives,
) -> Option<Operating> {
    let in_time = timely(replicas, step, limits, shape, objectives)?;
    let room = replicas * limits.admitted(shape);
    let usable = 1.0 - normal_quantile(may_miss(objectives)) / room.sqrt();
    // Of a handful nobody can say how many are left free.
    let usable = usable.max(0.3);
    let with_room = most_running(step, shape, limits, |at| at.slots <= usable)?;
    at_rate(step, shape, limits, in_time.min(with_room.rate))
}

fn may_miss(objectives: &Objectives) -> f64 {
    1.0 - f64::from(objectives.attainment_per_million.min(999_999)) / 1e6
}

fn roomy(limits: &EngineLimits) -> EngineLimits {
    EngineLimits { sequences: f64::MAX, cache_tokens: f64::MAX, ..*limits }
}

/// Requests per second whose first tokens come in time, however many fit.
fn timely(
    replicas: f64,
    step: &impl StepTime,
    limits: &EngineLimits,
    shape: &RequestShape,
    objectives: &Objectives,
) -> Option<f64> {
    let seconds = |limit: Option<Micros>| limit.map(Micros::as_seconds);
    let between = seconds(objectives.between_tokens);
    let roomy = roomy(limits);
    let most = most_running(step, shape, &roomy, |at| {
        between.is_none_or(|limit| at.tpot <= limit) && at.prompt_load <= 1.0
    })?;
    let busy = match seconds(objectives.first_token) {
        None => UNBOUNDED,
        Some(limit) => {
            let alone = operating(step, shape, &roomy, most.running.min(0.1));
            // Where long prompts alone take most of what is allowed, they are the ones that miss.
            let tight = alone.ttft_p95 > limit / 2.0;
            let slack = limit - if tight { alone.ttft_p95 } else { alone.ttft_mean };
            let reading = ReplicaWork::of(step, shape, &most).reading_per_million(shape);
            let reading = reading.map_or(1.0, |part| f64::from(part.max(10_000)) / 1e6);
            let rate = 2.0 * slack * replicas * most.rate / reading / (1.0 + shape.input_variation);
            busiest(rate, may_miss(objectives)).filter(|_| slack > 0.0)?
        }
    };
    Some(busy * most.rate)
}

/// The deviations that a normal variable exceeds with this chance (Abramowitz and Stegun, 26.2.23, to 0.0005).
fn normal_quantile(chance: f64) -> f64 {
    let t = (-2.0 * chance.clamp(1e-9, 0.5).ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    t - above / below
}

/// The share of its time that a server may be busy so that no more than `missed` wait for too long, where
/// the chance of that falls by `e` with every `1 / rate` that is free.
fn busiest(rate: f64, missed: f64) -> Option<f64> {
    let late = |busy: f64| busy * (-(1.0 - busy) * rate).exp();
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..30 {
        let middle = f64::midpoint(low, high);
        if late(middle) <= missed { low = middle } else { high = middle }
    }
    (low > 0.0).then_some(low)
}

/// What tokens add to the time of steps: the part of it that more requests make longer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplicaWork {
    /// Seconds.
    pub per_prompt_token: f64,
    pub per_output_token: f64,
}

impl ReplicaWork {
    /// Of a replica at work.
    pub fn of(step: &impl StepTime, shape: &RequestShape, at: &Operating) -> Self {
        let context = shape.input + shape.output / 2.0;
        // What one request more adds to a step: with few of them, beside one; else their mean.
        let many = at.running.max(2.0);
        let plain = |requests: f64| step.seconds(&Batch::decoding(requests, context));
        Self {
            per_prompt_token: (at.prompt_step - at.plain_step).max(0.0) / at.prompt_tokens,
            per_output_token: (plain(many) - plain(1.0)).max(0.0) / (many - 1.0),
        }
    }

    /// Of a million parts of the work on such requests, those that are reading.
    pub fn reading_per_million(&self, shape: &RequestShape) -> Option<u32> {
        let read = shape.input * self.per_prompt_token;
        let share = read / (read + shape.output * self.per_output_token);
        share.is_finite().then(|| (share.clamp(0.0, 1.0) * 1e6).round() as u32)
    }
}

/// What is told of a replica: time and room apart, since they end at different loads when requests change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapacityPrediction {
    /// Requests per second that it has the time for.
    pub rate: f64,
    /// Tokens that it holds when it carries all that it can, where room is what ends first.
    pub held: Option<f64>,
}

impl CapacityPrediction {
    /// Of one that carries so much and holds so many tokens then, and would carry so many times that if it had the room.
    pub fn of(carried: f64, timely: f64, held: f64) -> Self {
        if timely > ROOM_ENDS_FIRST {
            Self { rate: carried * timely, held: Some(held) }
        } else {
            Self { rate: carried, held: None }
        }
    }
}

/// What is told that one replica can do.
pub fn capacity(
    step: &impl StepTime,
    limits: &EngineLimits,
    shape: &RequestShape,
    objectives: &Objectives,
) -> Capacity {
    let Some(at) = carried(step, limits, shape, objectives) else { return Capacity::UNKNOWN };
    let each = each_of(f64::from(Pooling::FLEET), step, limits, shape, objectives);
    let rate = |tokens: f64| {
        let [low, point, high] = [1.0 - SPREAD, 1.0, 1.0 + SPREAD]
            .map(|share| TokensPerSecond::from_sample(tokens * share).unwrap_or_default());
        Interval::new(low, point, high, Origin::Modelled).ok()
    };
    let timely = in_time(step, limits, shape, objectives).unwrap_or(at);
    let prediction =
        CapacityPrediction::of(at.rate, timely.rate / at.rate, at.running * shape.held());
    let resident = prediction.held.unwrap_or(limits.cache_tokens * FULLEST);
    let resident = Tokens::from_sample(resident);
    Capacity {
        prefill: rate(prediction.rate * shape.input),
        decode: rate(prediction.rate * shape.output),
        resident: resident.and_then(|tokens| Interval::exact(tokens, Origin::Modelled).ok()),
        reading_per_million: ReplicaWork::of(step, shape, &at).reading_per_million(shape),
        pooled_per_million: each.map(|each| Pooling::between(at.rate, each.rate).per_million()),
        measured_per_million: None,
    }
}
