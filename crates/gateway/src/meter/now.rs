//! What is under way right now. The data plane counts it anyway; the pages ask.

use super::{Engines, ModelNow, Recoveries, Suspected};
use crate::tenants::TenantReport;
use crate::tokens::KeySetsNow;
use std::sync::Arc;
use std::time::Duration;

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
    pub cached_bytes: usize,
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
    /// Models that seem to have lost all engines; they keep them until the loss is confirmed.
    pub doubted_models: usize,
    /// Public names of ModelServices.
    pub model_names: ModelNameCounts,
    /// Tenants; `None` if they are not watched.
    pub tenants: Option<TenantsNow>,
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

/// Public names of ModelServices by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelNameCounts {
    /// Served.
    pub served: usize,
    /// Not served, by the words of [`crate::models::LeftOutReason::NAMES`].
    pub left_out: [usize; 5],
}

/// How the listening to events about caches goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvEvents {
    /// Engines that are heard.
    pub streams: usize,
    /// Batches that came, since the gateway began.
    pub batches: u64,
    /// Batches that did not.
    pub missed: u64,
}

/// What is known of Tenants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantsNow {
    /// What became of them.
    pub report: Arc<TenantReport>,
    /// Since the API server stood behind the list; `None` if nobody can say it.
    pub age: Option<Duration>,
    /// The key sets by which tokens are verified.
    pub key_sets: KeySetsNow,
}
