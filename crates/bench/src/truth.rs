//! The simulated engine against real ones: four published runs of vLLM under load.
//!
//! Each run is 300 requests of ShareGPT, ten per second, with the times of each request (casys-kaist,
//! LLMServingSim, `bench/examples`, MIT). They are read in place. No number of the model was fitted
//! on them: the suite is sealed in `cargo xtask accuracy`, and this scores it under load.
//!
//! Two runs are on two accelerators each. How fast these exchange is a matter of the host, and the
//! publisher says that its host is slow; [`Exchange`] says whose word is taken.

use anyhow::{Context, Result, anyhow};
use flyball_figures::quantile::quantile;
use flyball_perf::architecture::Architecture;
use flyball_perf::catalog::Catalog;
use flyball_perf::coefficients::Coefficients;
use flyball_perf::engine::Engine as Kind;
use flyball_perf::layout::ServingLayout;
use flyball_perf::memory::serving::{Budget, ReplicaMemory as Memory};
use flyball_perf::models;
use flyball_perf::precision::Dtype;
use flyball_perf::serving::batch::Batch;
use flyball_perf::serving::fold::ServingReplica;
use flyball_perf::serving::step::StepModel;
use flyball_simulator::engine::{
    Arrival, EngineSettings, Event, Pace, Scheduler, SimulatedEngine, What,
};
use flyball_simulator::seconds::Seconds;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The folder of each run, and model and part as the catalogue calls them.
const RUNS: [(&str, &str, &str); 4] = [
    ("RTX4090_Llama-3.1-8B", "llama-3.1-8b", "rtx-4090"),
    ("RTXPRO6000_Llama-3.1-8B", "llama-3.1-8b", "rtx-pro-6000"),
    ("RTXPRO6000_Qwen3-32B", "qwen3-32b", "rtx-pro-6000"),
    ("RTXPRO6000_Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b", "rtx-pro-6000"),
];

/// Bytes per second and seconds of a start between the two accelerators of the publisher's host, as
/// its own simulator is told (`bench/examples/RTXPRO6000/*/config.json`: `link_bw` 16, `link_latency`
/// 20000; whether these were measured apart or chosen on the runs, it does not say). The catalogue has
/// 39 GB/s, from another host whose accelerators reach each other directly.
const PUBLISHED_LINK: (f64, f64) = (16e9, 20e-6);

/// Whether reading and multiplying overlap in matrix products of RTX PRO 6000, and how much of the
/// cache it reads again for each further query head in steps that mix prompts and decoding. From the
/// kernel tables of the same publisher (`profiler/perf/RTXPRO6000/*/bf16`, vLLM 0.19), not from the
/// runs:
///
/// - `dense.csv`: one layer's products over reading alone, of Llama-3.1-8B and Qwen3-32B: 1.14 and 1.22
///   with 128 rows, 1.36 and 1.44 with 256, 2.19 and 2.21 with 512. The root of the sum of squares says
///   1.10 and 1.11, 1.36 and 1.40, 2.10 and 2.19; the longer of the two 1, 1 and 1.84 and 1.95.
/// - `attention.csv`: 128 requests of 1024 tokens decode 1.75 times as long beside 512 prompt tokens
///   where four query heads share a cached one, and 2.98 and 2.96 times where eight do (Llama-3.1-8B,
///   Qwen3-32B over two, Qwen3-30B-A3B). 1 + 0.27 for each further head says 1.81 and 2.89.
///
/// They are not in the catalogue: there they would shift the common coefficients, and the rows of
/// GB200 would get 2 points worse. RTX 4090 is left as the catalogue assumes it.
const RTX_PRO_6000_KERNELS: (bool, f64) = (false, 0.27);

/// Whose word is taken about the link between accelerators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exchange {
    Catalogue,
    Publisher,
}

/// One run, measured and simulated.
#[derive(Clone, Debug)]
pub(crate) struct RunScore {
    pub(crate) run: &'static str,
    pub(crate) requests: usize,
    pub(crate) tpot: Pair,
    pub(crate) ttft: Pair,
}

/// The same quantity of the same requests, in seconds.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) measured: Spread,
    pub(crate) simulated: Spread,
}

/// Mean and quantiles over requests, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    pub(crate) p50: f64,
    pub(crate) p90: f64,
}

