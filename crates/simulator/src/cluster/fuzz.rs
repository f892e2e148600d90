//! Small random worlds with random faults, by the thousand: does any rule ever break?
//!
//! A seed makes a world, and the same seed makes the same one. A world lasts half an hour and has
//! some hundred requests, so that ten thousand of them take minutes on one core.

use super::account::ClusterRun;
use super::checks::BrokenInvariant;
use super::engine::{LinearEngine, Speed, StepSpeed};
use super::faults::{Fault, StatedCapacity};
use super::run;
use super::setup::{Habits, MetricsSetup, ModelSetup, PoolSetup, Setup, VariantSetup, Victim};
use super::stages::{Spacing, StageTokens, Stages, TrafficStage};
use super::start::StartParts;
use crate::chance::{Chance, Purpose, stream};
use crate::cold_start::ColdStart;
use crate::engine::EngineSettings;
use crate::policy::ScalingPolicy;
use crate::seconds::Seconds;
use flyball_core::ids::{AcceleratorId, ModelId, PoolId, VariantName};
use flyball_core::interval::{Interval, Origin};
use flyball_core::snapshot::{Capacity, Objectives, Purchase, ScalingBounds};
use flyball_core::units::{self, Gpus, Micros, Replicas, Timestamp, TokensPerSecond};
use rand::RngExt;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What happened in a world that broke no rule.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// Events after each of which every rule was checked.
    pub events: u64,
    /// Decisions made.
    pub decisions: u64,
    /// Requests that arrived.
    pub requests: f64,
    /// Requests that were cut off.
    pub killed: f64,
}

/// A world in which a rule broke.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The seed that makes the world.
    pub seed: u64,
    /// What broke.
    pub broken: Vec<BrokenInvariant>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {} rules broken", self.seed, self.broken.len())?;
        self.broken.iter().take(3).try_for_each(|broken| write!(f, "\n  {broken}"))
    }
}

/// Plays the world of a seed.
pub fn fuzz(seed: u64, policy: &mut dyn ScalingPolicy) -> Result<Stats, Failure> {
    let ClusterRun { outcome, log, broken, events, .. } = run(&random_world(seed), policy);
    if !broken.is_empty() {
        return Err(Failure { seed, broken });
    }
    let requests = outcome.models.iter().map(|model| model.requests).sum();
    let killed = outcome.models.iter().map(|model| model.killed).sum();
    Ok(Stats { events, decisions: log.len() as u64, requests, killed })
}

/// The world of a seed.
pub fn random_world(seed: u64) -> Setup {
    // Stream 0 of the faults is for the world's own misfortunes.
    let mut dice = Dice(stream(seed, Purpose::Faults, 1));
    let length = Seconds(1_800.0);
    let pools: Vec<PoolSetup> = (0..dice.whole(1, 2)).map(|n| pool(&mut dice, n)).collect();
    let models = (0..dice.whole(1, 3)).map(|n| model(&mut dice, seed, n, &pools, length));
    let mut models: Vec<ModelSetup> = models.collect();
    let mut faults: Vec<Fault> =
        (0..dice.whole(0, 6)).map(|_| fault(&mut dice, pools.len(), length)).collect();
    // Draws of their own, so that they change nothing about the rest of a seed's world.
    let mut more = Dice(stream(seed, Purpose::Faults, 2));
    if more.happens(0.3) {
        let pool = more.whole(0, pools.len() as u32 - 1) as usize;
        faults.push(Fault::BadStarts { pool, during: more.during(length) });
    }
    let mut others = Dice(stream(seed, Purpose::Faults, 3));
    faults.extend((0..others.whole(0, 2)).map(|_| deciders_fault(&mut others, length)));
    for model in &mut models {
        model.variants.iter_mut().for_each(|variant| misjudge(&mut more, variant));
    }
    let metrics = MetricsSetup {
        every: Seconds(*dice.one_of(&[5.0, 10.0, 15.0, 30.0])),
        delay: Seconds(dice.between(0.0, 10.0)),
        window: Seconds(dice.between(15.0, 90.0)),
        max_age: Seconds(dice.between(30.0, 120.0)),
    };
    Setup {
        seed,
        // 2026-01-01: any date that lies further from the epoch than a clock may jump back.
        start: Timestamp::from_millis(1_767_225_600_000),
        length,
        scored_from: Seconds::ZERO,
        models,
        pools,
        metrics,
        faults,
        grace: Seconds(30.0),
        victim: *dice.one_of(&[Victim::Youngest, Victim::Random]),
        habits: Habits::IDEAL,
    }
}

