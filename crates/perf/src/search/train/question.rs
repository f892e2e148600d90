//! What is asked about a training run.

use crate::architecture::Architecture;
use crate::hardware::Accelerator;
use crate::precision::Math;
use crate::search::part::OfferedPart;
use crate::training::Framework;

/// What is fixed about the size of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// So many accelerators are there; the earliest end wins, with fewer of them where all do not divide.
    Gpus(u32),
    /// It must end within so many seconds; the least money wins.
    Deadline(f64),
    /// It may cost so many dollars; the earliest end wins.
    Budget(f64),
}

/// How saving and failing go. Assumptions that the answer states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reliability {
    /// Bytes per second with which one host writes a checkpoint.
    pub write_per_host: f64,
    /// Seconds from a failure to the first step after it.
    pub restart: f64,
}

impl Default for Reliability {
    /// Two gigabytes per second and host is what shared storage gives; ten minutes to notice, start
    /// again and load.
    fn default() -> Self {
        Self { write_per_host: 2e9, restart: 600.0 }
    }
}

/// The question.
#[derive(Clone, Debug)]
pub struct TrainQuestion<'a> {
    pub model: &'a Architecture,
    pub tokens: f64,
    pub sequence: f64,
    /// Sequences of one step.
    pub global_batch: f64,
    pub math: Math,
    pub framework: Framework,
    pub parts: &'a [OfferedPart<'a>],
    /// The whole catalogue, where relatives of unmeasured parts are looked for.
    pub all: &'a [Accelerator],
    pub size: Size,
    /// The share of such runs that must keep the deadline or the budget.
    pub confidence: f64,
    /// Most accelerators to consider where the size is open.
    pub most_gpus: u32,
    pub reliability: Reliability,
}
