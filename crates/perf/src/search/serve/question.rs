//! What is asked about a service.

use crate::architecture::Architecture;
use crate::coefficients::Coefficients;
use crate::engine::Engine;
use crate::evidence::Intervals;
use crate::precision::Dtype;
use crate::search::part::OfferedPart;
use crate::serving::steady::RequestShape;

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Targets {
    /// 95th percentiles in seconds.
    pub ttft_p95: Option<f64>,
    pub itl_p95: Option<f64>,
    /// Mean time per output token of a request, in seconds, as services are judged by.
    pub tpot: Option<f64>,
}

/// By what the answers are ranked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ServeObjective {
    /// The least money per hour.
    Cheapest,
    /// The least time to the first token within so many dollars per hour.
    Fastest { usd_per_hour: f64 },
    /// The fewest accelerators, of those that are there: no price is asked.
    FewestGpus,
    /// The most output tokens per dollar if every replica were full.
    TokensPerDollar,
}

/// The question.
#[derive(Clone, Debug)]
pub struct ServeQuestion<'a> {
    pub model: &'a Architecture,
    pub engine: Engine,
    /// Format of the cache.
    pub cache: Dtype,
    pub shape: RequestShape,
    /// Requests per second.
    pub rate: f64,
    pub targets: Targets,
    pub parts: &'a [OfferedPart<'a>],
    pub objective: ServeObjective,
    /// Replicas beyond what the load needs, so that one can be lost.
    pub spare: u32,
    /// Share of its capacity that a replica is planned for, at most.
    pub most_load: f64,
    /// Replicas that there are at least, whatever the load.
    pub fewest_replicas: u32,
    /// Most accelerators in one replica.
    pub most_gpus: u32,
    /// Requests that run at once in one replica, at most.
    pub sequences: u32,
}

/// The model's numbers, read once.
#[derive(Clone, Debug)]
pub struct Knowledge {
    pub coefficients: Coefficients,
    pub intervals: Intervals,
}

impl Knowledge {
    /// What comes with the program.
    pub fn builtin() -> Self {
        Self { coefficients: Coefficients::serving(), intervals: Intervals::builtin() }
    }
}