/// Draws in the forms that are needed here.
struct Dice(Chance);

impl Dice {
    fn whole(&mut self, from: u32, to: u32) -> u32 {
        self.0.random_range(from..=to)
    }

    fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.0.random::<f64>()
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.0.random_range(0..all.len())]
    }

    fn happens(&mut self, share: f64) -> bool {
        self.0.random::<f64>() < share
    }

    fn length(&mut self, longest: f64) -> ColdStart {
        let median = Seconds(self.between(0.1, longest));
        match self.whole(0, 2) {
            0 => ColdStart::Constant(median),
            1 => ColdStart::LogNormal { median, p99: median * self.between(1.0, 5.0) },
            _ => ColdStart::measured(vec![median * 0.5, median, median * 4.0]),
        }
    }

    fn during(&mut self, length: Seconds) -> std::ops::Range<Seconds> {
        let from = Seconds(self.between(0.0, length.get()));
        from..from + Seconds(self.between(10.0, 600.0))
    }
}

/// Something that goes wrong with what is known, and not with what there is.
fn deciders_fault(dice: &mut Dice, length: Seconds) -> Fault {
    let during = dice.during(length);
    let factor = dice.between(0.2, 4.0);
    match dice.whole(0, 4) {
        0 => Fault::StatedCapacity { during, stated: StatedCapacity::Times(factor) },
        1 => Fault::StatedCapacity { during, stated: StatedCapacity::Nothing },
        2 => {
            let replicas = dice.happens(0.5).then(|| dice.whole(1, 2));
            Fault::EngineSlows { during, factor, replicas }
        }
        3 => Fault::NoGateway { during },
        _ => Fault::OperatorRestart { at: during.start },
    }
}

fn pool(dice: &mut Dice, number: u32) -> PoolSetup {
    let gpus_per_node = *dice.one_of(&[1, 2, 4, 8]);
    let mut nodes = BTreeMap::new();
    for purchase in [Purchase::OnDemand, Purchase::Spot] {
        nodes.insert(purchase, dice.whole(0, 4));
    }
    let limit = dice.happens(0.5).then(|| Gpus::new(dice.whole(1, 40)));
    let stock = match dice.happens(0.3) {
        true => vec![(Seconds(dice.between(0.0, 900.0)), dice.whole(0, 6))],
        false => Vec::new(),
    };
    PoolSetup {
        id: PoolId::new(&format!("pool-{number}")).expect("a pool name"),
        accelerator: AcceleratorId::new("h100").expect("an accelerator name"),
        gpus_per_node,
        nodes,
        can_grow: dice.happens(0.7),
        limit,
        stock,
        node_supply: dice.length(120.0),
        idle_node: Seconds(dice.between(10.0, 300.0)),
        prices: BTreeMap::new(),
    }
}

fn model(dice: &mut Dice, seed: u64, n: u32, pools: &[PoolSetup], length: Seconds) -> ModelSetup {
    let base = dice.between(0.01, 0.15);
    let part = length.get() / 6.0;
    let stages = (0..6)
        .map(|_| TrafficStage::level(base * dice.one_of(&[0.0, 0.3, 1.0, 1.0, 3.0, 10.0]), part));
    let stages = Stages {
        stages: stages.collect(),
        spacing: *dice.one_of(&[Spacing::Even, Spacing::Poisson]),
        prompt: StageTokens {
            mean: dice.between(20.0, 2_000.0),
            variation: dice.between(0.0, 1.5),
        },
        output: StageTokens { mean: dice.between(2.0, 200.0), variation: dice.between(0.0, 1.5) },
        impatient: dice
            .happens(0.5)
            .then(|| (dice.between(0.0, 0.5), Seconds(dice.between(0.5, 60.0)))),
    };
    let min = dice.whole(0, 2);
    let max = min + dice.whole(0, 6);
    let variants = (0..dice.whole(1, 2)).map(|v| variant(dice, v, pools, min.max(1).min(max)));
    ModelSetup {
        id: ModelId::new("fuzz", &format!("model-{n}")).expect("a model name"),
        variants: variants.collect(),
        objectives: Objectives {
            first_token: Some(Micros::from_millis(u64::from(dice.whole(200, 5_000)))),
            between_tokens: Some(Micros::from_millis(u64::from(dice.whole(10, 200)))),
            attainment_per_million: 990_000,
        },
        bounds: ScalingBounds {
            min: Replicas::new(min),
            max: Replicas::new(max),
            may_sleep: dice.happens(0.4),
        },
        trace: Arc::new(stages.trace(seed, n.into())),
        hold: Seconds(dice.between(1.0, 600.0)),
        admit: dice.happens(0.5).then(|| dice.whole(1, 64)),
    }
}

