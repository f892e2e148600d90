//! How fast the model answers.
//!
//! The machine is shared, and noise only ever adds: the best of many short runs is the time.

use super::section::Section;
use crate::figures::Op;
use crate::page::measure;
use anyhow::{Context, Result};
use flyball_perf::architecture::Architecture;
use flyball_perf::catalog::{Catalog, PriceKind};
use flyball_perf::coefficients::Coefficients;
use flyball_perf::engine::Engine;
use flyball_perf::layout::ServingLayout;
use flyball_perf::models;
use flyball_perf::precision::Dtype;
use flyball_perf::search::serve::{
    Knowledge, OfferedPart, ServeObjective, ServeQuestion, Targets, serve,
};
use flyball_perf::serving::batch::{Batch, StepTime as _};
use flyball_perf::serving::fold::ServingReplica;
use flyball_perf::serving::steady::RequestShape;
use flyball_perf::serving::step::StepModel;
use std::hint::black_box;
use std::time::Instant;

const RUNS: usize = 30;
const STEPS: u32 = 20_000;
const LAYOUTS: usize = 10_000;

const INTRO: &str = "One engine step of a mixture of experts (the dearest kind: DeepSeek-V3 on eight \
H200, prompt tokens beside decoding ones), and a ranking of at least 10,000 layouts and settings, \
scaled to 10,000. One core; the best of 30 runs.";

pub(super) fn section(catalog: &Catalog) -> Result<Section> {
    let figure = |name, value, unit, target| measure(name, value, unit, Op::AtMost, target);
    Ok(Section {
        title: "Speed of the model itself",
        intro: INTRO.to_owned(),
        splits: Vec::new(),
        tables: Vec::new(),
        misses: Vec::new(),
        figures: vec![
            figure("plan.step_ns", step_seconds(catalog)? * 1e9, "ns", 200.0),
            figure("plan.rank_10k_ms", rank_seconds(catalog)? * 1e3, "ms", 100.0),
        ],
    })
}

fn model(name: &str) -> Result<Architecture> {
    let config = models::config(name).with_context(|| format!("no shipped model {name}"))?;
    Architecture::from_config(&config).with_context(|| format!("reading {name}"))
}

fn best(mut run: impl FnMut()) -> f64 {
    let once = |_| {
        let began = Instant::now();
        run();
        began.elapsed().as_secs_f64()
    };
    (0..RUNS).map(once).fold(f64::INFINITY, f64::min)
}

fn step_seconds(catalog: &Catalog) -> Result<f64> {
    let model = model("deepseek-v3")?;
    let accelerator = catalog.accelerator("h200")?;
    let replica = ServingReplica {
        model: &model,
        accelerator,
        layout: ServingLayout::tensor(8),
        engine: Engine::Sglang,
        cache: Dtype::Bf16,
    };
    let step =
        StepModel::new(&replica, &accelerator.kernels_or_assumed(), &Coefficients::serving())?;
    let seconds = best(|| {
        for count in 0..STEPS {
            let batch = Batch::decoding(f64::from(count % 256 + 1), 2000.0);
            black_box(step.seconds(black_box(&batch.with_prompt(512.0, 2000.0))));
        }
    });
    Ok(seconds / f64::from(STEPS))
}

fn rank_seconds(catalog: &Catalog) -> Result<f64> {
    let model = model("deepseek-v3")?;
    let priced = |accelerator| {
        let accelerator: &flyball_perf::hardware::Accelerator = accelerator;
        OfferedPart::priced(catalog, accelerator, None, PriceKind::OnDemand)
    };
    // Parts on which the model fits, so that no layout is ruled out cheaply.
    let large = ["h200", "b200", "b300-sxm", "mi300x"];
    let large: Vec<OfferedPart<'_>> =
        large.iter().map(|name| Ok(priced(catalog.accelerator(name)?))).collect::<Result<_>>()?;
    let parts: Vec<OfferedPart<'_>> = large.iter().cloned().cycle().take(240).collect();
    let question = ServeQuestion {
        model: &model,
        engine: Engine::Vllm,
        cache: Dtype::Bf16,
        shape: RequestShape::uniform(1500.0, 300.0),
        rate: 50.0,
        targets: Targets { ttft_p95: Some(2.0), itl_p95: Some(0.1), tpot: None },
        parts: &parts,
        objective: ServeObjective::Cheapest,
        spare: 0,
        most_load: 1.0,
        fewest_replicas: 1,
        most_gpus: 64,
        sequences: 256,
    };
    let knowledge = Knowledge::builtin();
    let considered = serve(&question, &knowledge).considered;
    anyhow::ensure!(considered >= LAYOUTS, "only {considered} layouts to rank");
    let seconds = best(|| {
        black_box(serve(black_box(&question), &knowledge));
    });
    Ok(seconds * LAYOUTS as f64 / considered as f64)
}
