//! The state of a queue: what callers feel, and what scaling goes by.

use flyball_fleet::{EngineNow, Engines};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// What is wanted of one model. The small interface that an operator reads, as JSON from `/demand` on
/// the admin address; the same numbers are metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmittedDemand {
    /// The model.
    pub model: String,
    /// Engines that may get requests.
    pub engines: usize,
    /// Requests in the queue, batch aside.
    pub waiting: usize,
    /// Requests of the class batch in the queue, for which nothing is started: they count nowhere else here.
    pub batch_waiting: usize,
    /// Those of them at engines.
    pub batch_running: usize,
    /// Requests in the queue that wait for an engine to come up.
    pub held: usize,
    /// Prompt tokens of all that wait.
    pub backlog_tokens: u64,
    /// What they will probably cost, in the time of a prompt token.
    pub backlog_cost: u64,
    /// How long the first has waited.
    pub oldest_ms: u64,
    /// How long a usual request would wait that came now, as far as known.
    pub wait_ms: Option<u64>,
    /// When an engine will probably be up, if the model is being woken and that was ever measured.
    pub eta_ms: Option<u64>,
    /// Whether the model was called and has not come.
    pub waking: bool,
    /// Requests under way at engines.
    pub in_flight: u64,
    /// Prompt tokens under way that no engine has read.
    pub unread_tokens: u64,
    /// Requests that this gateway may have under way at once, as learned from the engines.
    pub window: u64,
    /// Requests that came since the gateway began.
    pub arrived: u64,
    /// Their prompt tokens.
    pub arrived_tokens: u64,
    /// Prompt tokens that engines had to compute because no cache had them.
    pub uncached_tokens: u64,
    /// Cost of all that ended, as it was and not as it was thought.
    pub spent_cost: u64,
    /// Requests that were turned away.
    pub shed: u64,
    /// Calls to wake it.
    pub wake_calls: u64,
    /// Tokens that engines hold in memory for requests under way, as reckoned here.
    pub held_tokens: u64,
    /// Tokens that engines wrote for requests that ended.
    pub output_tokens: u64,
    /// Requests that got tokens.
    pub answered: u64,
    /// Tokens of streams after the first ones.
    pub paced_tokens: u64,
    /// Microseconds that these took.
    pub paced_micros: u64,
    /// Requests that were judged by the operator's objectives; none without objectives.
    pub judged: u64,
    /// Those of them that missed any, or got no answer for lack of room.
    pub missed: u64,
    /// Those that missed the objective for the first token.
    pub missed_first_token: u64,
    /// Those that missed the objective between tokens, on the mean of the answer.
    pub missed_between_tokens: u64,
}

/// One model: its engines and its queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelNow {
    /// Model name in client requests.
    pub name: Arc<str>,
    /// Its engines.
    pub engines: Vec<EngineNow>,
    /// Who waits for it.
    pub queue: AdmittedDemand,
    /// Why its engines cannot be looked for, and what to do, if they cannot.
    pub trouble: Option<String>,
}

impl ModelNow {
    /// Its engines by state.
    pub fn by_state(&self) -> Engines {
        let mut engines = Engines::default();
        self.engines.iter().for_each(|engine| engines.add(engine.state));
        engines
    }
}

/// Sums of one queue.
#[derive(Debug, Default)]
pub(super) struct Sums {
    arrived: AtomicU64,
    arrived_tokens: AtomicU64,
    spent_cost: AtomicU64,
    shed: AtomicU64,
    wake_calls: AtomicU64,
}

impl Sums {
    pub(super) fn arrive(&self, tokens: u64) {
        self.arrived.fetch_add(1, Relaxed);
        self.arrived_tokens.fetch_add(tokens, Relaxed);
    }

    pub(super) fn spend(&self, cost: u64) {
        self.spent_cost.fetch_add(cost, Relaxed);
    }

    pub(super) fn shed(&self) {
        self.shed.fetch_add(1, Relaxed);
    }

    pub(super) fn called(&self) {
        self.wake_calls.fetch_add(1, Relaxed);
    }

    pub(super) fn fill(&self, demand: &mut AdmittedDemand) {
        demand.arrived = self.arrived.load(Relaxed);
        demand.arrived_tokens = self.arrived_tokens.load(Relaxed);
        demand.spent_cost = self.spent_cost.load(Relaxed);
        demand.shed = self.shed.load(Relaxed);
        demand.wake_calls = self.wake_calls.load(Relaxed);
    }
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