fn variant(dice: &mut Dice, number: u32, pools: &[PoolSetup], initial: u32) -> VariantSetup {
    let pool = dice.whole(0, pools.len() as u32 - 1) as usize;
    let linear = LinearEngine {
        base: dice.between(0.003, 0.03),
        per_prompt_token: dice.between(1e-5, 3e-4),
        per_decode: dice.between(0.0, 1e-3),
        per_cached_token: dice.between(0.0, 1e-6),
    };
    let budget = *dice.one_of(&[512, 2_048, 8_192]);
    let settings = EngineSettings::vllm(dice.whole(4, 128), budget, dice.whole(300, 4_000));
    let capacity = match dice.happens(0.9) {
        true => capacity_of(&linear, &settings),
        false => Capacity::UNKNOWN,
    };
    VariantSetup {
        paces: None,
        predicted: None,
        name: VariantName::new(&format!("v{number}")).expect("a variant name"),
        pool,
        gpus_per_replica: *dice.one_of(&[1, 1, 2, 4, 16]),
        capacity,
        cold_start: StartParts {
            image: dice.length(60.0),
            weights: dice.length(60.0),
            warm_up: dice.length(60.0),
        },
        speed: Speed { step: StepSpeed::Linear(linear), settings },
        purchase: *dice.one_of(&[Purchase::OnDemand, Purchase::Spot]),
        initial: if number == 0 { dice.whole(0, initial) } else { 0 },
    }
}

/// What policies are told that a replica can do is off by a factor of up to three, in some worlds.
fn misjudge(dice: &mut Dice, variant: &mut VariantSetup) {
    if !dice.happens(0.3) {
        return;
    }
    let off = dice.between(0.3, 3.0);
    let rate = |of: &mut Option<Interval<TokensPerSecond>>| {
        let tokens = of.and_then(|of| TokensPerSecond::from_sample(off * of.point().get() as f64));
        *of = tokens.and_then(|tokens| Interval::exact(tokens, Origin::Stated).ok());
    };
    rate(&mut variant.capacity.prefill);
    rate(&mut variant.capacity.decode);
}

/// What one replica can do: full chunks of prompt, full batches of answers, a cache nine tenths full.
pub fn capacity_of(linear: &LinearEngine, settings: &EngineSettings) -> Capacity {
    let budget = f64::from(settings.token_budget);
    let prefill = budget / (linear.base + linear.per_prompt_token * budget);
    let running = f64::from(settings.max_running) / 2.0;
    let decode = running / (linear.base + linear.per_decode * running);
    let resident = f64::from(settings.blocks) * f64::from(settings.block_tokens) * 0.9;
    let rate =
        |tokens: f64| Interval::exact(TokensPerSecond::from_sample(tokens)?, Origin::Stated).ok();
    let resident = units::Tokens::from_sample(resident);
    Capacity {
        prefill: rate(prefill),
        decode: rate(decode),
        resident: resident.and_then(|tokens| Interval::exact(tokens, Origin::Stated).ok()),
        ..Capacity::UNKNOWN
    }
}

fn fault(dice: &mut Dice, pools: usize, length: Seconds) -> Fault {
    let pool = dice.whole(0, pools as u32 - 1) as usize;
    let at = Seconds(dice.between(0.0, length.get()));
    let nodes = dice.whole(1, 4);
    match dice.whole(0, 6) {
        0 => Fault::StockOut { pool, during: dice.during(length) },
        1 => Fault::Reclaim { pool, at, nodes, notice: Seconds(*dice.one_of(&[0.0, 30.0, 120.0])) },
        2 => Fault::NodeLoss { pool, at, nodes },
        3 => Fault::StaleMetrics { during: dice.during(length) },
        4 => Fault::MissingMetrics { during: dice.during(length) },
        5 => Fault::NotANumber { during: dice.during(length) },
        _ => Fault::ClockJump { at, by: dice.between(-7_200.0, 7_200.0) },
    }
}
