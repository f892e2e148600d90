//! From a row to what the model says about it.

use super::room;
use super::rows::{Load, Row};
use flyball_perf::hardware::Kernels;
use flyball_perf::layout::ServingLayout;
use flyball_perf::serving::batch::{Batch, StepTime};
use flyball_perf::serving::factors::Factors;
use flyball_perf::serving::fold::{ServingReplica, Uncalibrated};
use flyball_perf::serving::steady::{self, EngineLimits, RequestShape, Wave};
use flyball_perf::serving::step::StepModel;

/// An open loop of a benchmark sends a few hundred requests, so no more than this ever wait.
const OPEN_LOOP_REQUESTS: f64 = 300.0;

/// A row with all folded that calibration does not change.
pub(super) struct Question {
    ways: Vec<(Uncalibrated, EngineLimits)>,
    shape: RequestShape,
    load: Load,
}

impl Question {
    pub(super) fn new(row: &Row) -> Self {
        Self::with_kernels(row, &row.accelerator.kernels_or_assumed())
    }

    pub(super) fn with_kernels(row: &Row, kernels: &Kernels) -> Self {
        let shape = RequestShape::uniform(row.input, row.output);
        let way = |layout: ServingLayout| {
            let Row { model, accelerator, engine, cache, .. } = row;
            let replica =
                ServingReplica { model, accelerator, layout, engine: *engine, cache: *cache };
            let limits = room::limits(model, accelerator, layout, *engine, *cache, &shape);
            (Uncalibrated::new(&replica, kernels), limits)
        };
        let mut ways = vec![way(row.layout)];
        if row.free_layout && row.layout.tensor > 1 {
            let copies = row.layout.tensor;
            ways.push(way(ServingLayout { tensor: 1, attention_copies: copies, ..row.layout }));
        }
        Self { ways, shape, load: row.load }
    }

    /// Seconds per output token, or output tokens per second under full load.
    pub(super) fn answer(&self, factors: &Factors) -> f64 {
        let answers = self.ways.iter().map(|(plain, limits)| {
            let step = plain.with(factors);
            match self.load {
                Load::Closed(clients) => steady::closed_loop(&step, &self.shape, limits, clients),
                Load::InStep(clients) => steady::in_step(&step, &self.shape, limits, clients),
                Load::Pool(requests) => self.pool(&step, limits, requests),
                Load::Open(rate) => self.open_loop(&step, limits, rate),
                Load::Full => steady::saturated(&step, &self.shape, limits),
            }
        });
        // More than one way only where throughput was published without the layout: the publisher
        // took the better one.
        answers.fold(0.0, f64::max)
    }

    /// Mean seconds to the first token, as the product computes it.
    pub(super) fn first_token(&self, factors: &Factors) -> Option<f64> {
        let (plain, limits) = &self.ways[0];
        let step = plain.with(factors);
        match self.load {
            Load::Open(rate) => {
                steady::at_rate(&step, &self.shape, limits, rate).map(|at| at.ttft_mean)
            }
            Load::Closed(clients) | Load::InStep(clients) => {
                let running = clients.min(held(limits, &self.shape));
                let at = steady::operating(&step, &self.shape, limits, running);
                // Who does not fit waits for a whole answer of somebody else.
                let queued = (clients / running - 1.0) * self.shape.output * at.tpot;
                Some(at.ttft_mean + queued)
            }
            Load::Pool(_) | Load::Full => None,
        }
    }

    /// Whether the clients ran in step, by the published time to the first token: it is at least what
    /// a request waits for when all prompts are computed at once, at the speed of the kernels alone.
    /// Not where some clients wait for room, which takes long too.
    pub(super) fn in_step(&self, clients: f64, ttft: f64) -> bool {
        let (plain, limits) = &self.ways[0];
        let step = plain.with(&Factors::KERNELS);
        let together = Wave::of(&step, &self.shape, limits, clients).first_token();
        clients > 1.0 && clients <= held(limits, &self.shape) && ttft >= together
    }

    /// The shortest step that decodes, with these factors, for as many requests as the row has.
    pub(super) fn decoding(&self, requests: f64, factors: &Factors) -> f64 {
        let (plain, limits) = &self.ways[0];
        self.pool(&plain.with(factors), limits, requests)
    }

    /// Workers that only decode never see a prompt.
    fn pool(&self, step: &StepModel, limits: &EngineLimits, requests: f64) -> f64 {
        let running = requests.min(held(limits, &self.shape));
        step.seconds(&Batch::decoding(running, self.shape.input + self.shape.output / 2.0))
    }

    /// Requests inside = rate times the time of an answer, which depends on the requests inside.
    fn open_loop(&self, step: &StepModel, limits: &EngineLimits, rate: f64) -> f64 {
        let most = held(limits, &self.shape).min(OPEN_LOOP_REQUESTS);
        let mut inside = 1.0;
        for _ in 0..60 {
            let tpot = steady::closed_loop(step, &self.shape, limits, inside);
            let next = (rate * self.shape.output * tpot).clamp(0.05, most);
            inside = 0.5 * (inside + next);
        }
        steady::closed_loop(step, &self.shape, limits, inside)
    }
}

fn held(limits: &EngineLimits, shape: &RequestShape) -> f64 {
    let by_cache = limits.cache_tokens / (shape.input + limits.output_held * shape.output);
    limits.sequences.min(by_cache)
}