impl Pair {
    /// Errors of mean, p50 and p90, relative, with their sign.
    pub(crate) fn errors(&self) -> [f64; 3] {
        let of = |simulated: f64, measured: f64| simulated / measured - 1.0;
        let (a, b) = (&self.simulated, &self.measured);
        [of(a.mean, b.mean), of(a.p50, b.p50), of(a.p90, b.p90)]
    }
}

/// Scores every run in the folder `data/vllm_runs` of the shared data.
pub(crate) fn score(shared: &Path, exchange: Exchange) -> Result<Vec<RunScore>> {
    let runs = shared.join("data/vllm_runs");
    let one = |&(run, model, part): &(&'static str, &str, &str)| {
        score_run(&runs.join(run), run, model, part, exchange).with_context(|| format!("in {run}"))
    };
    RUNS.iter().map(one).collect()
}

/// One request of a run: when it came, how long it is, and when its first and last token were out,
/// in seconds from the first arrival.
#[derive(Clone, Copy, Debug)]
struct Served {
    at: f64,
    prompt: u32,
    output: u32,
    first: f64,
    last: f64,
}

fn score_run(
    folder: &Path,
    run: &'static str,
    model: &str,
    part: &str,
    exchange: Exchange,
) -> Result<RunScore> {
    let meta = fs::read_to_string(folder.join("meta.json"))
        .with_context(|| format!("reading {}", folder.join("meta.json").display()))?;
    let meta: Value = serde_json::from_str(&meta)?;
    let served = requests(&fs::read_to_string(folder.join("requests.jsonl"))?)?;
    let setup = Setup::new(&meta, model, part, exchange)?;
    let simulated = setup.simulate(&served)?;
    let pair = |of: fn(&Served) -> Option<f64>| Pair {
        measured: Spread::of(served.iter().filter_map(of)),
        simulated: Spread::of(simulated.iter().filter_map(of)),
    };
    let tpot =
        |one: &Served| (one.output > 1).then(|| (one.last - one.first) / f64::from(one.output - 1));
    let ttft = |one: &Served| Some(one.first - one.at);
    Ok(RunScore { run, requests: served.len(), tpot: pair(tpot), ttft: pair(ttft) })
}

/// The requests, on one clock. Arrivals are wall time and the rest is the engine's own clock; the
/// two are apart by at most what the fastest request took from one to the other.
fn requests(text: &str) -> Result<Vec<Served>> {
    let rows: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let number = |row: &Value, name: &str| {
        row[name].as_f64().ok_or_else(|| anyhow!("a request without {name}"))
    };
    let mut apart = f64::INFINITY;
    let mut start = f64::INFINITY;
    for row in &rows {
        let at = number(row, "arrival_time")?;
        apart = apart.min(number(row, "queued_ts")? - at);
        start = start.min(at);
    }
    let mut served = Vec::new();
    for row in &rows {
        served.push(Served {
            at: number(row, "arrival_time")? - start,
            prompt: number(row, "input_toks")? as u32,
            output: number(row, "output_toks")? as u32,
            first: number(row, "first_token_ts")? - apart - start,
            last: number(row, "last_token_ts")? - apart - start,
        });
    }
    served.sort_by(|a, b| a.at.total_cmp(&b.at));
    Ok(served)
}

/// The replica of a run.
struct Setup {
    settings: EngineSettings,
    step: StepModel,
    copies: u32,
}

impl Setup {
    fn new(meta: &Value, model: &str, part: &str, exchange: Exchange) -> Result<Self> {
        let setting = |name: &str| {
            let value = meta["engine_kwargs"][name].as_u64();
            value.map(|value| value as u32).ok_or_else(|| anyhow!("a run without {name}"))
        };
        let config = models::config(model).ok_or_else(|| anyhow!("no model {model}"))?;
        let model = Architecture::from_config(&config)?;
        let catalog = Catalog::builtin();
        let mut accelerator = catalog.accelerator(part)?.clone();
        let mut kernels = accelerator.kernels_or_assumed();
        if exchange == Exchange::Publisher {
            let (bandwidth, start) = PUBLISHED_LINK;
            for group in accelerator.measured.iter_mut().flat_map(|of| &mut of.all_reduce) {
                group.nccl_bus_bandwidth = bandwidth;
            }
            kernels.all_reduce.values_mut().for_each(|starts| *starts = [start; 3]);
        }
        if part == "rtx-pro-6000" {
            (kernels.gemm_overlaps, kernels.mixed_rereads) = RTX_PRO_6000_KERNELS;
        }
        let accelerator = &accelerator;
        let copies = setting("data_parallel_size")?;
        let layout = ServingLayout {
            attention_copies: copies,
            whole_experts: meta["engine_kwargs"]["enable_expert_parallel"] == true,
            ..ServingLayout::tensor(setting("tensor_parallel_size")?)
        };
        let (sequences, batched_tokens) =
            (setting("max_num_seqs")?, setting("max_num_batched_tokens")?);
        let budget = Budget { batched_tokens, sequences, ..Budget::default() };
        let estimated = || {
            let memory =
                Memory::new(&model, layout, budget).memory(accelerator.usable_memory, 1000.0);
            (memory.cache_tokens.point().get() / 16 / u64::from(copies)) as u32
        };
        let counted = meta["kv_cache"]["num_gpu_blocks"].as_u64().map(|blocks| blocks as u32);
        let (engine, cache) = (Kind::Vllm, Dtype::Bf16);
        let replica = ServingReplica { model: &model, accelerator, layout, engine, cache };
        let step = StepModel::new(&replica, &kernels, &Coefficients::serving())?;
        let blocks = counted.unwrap_or_else(estimated);
        Ok(Self { settings: EngineSettings::vllm(sequences, batched_tokens, blocks), step, copies })
    }

