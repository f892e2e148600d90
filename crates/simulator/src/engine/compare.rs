//! Skipping against step by step, on random scenarios with the performance model.
//!
//! Small caches, few places, shared beginnings and clients that hang up: everything that changes a
//! batch happens often here.

use super::{Arrival, EngineSettings, EngineTally, Event, Pace, SimulatedEngine};
use crate::chance::{self, Chance, Purpose};
use crate::seconds::Seconds;
use flyball_perf::architecture::Architecture;
use flyball_perf::catalog::Catalog;
use flyball_perf::coefficients::Coefficients;
use flyball_perf::engine::Engine as Kind;
use flyball_perf::layout::ServingLayout;
use flyball_perf::models;
use flyball_perf::precision::Dtype;
use flyball_perf::serving::batch::StepTime;
use flyball_perf::serving::fold::ServingReplica;
use flyball_perf::serving::step::StepModel;
use rand::RngExt;

/// The model on the accelerator as vLLM runs it, with a 16-bit cache; none if either is unknown.
pub fn step_model(model: &str, accelerator: &str, layout: ServingLayout) -> Option<StepModel> {
    let model = Architecture::from_config(&models::config(model)?).ok()?;
    let catalog = Catalog::builtin();
    let accelerator = catalog.accelerator(accelerator).ok()?;
    let (engine, cache) = (Kind::Vllm, Dtype::Bf16);
    let replica = ServingReplica { model: &model, accelerator, layout, engine, cache };
    StepModel::new(&replica, &accelerator.kernels_or_assumed(), &Coefficients::serving()).ok()
}

/// One random scenario.
#[derive(Clone, Debug)]
pub struct ComparedScenario {
    /// Limits of the engine.
    pub settings: EngineSettings,
    /// What happens, in order of time.
    pub moments: Vec<ComparedMoment>,
    /// Names of prompt blocks, which requests refer to by their first so many.
    pub names: Vec<Vec<u64>>,
    /// Tokens that one name stands for.
    pub name_tokens: u32,
}

/// One thing that comes from outside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ComparedMoment {
    /// A request, with names from one of the lists.
    Arrives { at: Seconds, id: u64, prompt: u32, output: u32, list: Option<usize> },
    /// Its client hangs up.
    Leaves { at: Seconds, id: u64 },
}

impl ComparedMoment {
    /// When.
    pub const fn at(&self) -> Seconds {
        match *self {
            Self::Arrives { at, .. } | Self::Leaves { at, .. } => at,
        }
    }
}

/// Models whose time bends at different places: not at all, at a window, at the tokens that sparse
/// attention reads, where scoring takes over.
pub fn step_models() -> Vec<StepModel> {
    let one = ServingLayout::ONE;
    let eight = ServingLayout::tensor(8);
    [
        ("llama-3.1-8b", "h100", one),
        ("gpt-oss-120b", "h100", one),
        ("deepseek-v3.2", "h200", eight),
        ("deepseek-v3", "h200", eight),
        ("gemma-3-1b", "rtx-4090", one),
        ("qwen3.5-27b", "h100", one),
    ]
    .into_iter()
    .filter_map(|(model, accelerator, layout)| step_model(model, accelerator, layout))
    .collect()
}

