//! What a replay cost and what it missed.

use crate::seconds::Seconds;

/// What came of one replay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// One per model, in the order of the world's models.
    pub models: Vec<ModelOutcome>,
    /// Accelerator time paid for, by every model together and by what idled in the pool.
    pub gpu_seconds: f64,
    /// Accelerator time lent to training.
    pub lent_gpu_seconds: f64,
    /// Accelerator time that no replica had.
    pub idle_gpu_seconds: f64,
    /// Accelerator time in which runs trained that borrow whole, without what was thrown away.
    pub trained_gpu_seconds: f64,
    /// Loans that were taken back from them.
    pub take_backs: u32,
    /// How long the scored part lasted.
    pub scored: Seconds,
}

/// What came of one model's replay. Only what lies outside gaps and warm-up is counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelOutcome {
    /// Requests that arrived.
    pub requests: f64,
    /// Requests that missed an objective, were refused or never finished.
    pub missed: f64,
    /// Requests that were cut off by the removal of their replica.
    pub killed: f64,
    /// Time that replicas were paid for, from the order to the end.
    pub replica_seconds: f64,
    /// Part of it in which they started, served and drained.
    pub starting_seconds: f64,
    /// Part of it in which they drained.
    pub draining_seconds: f64,
    /// Work done, in the time one replica at its capacity would need.
    pub useful_seconds: f64,
    /// Desired replicas.
    pub starts: u32,
    /// Removals within one cold start after a start: what was bought was given back before it was
    /// of use.
    pub reversals: u32,
    /// Starts within one cold start after a removal: what was given back would have been of use.
    pub regrets: u32,
    /// 99th percentile of the time to the first token.
    pub first_token_p99: Seconds,
    /// 99th percentile of the mean time between tokens of a request; zero where a replay has no single requests.
    pub between_tokens_p99: Seconds,
    /// Largest share of requests missed in five minutes.
    pub worst_five_minutes: f64,
    /// How it went, minute by minute; empty unless asked for.
    pub timeline: Vec<TimelineMoment>,
}

/// One minute of a replay, for pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimelineMoment {
    /// Its start.
    pub at: Seconds,
    /// Work that arrived, in replicas at capacity.
    pub demand: f64,
    /// Replicas that serve, at its end.
    pub ready: f64,
    /// Replicas that start, at its end.
    pub starting: f64,
    /// Replicas that drain, at its end.
    pub draining: f64,
    /// Requests that wait, at its end.
    pub waiting: f64,
    /// Requests that arrived.
    pub requests: f64,
    /// Requests of them that missed.
    pub missed: f64,
    /// Whether it lies in a gap of the data.
    pub masked: bool,
}

impl ModelOutcome {
    /// Share of requests that missed, 0 to 1.
    pub fn missed_share(&self) -> f64 {
        if self.requests > 0.0 { self.missed / self.requests } else { 0.0 }
    }
}

impl Outcome {
    /// Share of all requests that missed, 0 to 1.
    pub fn missed_share(&self) -> f64 {
        let requests: f64 = self.models.iter().map(|model| model.requests).sum();
        let missed: f64 = self.models.iter().map(|model| model.missed).sum();
        if requests > 0.0 { missed / requests } else { 0.0 }
    }
}
