//! A model, its engines and what was learned of both.

use super::{AnswerPace, FleetEndpoint, Millis};
use flyball_routing::{ObservedEndpoints, Ring, RoutingPolicy};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The mean prompt before any came: about that of chat traffic in the Azure traces.
const FIRST_PROMPT: u64 = 1_024;

/// Prefixes remembered per model: of the last few thousand prompts of 12,000 tokens. Half a MiB, of
/// which only what is used is real.
const SEEN_PREFIXES: usize = 65_536;

/// A model and its engines.
#[derive(Debug)]
pub struct FleetModel {
    /// Model name in client requests.
    pub name: Arc<str>,
    /// Its engines, in the order of their names.
    pub endpoints: Vec<Arc<FleetEndpoint>>,
    /// Who owns which prefix.
    pub ring: Ring,
    /// Which prompts were seen, and where they went.
    seen: Arc<Mutex<ObservedEndpoints>>,
    /// The mean prompt of late, in tokens.
    usual_prompt: Arc<AtomicU64>,
    /// Requests that had a turn, where engines take turns.
    turns: Arc<AtomicU64>,
    /// How long answers take to begin.
    pub pace: Arc<AnswerPace>,
}

impl FleetModel {
    /// The model with these engines. What was learned of it before stays.
    pub(super) fn after(
        before: Option<&Arc<Self>>,
        name: &str,
        mut endpoints: Vec<Arc<FleetEndpoint>>,
    ) -> Self {
        endpoints.sort_by(|a, b| a.name.cmp(&b.name));
        let ring = Ring::new(endpoints.iter().map(|endpoint| endpoint.key));
        let seen = before.map_or_else(
            || Arc::new(Mutex::new(ObservedEndpoints::new(SEEN_PREFIXES))),
            |before| Arc::clone(&before.seen),
        );
        let usual_prompt = before.map_or_else(
            || Arc::new(AtomicU64::new(FIRST_PROMPT)),
            |before| Arc::clone(&before.usual_prompt),
        );
        let turns = before.map_or_else(Arc::default, |before| Arc::clone(&before.turns));
        let pace = before.map(|before| Arc::clone(&before.pace)).unwrap_or_default();
        Self { name: name.into(), endpoints, ring, seen, usual_prompt, turns, pace }
    }

    /// The memory of prompts. Held for about a microsecond.
    pub fn seen(&self) -> MutexGuard<'_, ObservedEndpoints> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A prompt with these prefixes was last used by an engine at this time.
    pub fn used(&self, prefixes: &[u64], endpoint: &FleetEndpoint, now: Millis) {
        self.seen().sent_at(prefixes, endpoint.key, now.moment());
    }

    /// A prompt of so many tokens came. Returns the mean of late, to which each adds a 64th.
    pub fn prompt(&self, tokens: u64) -> u64 {
        let before = self.usual_prompt.load(Ordering::Relaxed);
        // Two threads may both write: one of two prompts is then not counted.
        let after = (before * 63 + tokens.min(1 << 32)).div_ceil(64);
        self.usual_prompt.store(after, Ordering::Relaxed);
        after
    }

    /// Leading blocks of a prompt that an engine hopefully has cached. Where engines are not chosen by
    /// what they have cached, none is hoped to have any of it.
    pub fn known_blocks(&self, prefixes: &[u64], policy: RoutingPolicy) -> u32 {
        let forgot = |place: usize| self.endpoints[place].forgot();
        match policy {
            RoutingPolicy::Prefix => self.seen().known_at(prefixes, &self.ring, forgot),
            RoutingPolicy::LeastLoad | RoutingPolicy::RoundRobin => 0,
        }
    }

    /// The next turn.
    pub fn turn(&self) -> u64 {
        self.turns.fetch_add(1, Ordering::Relaxed)
    }
}
