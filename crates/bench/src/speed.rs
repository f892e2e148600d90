//! How fast the simulated engine is on one core.
//!
//! A trace of conversations goes to one replica of Llama-3.1-8B on an H100, once step by step and once
//! skipping. Sped up twofold, the hour that Azure published (19,366 requests) asks such a replica for
//! about half of what it can do.

use anyhow::{Context, Result};
use flyball_perf::layout::ServingLayout;
use flyball_perf::serving::step::StepModel;
use flyball_simulator::engine::{
    Arrival, EngineSettings, EngineTally, Pace, SimulatedEngine, compare,
};
use flyball_simulator::seconds::Seconds;
use flyball_simulator::traffic::Trace;
use std::time::Instant;

/// Blocks of such a replica's cache: 60 GB at 128 KiB per token, 16 tokens each.
const BLOCKS: u32 = 28_000;

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Speed {
    pub(crate) requests: u64,
    /// Step by step.
    pub(crate) steps: u64,
    pub(crate) steps_per_second: f64,
    /// Skipping, and how often it asked for the time of a step.
    pub(crate) requests_per_second: f64,
    pub(crate) evaluations: u64,
    /// Largest relative difference of the two in the time of an event.
    pub(crate) largest_difference: f64,
}

/// Plays the trace `times` over, `faster` than it was, in both paces.
pub(crate) fn measure(trace: &Trace, faster: f64, times: u32) -> Result<Speed> {
    let model = compare::step_model("llama-3.1-8b", "h100", ServingLayout::ONE)
        .context("the catalogue has no Llama-3.1-8B on H100")?;
    let (steps, slow, step_events) = play(trace, faster, times, &model, Pace::StepByStep)?;
    let (skips, fast, skip_events) = play(trace, faster, times, &model, Pace::Skipping)?;
    let apart = step_events.iter().zip(&skip_events).map(|(a, b)| (a / b - 1.0).abs());
    let requests = trace.requests.len() as u64 * u64::from(times);
    Ok(Speed {
        requests,
        steps: steps.steps,
        steps_per_second: steps.steps as f64 / slow,
        requests_per_second: requests as f64 / fast,
        evaluations: skips.evaluations,
        largest_difference: if step_events.len() == skip_events.len() {
            apart.fold(0.0, f64::max)
        } else {
            f64::INFINITY
        },
    })
}

/// The largest relative difference between skipping and step by step in so many random scenarios.
pub(crate) fn largest_difference(scenarios: u64) -> f64 {
    let models = compare::step_models();
    (0..scenarios).map(|seed| compare::largest_difference(seed, &models)).fold(0.0, f64::max)
}

fn play(
    trace: &Trace,
    faster: f64,
    times: u32,
    model: &StepModel,
    pace: Pace,
) -> Result<(EngineTally, f64, Vec<f64>)> {
    let mut engine =
        SimulatedEngine::new(EngineSettings::vllm(256, 8192, BLOCKS), model.clone(), pace);
    let length = trace.requests.last().map_or(0.0, |last| last.at.get()) + 1.0;
    let mut ends = Vec::with_capacity(3 * trace.requests.len() * times as usize);
    let mut id = 0;
    let began = Instant::now();
    for turn in 0..times {
        for request in &trace.requests {
            let at = Seconds((request.at.get() + length * f64::from(turn)) / faster);
            engine.advance(at, &mut |event| ends.push(event.at.get()));
            let names = &trace.blocks[request.blocks.start as usize..request.blocks.end as usize];
            let (prompt, output) = (request.prompt, request.output);
            let name_tokens = trace.block_tokens;
            engine.submit(id, &Arrival { at, prompt, output, names, name_tokens })?;
            id += 1;
        }
    }
    engine.advance(Seconds(f64::INFINITY), &mut |event| ends.push(event.at.get()));
    Ok((engine.tally(), began.elapsed().as_secs_f64(), ends))
}
