//! Which policy would have been better: a thread that scores policies on a model's requests without
//! choosing by them.
//!
//! The data plane tells it when requests arrive, when their first token comes and when they end, only
//! of models whose settings list `shadow`; nobody waits for it, and what finds its queue full is
//! counted and left out. The thread hands all of it to a `Trial`,
//! which does the thinking, and keeps what that says for the metrics and for `/shadow`.
//!
//! Memory: at most [`SHADOWED_MODELS`] models at 59 MiB each (see `flyball_routing::shadow`), and a queue of
//! `QUEUED` messages, in which a prompt of 12,000 tokens takes half a KiB and the longest that counts
//! 32 KiB.
//!
//! What it does not know: other gateways (each scores its own part, against engines that look as slow as
//! all of them make it), the wait for a turn before an engine is chosen, and retries. Start at
//! [`Shadows`].

mod desk;
mod page;
#[cfg(test)]
mod tests;

use crate::settings::{self, GatewaySettingsFile, SHADOWED_MODELS};
use arc_swap::ArcSwap;
use desk::{Desk, Message, What};
use flyball_fleet::Fleet;
use flyball_routing::RoutingPolicy;
use flyball_routing::shadow::{ShadowArrival, ShadowReport};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// Messages that wait: a second of 1,000 requests with a beginning, a first token and an end, and a
/// few more.
const QUEUED: usize = 4_096;

/// Blocks of a prompt that count: a million tokens.
const MOST_BLOCKS: usize = 4_096;

/// Scores policies beside the live one.
#[derive(Debug)]
pub struct Shadows {
    known: Arc<Known>,
    /// To the thread, once there is one.
    queue: OnceLock<SyncSender<Message>>,
    next: AtomicU64,
}

/// What the data plane and the thread both see.
#[derive(Debug)]
struct Known {
    /// Models that are scored.
    scored: ArcSwap<ScoredModels>,
    fleet: ArcSwap<Fleet>,
    reports: Mutex<BTreeMap<Arc<str>, ShadowReport>>,
    dropped: AtomicU64,
}

type ScoredModels = BTreeMap<Arc<str>, Arc<Line>>;

/// How a model is scored.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    live: RoutingPolicy,
    others: Vec<RoutingPolicy>,
}

/// A request that is followed.
#[derive(Debug)]
pub(crate) struct Followed {
    shadows: Arc<Shadows>,
    model: Arc<str>,
    number: u64,
}

impl Shadows {
    /// For these settings; the thread begins when a model wants it.
    pub(crate) fn new(settings: &GatewaySettingsFile) -> Self {
        let known = Known {
            scored: ArcSwap::default(),
            fleet: ArcSwap::default(),
            reports: Mutex::default(),
            dropped: AtomicU64::new(0),
        };
        let shadows =
            Self { known: Arc::new(known), queue: OnceLock::new(), next: AtomicU64::new(0) };
        shadows.follow(settings);
        shadows
    }

    /// Takes in other settings.
    pub(crate) fn follow(&self, settings: &GatewaySettingsFile) {
        let shadowed = settings.models.iter().filter(|model| !model.shadow.is_empty());
        let line = |model: &settings::ModelSettings| Line {
            live: model.policy.into(),
            others: model.shadow.iter().map(|policy| (*policy).into()).collect(),
        };
        let scored: ScoredModels = shadowed
            .take(SHADOWED_MODELS)
            .map(|model| (model.name.as_str().into(), Arc::new(line(model))))
            .collect();
        if !scored.is_empty() && self.queue.get().is_none() {
            self.start();
        }
        self.known.scored.store(Arc::new(scored));
    }

    /// These engines are there now.
    pub(crate) fn list(&self, fleet: &Arc<Fleet>) {
        self.known.fleet.store(Arc::clone(fleet));
    }

    /// A request was given to the engine with this key. `None` unless its model is scored.
    pub(crate) fn arrived(
        self: &Arc<Self>,
        model: &Arc<str>,
        arrival: &ShadowArrival<'_>,
        engine: u64,
    ) -> Option<Followed> {
        // Nearly always empty.
        let scored = self.known.scored.load();
        if scored.is_empty() || !scored.contains_key(model) {
            return None;
        }
        let (shadows, number) = (Arc::clone(self), self.next.fetch_add(1, Relaxed));
        let followed = Followed { shadows, model: Arc::clone(model), number };
        let blocks = arrival.prefixes.len().min(MOST_BLOCKS);
        let what = What::Arrived {
            prefixes: arrival.prefixes[..blocks].into(),
            block_tokens: arrival.block_tokens,
            prompt: arrival.prompt,
            output: arrival.output,
            key: arrival.key,
            engine,
        };
        followed.send(what).then_some(followed)
    }

    fn send(&self, message: Message) -> bool {
        let sent = self.queue.get().is_some_and(|queue| queue.try_send(message).is_ok());
        if !sent {
            self.known.dropped.fetch_add(1, Relaxed);
        }
        sent
    }

    /// The thread ends when this value does. Nobody waits for it: it leaves nothing behind.
    fn start(&self) {
        let (sender, receiver) = sync_channel(QUEUED);
        let desk = Desk::new(Arc::clone(&self.known), Instant::now());
        let thread = std::thread::Builder::new().name("gateway-shadow".to_owned());
        match thread.spawn(move || desk.run(&receiver)) {
            // Two threads cannot begin: settings come from one place.
            Ok(_) => drop(self.queue.set(sender)),
            Err(error) => tracing::error!(%error, "cannot start the thread for shadow policies"),
        }
    }
}

impl Followed {
    /// Its first token came.
    pub(crate) fn first(&self) {
        self.send(What::First);
    }

    /// It is over, with so many tokens if it got all of its answer.
    pub(crate) fn end(&self, output: Option<u64>) {
        self.send(What::End { output });
    }

    fn send(&self, what: What) -> bool {
        let Self { shadows, model, number } = self;
        let (at, model) = (Instant::now(), Arc::clone(model));
        shadows.send(Message { at, model, number: *number, what })
    }
}

impl Known {
    fn reports(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, ShadowReport>> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<settings::RoutingSetting> for RoutingPolicy {
    fn from(policy: settings::RoutingSetting) -> Self {
        match policy {
            settings::RoutingSetting::Prefix => Self::Prefix,
            settings::RoutingSetting::LeastLoad => Self::LeastLoad,
            settings::RoutingSetting::RoundRobin => Self::RoundRobin,
        }
    }
}
