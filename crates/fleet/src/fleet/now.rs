//! What an engine looks like from outside.

use std::net::SocketAddr;
use std::sync::Arc;

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
