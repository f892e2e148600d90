//! The border to the engine of one replica.

use crate::engine::{Arrival, EngineSettings, Pace, SimulatedEngine, What};
use crate::seconds::Seconds;
use flyball_perf::serving::batch::{Batch, StepTime};
use flyball_perf::serving::steady::{EngineLimits, RequestShape};
use flyball_perf::serving::step::StepModel;
use std::sync::Arc;

/// The engine of one replica, as the cluster uses it. Time only goes forward.
pub trait ReplicaEngine {
    /// Takes a request. Refused if it can never fit.
    fn submit(&mut self, id: u64, at: Seconds, request: &EngineWork<'_>) -> bool;

    /// A client hangs up. The request may still end before the engine notices.
    fn abort(&mut self, id: u64, at: Seconds);

    /// When to look again if nothing comes before; `None` if nothing is under way.
    fn next_event(&self) -> Option<Seconds>;

    /// Lets time pass and reports what happened up to `until`.
    fn advance(&mut self, until: Seconds, sink: &mut dyn FnMut(Happening));

    /// What can be seen from outside.
    fn load(&self, now: Seconds) -> EngineLoad;

    /// Tokens of a request inside that are out.
    fn emitted(&self, id: u64) -> Option<u32>;

    /// From now on it computes so many times as fast as it was built to.
    fn change_speed(&mut self, at: Seconds, factor: f64);
}

/// A request as an engine takes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EngineWork<'a> {
    /// Tokens of its prompt.
    pub prompt: u32,
    /// Tokens that it will generate.
    pub output: u32,
    /// Names of its prompt's blocks.
    pub blocks: &'a [u64],
    /// Tokens that one name stands for.
    pub block_tokens: u32,
}

/// Something that happened to a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Happening {
    /// Its first token is there.
    FirstToken {
        /// Which.
        id: u64,
        /// When.
        at: Seconds,
    },
    /// Its last token is there, and it is gone.
    Finished {
        /// Which.
        id: u64,
        /// When.
        at: Seconds,
    },
    /// It was given up, and is gone.
    Aborted {
        /// Which.
        id: u64,
    },
}

/// What can be seen of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EngineLoad {
    /// Requests that it works on.
    pub running: u32,
    /// Requests that wait in it.
    pub waiting: u32,
    /// Prompt tokens that it has not read.
    pub waiting_tokens: u64,
    /// Tokens that it holds for requests it works on.
    pub resident: u64,
    /// Share of its cache that those are.
    pub used_share: f64,
    /// Tokens generated since its start.
    pub generated: u64,
}

/// How fast one replica computes, and what fits into it.
#[derive(Clone, Debug)]
pub struct Speed {
    /// What a step costs.
    pub step: StepSpeed,
    /// The limits of the engine.
    pub settings: EngineSettings,
}

/// What a step costs.
#[derive(Clone, Debug)]
pub enum StepSpeed {
    /// So much for each part of it.
    Linear(LinearEngine),
    /// As the performance model says.
    Modelled(Arc<StepModel>),
}

/// The time of a step as a sum, for replicas of which only the speed is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearEngine {
    /// Seconds per step.
    pub base: f64,
    /// Seconds per prompt token computed.
    pub per_prompt_token: f64,
    /// Seconds per request that gets a token.
    pub per_decode: f64,
    /// Seconds per cached token read.
    pub per_cached_token: f64,
}

impl Speed {
    /// An idle engine of this speed.
    pub(super) fn engine(&self) -> Box<dyn ReplicaEngine> {
        let step = Changed { step: self.step.clone(), factor: 1.0 };
        Box::new(SimulatedEngine::new(self.settings, step, Pace::Skipping))
    }

    /// Seconds per token with one request of this shape.
    pub fn idle_pace(&self, shape: &RequestShape) -> f64 {
        self.step.seconds(&Batch::decoding(1.0, shape.input + shape.output / 2.0))
    }

    /// The same limits for the formulas of the steady state.
    pub fn limits(&self) -> EngineLimits {
        let settings = &self.settings;
        EngineLimits {
            chunk: f64::from(settings.token_budget),
            copies: 1.0,
            sequences: f64::from(settings.max_running),
            cache_tokens: f64::from(settings.blocks) * f64::from(settings.block_tokens),
            output_held: 1.0,
        }
    }
}

impl StepTime for StepSpeed {
    fn seconds(&self, batch: &Batch) -> f64 {
        match self {
            Self::Linear(linear) => linear.seconds(batch),
            Self::Modelled(model) => model.seconds(batch),
        }
    }

    fn straight_until(&self, batch: &Batch) -> f64 {
        match self {
            // A sum is straight everywhere.
            Self::Linear(_) => f64::INFINITY,
            Self::Modelled(model) => model.straight_until(batch),
        }
    }
}

impl LinearEngine {
    /// Seconds for one step.
    pub fn seconds(&self, batch: &Batch) -> f64 {
        self.base
            + self.per_prompt_token * batch.prefill
            + self.per_decode * batch.decodes
            + self.per_cached_token * batch.cached
    }
}

/// What a step costs on an engine that computes so many times as fast as it was built to.
#[derive(Clone, Debug)]
pub struct Changed {
    /// As it was built.
    pub step: StepSpeed,
    /// How many times as fast.
    pub factor: f64,
}

impl StepTime for Changed {
    fn seconds(&self, batch: &Batch) -> f64 {
        self.step.seconds(batch) / self.factor
    }

    fn straight_until(&self, batch: &Batch) -> f64 {
        self.step.straight_until(batch)
    }
}

impl ReplicaEngine for SimulatedEngine<Changed> {
    fn submit(&mut self, id: u64, at: Seconds, request: &EngineWork<'_>) -> bool {
        let EngineWork { prompt, output, blocks: names, block_tokens: name_tokens } = *request;
        Self::submit(self, id, &Arrival { at, prompt, output, names, name_tokens }).is_ok()
    }

    fn abort(&mut self, id: u64, at: Seconds) {
        Self::abort(self, id, at);
    }

    fn next_event(&self) -> Option<Seconds> {
        Self::next_event(self)
    }

    fn advance(&mut self, until: Seconds, sink: &mut dyn FnMut(Happening)) {
        Self::advance(self, until, &mut |event| match event.what {
            What::FirstToken => sink(Happening::FirstToken { id: event.id, at: event.at }),
            What::Finished => sink(Happening::Finished { id: event.id, at: event.at }),
            What::Aborted => sink(Happening::Aborted { id: event.id }),
            What::Scheduled { .. } | What::Preempted => {}
        });
    }

    fn emitted(&self, id: u64) -> Option<u32> {
        Self::emitted(self, id)
    }

    fn change_speed(&mut self, at: Seconds, factor: f64) {
        self.change_step(at, |step| step.factor = factor);
    }

    fn load(&self, now: Seconds) -> EngineLoad {
        let load = Self::load(self, now);
        let settings = self.scheduler().settings();
        let used = u64::from(settings.blocks - load.free_blocks.min(settings.blocks));
        EngineLoad {
            running: load.running,
            waiting: load.waiting,
            waiting_tokens: load.waiting_tokens,
            resident: used * u64::from(settings.block_tokens),
            used_share: load.used_share,
            generated: load.generated,
        }
    }
}
