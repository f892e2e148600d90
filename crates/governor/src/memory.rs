//! What was learnt, handed from one decision to the next by value.
//!
//! It is bounded: per model a few thousand numbers, whatever the traffic. A model or variant that
//! is gone from the snapshot is forgotten.

use crate::absent::Absent;
use crate::demand::{Load, Unit};
use crate::feedback::Feedback;
use crate::forecast::Forecaster;
use crate::recommendations::{Answers, Recommendations};
use crate::starts::Starts;
use crate::zero::Idle;
use flyball_core::ids::{ModelId, PoolId, ReplicaId, VariantName};
use flyball_core::pooling::Pooling;
use flyball_core::snapshot::{Freshness, Misses, Model, Snapshot, Variant};
use flyball_core::units::Timestamp;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What the governor has learnt. Goes into [`crate::decide`] and comes out of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    pub(crate) models: BTreeMap<ModelId, ModelMemory>,
    /// When accelerators of a pool were last lent.
    pub(crate) lent_at: BTreeMap<PoolId, Timestamp>,
    /// Accelerators that pools hold.
    pub(crate) held: BTreeMap<PoolId, HeldPool>,
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
    pub(crate) recommendations: Recommendations,
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

/// What is remembered of one pool.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HeldPool {
    pub(crate) models: BTreeMap<ModelId, Ahead>,
    pub(crate) recommendations: Recommendations,
    pub(crate) hold: u32,
    pub(crate) seen_at: Option<Timestamp>,
}

impl HeldPool {
    /// Forgets what was seen of a model.
    pub(crate) fn forget(&mut self, id: &ModelId) {
        self.models.remove(id);
    }
}

/// One model as the pool sees it: as far ahead as a purchase takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ahead {
    pub(crate) forecaster: Forecaster,
    pub(crate) last: Answers,
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

/// The work of a model at one moment, as its memory counts it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredDemand {
    /// What arrives, in replicas of the first capacity that was known: history has to have one unit.
    pub work: f64,
    /// What one replica of the variant that carries most does today, in the same unit.
    pub size: f64,
    /// How much more many of them carry together.
    pub pooling: Pooling,
    /// Work that waits, in seconds of one replica of that unit.
    pub waiting: f64,
    /// Requests per second that one unit of work is, where requests are counted.
    pub requests_per_work: Option<f64>,
    /// How long a replica of it usually takes to serve, in seconds.
    pub cold_start_s: f64,
}

impl Memory {
    /// The work of a model now; `None` where the demand is not fresh or nothing was learnt of it yet.
    pub fn measured(&self, id: &ModelId, model: &Model) -> Option<MeasuredDemand> {
        let memory = self.models.get(id)?;
        let yardstick = memory.yardstick?;
        (model.demand.freshness() == Freshness::Fresh).then_some(())?;
        let load = Load::last_seen(&model.demand);
        let most = |variant: &Variant| (variant.live(), Reverse(variant.gpus_per_replica));
        let known = model.variants.iter().filter(|(_, variant)| variant.capacity.is_known());
        let (name, main) = known.max_by_key(|(_, variant)| most(variant))?;
        let starts = memory.variants.get(name).map(|learnt| &learnt.starts);
        Some(MeasuredDemand {
            work: memory.measure(&load),
            size: Unit::low(&main.capacity).against(&yardstick, &load),
            pooling: main.capacity.pooling(),
            waiting: load.backlog / yardstick.prefill,
            requests_per_work: memory.feedback.requests_per_work(),
            cold_start_s: starts?.usual_s(main.cold_start),
        })
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
