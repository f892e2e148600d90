//! What was learnt, handed from one decision to the next by value.
//!
//! It is bounded: per model a few thousand numbers, whatever the traffic. A model or variant that
//! is gone from the snapshot is forgotten.

use crate::absent::Absent;
use crate::demand::{Load, Unit};
use crate::feedback::Feedback;
use crate::forecast::Forecaster;
use crate::hold::Held;
use crate::scale::Wishes;
use crate::starts::Starts;
use crate::zero::Idle;
use flyball_core::ids::{ModelId, PoolId, ReplicaId, VariantName};
use flyball_core::snapshot::{Misses, Snapshot};
use flyball_core::units::Timestamp;
use std::collections::BTreeMap;

/// What the governor has learnt. Goes into [`crate::decide`] and comes out of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    pub(crate) models: BTreeMap<ModelId, ModelMemory>,
    /// When accelerators of a pool were last lent.
    pub(crate) lent_at: BTreeMap<PoolId, Timestamp>,
    /// Accelerators that pools hold.
    pub(crate) held: BTreeMap<PoolId, Held>,
}

/// What was learnt about one model.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ModelMemory {
    /// The last snapshot that was learnt from. An older or equal one teaches nothing new.
    pub(crate) seen_at: Option<Timestamp>,
    /// The replica that work is counted in, for all time: the first that was seen. Capacity is
    /// corrected as it is measured, and a history in moving units would be no history.
    pub(crate) yardstick: Option<Unit>,
    pub(crate) forecaster: Forecaster,
    pub(crate) misses: Option<Misses>,
    pub(crate) idle: Idle,
    pub(crate) wishes: Wishes,
    pub(crate) feedback: Feedback,
    pub(crate) variants: BTreeMap<VariantName, VariantMemory>,
}

/// What was learnt about one variant.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct VariantMemory {
    pub(crate) starts: Starts,
    pub(crate) absent: Absent,
    /// Replicas that were told to go and may still look as if they were not.
    pub(crate) leaving: Vec<ReplicaId>,
}

impl Memory {
    /// Nothing was learnt.
    pub const fn new() -> Self {
        Self { models: BTreeMap::new(), lent_at: BTreeMap::new(), held: BTreeMap::new() }
    }

    /// Forgets what is gone.
    pub(crate) fn forget(&mut self, snapshot: &Snapshot) {
        if self.models.len() > snapshot.models.len() {
            self.models.retain(|id, _| snapshot.models.contains_key(id));
        }
        self.lent_at.retain(|id, _| snapshot.pools.contains_key(id));
    }
}

impl ModelMemory {
    /// Whether the snapshot is newer than what was learnt from, and remembers it.
    pub(crate) fn is_new(&mut self, now: Timestamp) -> bool {
        let new = self.seen_at.is_none_or(|seen| seen < now);
        if new {
            self.seen_at = Some(now);
        }
        new
    }

    /// Requests and misses since the last look.
    pub(crate) fn new_misses(&mut self, seen: Option<&Misses>) -> Option<Misses> {
        let now = *seen?;
        let before = self.misses.replace(now)?;
        // A counter that fell was restarted; what it counted meanwhile is not known.
        let requests = now.requests.checked_sub(before.requests)?;
        let missed = now.missed.checked_sub(before.missed)?;
        Some(Misses { requests, missed })
    }

    /// Work in replicas of the yardstick.
    pub(crate) fn measure(&self, load: &Load) -> f64 {
        self.yardstick.map_or(0.0, |unit| load.in_units(&unit))
    }
}
