//! What an emulated engine is told at its start.

use crate::faults::Faults;
use crate::kv_events::EventShape;
use flyball_engines::Engine;
use flyball_simulator::cluster::{LinearEngine, Speed, StepSpeed};
use flyball_simulator::engine;
use std::net::{Ipv4Addr, SocketAddr};

/// The settings of one emulated engine.
#[derive(Clone, Debug)]
pub struct EmulatorSettings {
    /// Where it listens; port 0 for any that is free.
    pub listen: SocketAddr,
    /// Whose metrics it shows, under whose path.
    pub engine: Engine,
    /// The names that it answers to; the first is its own. A request for another gets 404.
    pub models: Vec<String>,
    /// What a step costs, and what fits. [`crate::speed::predicted`] has it for real parts.
    pub speed: Speed,
    /// How many times as fast as the wall's clock its own runs.
    pub speed_up: f64,
    /// Tokens of a stream that leave together, but for the first: vLLM's `--stream-interval`.
    pub stream_interval: u32,
    /// Tokens of an answer to a request that sets no limit.
    pub answer_tokens: u32,
    /// Tokens of prompt and answer together; as many as the cache holds if not set.
    pub longest: Option<u32>,
    /// Requests that the log keeps.
    pub log: usize,
    /// For whom faults hit.
    pub seed: u64,
    /// What is wrong from the start.
    pub faults: Faults,
    /// A port of the same address on which it tells about its cache, and how; 0 for any that is
    /// free.
    pub kv_events: Option<(u16, EventShape)>,
}

impl EmulatorSettings {
    /// A quick engine for tests, on any free port of this machine: a step takes 5 ms, a prompt token
    /// 20 µs, and the cache holds 32,768 tokens.
    pub fn quick() -> Self {
        let linear = LinearEngine {
            base: 0.005,
            per_prompt_token: 20e-6,
            per_decode: 0.0,
            per_cached_token: 0.0,
        };
        let settings = engine::EngineSettings::vllm(64, 2048, 2048);
        Self::new(Speed { step: StepSpeed::Linear(linear), settings })
    }

    /// An engine of this speed, on any free port of this machine, with nothing wrong.
    pub fn new(speed: Speed) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            engine: Engine::default(),
            models: vec!["emulated".to_owned()],
            speed,
            speed_up: 1.0,
            stream_interval: 1,
            answer_tokens: 128,
            longest: None,
            log: 10_000,
            seed: 1,
            faults: Faults::default(),
            kv_events: None,
        }
    }

    /// Everything that cannot be, or nothing.
    pub fn problems(&self) -> Vec<&'static str> {
        let mut problems = self.faults.problems();
        if self.models.is_empty() {
            problems.push("an engine needs the name of a model");
        }
        if !(self.speed_up.is_finite() && self.speed_up > 0.0) {
            problems.push("the speed-up must be above 0");
        }
        if self.speed.settings.blocks == 0 {
            problems.push("the cache has no blocks");
        }
        if self.stream_interval == 0 {
            problems.push("at least one token leaves at a time");
        }
        if self.answer_tokens == 0 {
            problems.push("an answer has at least one token");
        }
        problems
    }
}