    fn simulate(&self, served: &[Served]) -> Result<Vec<Served>> {
        let mut simulated = served.to_vec();
        let mut note = |event: Event| {
            let one = &mut simulated[event.id as usize];
            match event.what {
                What::FirstToken => one.first = event.at.get(),
                What::Finished => one.last = event.at.get(),
                _ => {}
            }
        };
        if self.copies > 1 {
            self.together(served, &mut note);
        } else {
            let mut engine = SimulatedEngine::new(self.settings, self.step.clone(), Pace::Skipping);
            for (id, one) in served.iter().enumerate() {
                engine.advance(Seconds(one.at), &mut note);
                engine
                    .submit(id as u64, &Arrival::plain(Seconds(one.at), one.prompt, one.output))?;
            }
            engine.advance(Seconds(f64::INFINITY), &mut note);
        }
        Ok(simulated)
    }

    /// Copies of the attention around shared experts: each has its own requests, and all of them
    /// take every step together.
    fn together(&self, served: &[Served], note: &mut impl FnMut(Event)) {
        let mut engines = vec![Scheduler::new(self.settings); self.copies as usize];
        let mut coming = served.iter().enumerate().peekable();
        let (mut began, mut now) = (0.0, 0.0);
        loop {
            if engines.iter().all(Scheduler::is_empty) {
                let Some((_, next)) = coming.peek() else { break };
                now = next.at.max(now);
                began = now;
            }
            while let Some((id, one)) = coming.next_if(|(_, one)| one.at <= began) {
                // vLLM's balance: waiting requests count four times.
                let weight = |engine: &&mut Scheduler| {
                    let load = engine.load(1);
                    4 * load.waiting + load.running
                };
                if let Some(engine) = engines.iter_mut().min_by_key(weight) {
                    engine
                        .queue(id as u64, &Arrival::plain(Seconds(one.at), one.prompt, one.output));
                }
            }
            let mut batches = Vec::new();
            for engine in &mut engines {
                batches.extend(engine.compose(Seconds(now), note));
                engine.release_leaving();
            }
            began = now;
            if batches.is_empty() {
                continue;
            }
            now += self.joint_seconds(&batches);
            for engine in &mut engines {
                engine.complete(1, Seconds(now), note);
            }
        }
    }

    /// The slowest copy decides, and the experts work for all of them.
    fn joint_seconds(&self, batches: &[Batch]) -> f64 {
        let ways = f64::from(self.copies);
        let mut sum = Batch::default();
        let mut slowest = 0.0_f64;
        for batch in batches {
            sum.decodes += batch.decodes;
            sum.cached += batch.cached;
            sum.prefill += batch.prefill;
            sum.pairs += batch.pairs;
            let alike = Batch {
                decodes: ways * batch.decodes,
                cached: ways * batch.cached,
                prefill: ways * batch.prefill,
                pairs: ways * batch.pairs,
            };
            let parts = self.step.parts(&alike);
            slowest = slowest.max(parts.total() - parts.experts);
        }
        slowest + self.step.parts(&sum).experts
    }
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut all: Vec<f64> = values.collect();
        let (p50, p90) = (quantile(&mut all, 0.5), quantile(&mut all, 0.9));
        Self { mean: all.iter().sum::<f64>() / all.len().max(1) as f64, p50, p90 }
    }
}
