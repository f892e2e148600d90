//! What is under way right now. The data plane counts it anyway; the pages ask.

use crate::admit::AdmittedDemand;
use std::net::SocketAddr;
use std::sync::Arc;

/// What is under way right now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeterNow {
    /// Connections of clients.
    pub connections: usize,
    /// Requests.
    pub requests: usize,
    /// Bytes of bodies that are held.
    pub held_bytes: usize,
    /// Bytes of answers that are kept.
    pub kept_bytes: usize,
    /// Whether we finish what we have and take nothing new.
    pub draining: bool,
    /// Engines by state.
    pub engines: Engines,
    /// Requests in engines that were cancelled and should be gone.
    pub zombies: usize,
    /// Engines without a report that is young enough.
    pub silent_engines: usize,
    /// Whether the collector that was named does not answer.
    pub collector_away: bool,
    /// Watches of the API server that fail.
    pub failing_watches: usize,
    /// Models that seem to have lost all engines and keep them until that is confirmed.
    pub doubted_models: usize,
    /// Every model of the settings.
    pub models: Vec<ModelNow>,
    /// What was done about slow and broken answers so far.
    pub recoveries: Recoveries,
    /// Prompts that engines died over.
    pub suspects: Suspected,
    /// What engines tell about their caches.
    pub kv_events: KvEvents,
    /// How the talk with the operator goes.
    pub operator: crate::link::LinkNow,
}

/// How the listening to events about caches goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvEvents {
    /// Engines that are heard.
    pub heard: usize,
    /// Batches that came, since the gateway began.
    pub batches: u64,
    /// Batches that did not.
    pub missed: u64,
}

/// What was done about slow and broken answers, since the gateway began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recoveries {
    /// Requests for which a second engine was asked before the first had begun to answer.
    pub hedges: u64,
    /// Of those, whose answer came from the second one.
    pub hedges_won: u64,
    /// Times that another engine went on with what one had begun.
    pub continued: u64,
}

/// How many prompts that engines died over are remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Suspected {
    /// An engine died over them, and they may be tried again.
    pub suspected: usize,
    /// They are not sent any more.
    pub refused: usize,
}

/// How many engines are in which state. One in two states is counted in the later of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Engines {
    /// New requests may come.
    pub open: usize,
    /// They finish what they have.
    pub draining: usize,
    /// They ignore hang-ups.
    pub quarantined: usize,
    /// They keep failing.
    pub broken: usize,
    /// They are not listed any more, and have requests under way.
    pub gone: usize,
}

/// One model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelNow {
    /// The name that clients say.
    pub name: Arc<str>,
    /// Its engines.
    pub engines: Vec<EngineNow>,
    /// Who waits for it.
    pub queue: AdmittedDemand,
    /// Why its engines cannot be looked for, and what to do, if they cannot.
    pub trouble: Option<String>,
}

/// One engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineNow {
    /// The same on every gateway.
    pub name: Arc<str>,
    /// Where it answers.
    pub address: SocketAddr,
    /// Its pod's own id, if it is a pod.
    pub uid: Option<Arc<str>>,
    /// Whether it may get requests.
    pub state: EngineState,
    /// Requests that this gateway has under way at it.
    pub in_flight: u32,
    /// Requests that it says it works on; unknown until it reports.
    pub running: Option<u32>,
    /// Requests that it says wait in it.
    pub waiting: Option<u32>,
    /// Share of its KV cache that it says is in use, in thousandths.
    pub kv_used_per_thousand: Option<u32>,
}

/// Whether an engine may get requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EngineState {
    /// It may.
    Open,
    /// It finishes what it has.
    Draining,
    /// It ignores hang-ups.
    Quarantined,
    /// It keeps failing, or does not answer at all.
    Broken,
    /// It is not listed any more (its pod is not ready, or leaves), and has requests under way.
    Gone,
}

impl EngineState {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Open, Self::Draining, Self::Quarantined, Self::Broken, Self::Gone];

    /// Its name in metrics and pages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Draining => "draining",
            Self::Quarantined => "quarantined",
            Self::Broken => "broken",
            Self::Gone => "gone",
        }
    }
}

impl Engines {
    /// One more in this state.
    pub const fn add(&mut self, state: EngineState) {
        *match state {
            EngineState::Open => &mut self.open,
            EngineState::Draining => &mut self.draining,
            EngineState::Quarantined => &mut self.quarantined,
            EngineState::Broken => &mut self.broken,
            EngineState::Gone => &mut self.gone,
        } += 1;
    }

    /// How many are in this state.
    pub const fn of(&self, state: EngineState) -> usize {
        match state {
            EngineState::Open => self.open,
            EngineState::Draining => self.draining,
            EngineState::Quarantined => self.quarantined,
            EngineState::Broken => self.broken,
            EngineState::Gone => self.gone,
        }
    }
}

impl ModelNow {
    /// Its engines by state.
    pub fn by_state(&self) -> Engines {
        let mut engines = Engines::default();
        self.engines.iter().for_each(|engine| engines.add(engine.state));
        engines
    }
}