/// The scenario of a seed.
pub fn scenario(seed: u64) -> ComparedScenario {
    let mut chance = chance::stream(seed, Purpose::Lengths, 0);
    let block_tokens = [1, 8, 16, 16, 16, 32][chance.random_range(0..6)];
    let longest = chance.random_range(20..3000_u32);
    let most_output = chance.random_range(1..600_u32);
    // From room for hardly two requests to room for all.
    let room = f64::from(longest + most_output) * 10_f64.powf(chance.random_range(0.1..1.7));
    let settings = EngineSettings {
        max_running: chance.random_range(1..65),
        token_budget: chance.random_range(64..2048),
        blocks: (room / f64::from(block_tokens)) as u32 + 2,
        block_tokens,
        prefix_caching: chance.random_bool(0.7),
        ahead: chance.random_bool(0.5),
    };
    let name_tokens =
        block_tokens * chance.random_range(1..5_u32) + u32::from(chance.random_bool(0.2));
    let names = (0..4).map(|list| shared_names(list, &mut chance)).collect();
    let pause = 10_f64.powf(chance.random_range(-3.0..0.3));
    let mut now = 0.0;
    let mut moments = Vec::new();
    for id in 0..chance.random_range(1..60) {
        // Some come at the same moment, and some long after the rest has gone.
        now += match chance.random_range(0..10) {
            0 => 0.0,
            1 => 20.0 * pause,
            _ => pause * -chance.random_range(1e-9..1.0_f64).ln(),
        };
        let at = Seconds(now);
        let (prompt, output) =
            (chance.random_range(1..=longest), chance.random_range(1..=most_output));
        let list = chance.random_bool(0.5).then(|| chance.random_range(0..4));
        moments.push(ComparedMoment::Arrives { at, id, prompt, output, list });
        if chance.random_bool(0.15) {
            let patience = 5.0 * pause * chance.random_range(0.0..1.0);
            moments.push(ComparedMoment::Leaves { at: Seconds(now + patience), id });
        }
    }
    moments.sort_by_key(ComparedMoment::at);
    ComparedScenario { settings, moments, names, name_tokens }
}

/// Lists that begin alike and then part.
fn shared_names(list: u64, chance: &mut Chance) -> Vec<u64> {
    let alike = chance.random_range(0..60);
    (0..400).map(|index| if index < alike { index } else { 1000 * (list + 1) + index }).collect()
}

/// Plays a scenario. `inspect` sees the engine after every moment.
pub fn play<S: StepTime>(
    scenario: &ComparedScenario,
    step: S,
    pace: Pace,
    inspect: &mut impl FnMut(&SimulatedEngine<S>),
) -> (Vec<Event>, EngineTally) {
    let mut events = Vec::new();
    let mut engine = SimulatedEngine::new(scenario.settings, step, pace);
    for moment in &scenario.moments {
        engine.advance(moment.at(), &mut |event| events.push(event));
        match *moment {
            ComparedMoment::Arrives { at, id, prompt, output, list } => {
                let names = list.map_or(&[][..], |list| {
                    let all = &scenario.names[list];
                    &all[..all.len().min(prompt.div_ceil(scenario.name_tokens) as usize)]
                });
                let name_tokens = scenario.name_tokens;
                let arrival = Arrival { at, prompt, output, names, name_tokens };
                let taken = engine.submit(id, &arrival);
                debug_assert_eq!(taken, engine.scheduler().fits(&arrival));
            }
            ComparedMoment::Leaves { at, id } => engine.abort(id, at),
        }
        inspect(&engine);
    }
    while let Some(next) = engine.next_event() {
        engine.advance(next, &mut |event| events.push(event));
        inspect(&engine);
    }
    (events, engine.tally())
}

/// The largest relative difference between the times of one scenario's events in the two paces.
/// Infinite if the events themselves differ.
pub fn largest_difference(seed: u64, models: &[StepModel]) -> f64 {
    let scenario = scenario(seed);
    let model = &models[seed as usize % models.len()];
    let one = |pace| play(&scenario, model.clone(), pace, &mut |_| ()).0;
    let (steps, skips) = (one(Pace::StepByStep), one(Pace::Skipping));
    let same = |(a, b): (&Event, &Event)| a.id == b.id && a.what == b.what;
    if steps.len() != skips.len() || !steps.iter().zip(&skips).all(same) {
        return f64::INFINITY;
    }
    let apart = |(a, b): (&Event, &Event)| {
        let (a, b) = (a.at.get(), b.at.get());
        if a == b { 0.0 } else { (a - b).abs() / a.abs().max(f64::MIN_POSITIVE) }
    };
    steps.iter().zip(&skips).map(apart).fold(0.0, f64::max)
}
