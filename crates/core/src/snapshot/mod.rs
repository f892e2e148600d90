//! What is known about the world at one moment: the only input a decision looks at.
//!
//! A [`Snapshot`] holds models with their variants, replicas and demand, pools with capacity and
//! prices, and training runs. Every signal from outside is [`Observed`]: fresh, stale or missing.
//! A missing number is never a zero, because a zero means "idle" and gives capacity away.
//!
//! It does not know where the facts come from or what will be decided. Start at [`Snapshot`],
//! then `model.rs`.

mod model;
mod observed;
mod pool;
#[cfg(test)]
mod tests;

pub use model::{
    Capacity, Demand, Misses, Mode, Model, Objective, Objectives, Replica, ReplicaState,
    ScalingBounds, Signal, Sources, Unreachable, Variant,
};
pub use observed::{Freshness, Observed};
pub use pool::{Pool, Purchase, Share, TrainingRun};

use crate::ids::{DecisionId, ModelId, PoolId, RunId, VariantId};
use crate::units::Timestamp;
use std::collections::BTreeMap;

/// Everything that is known at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// When the picture was taken. Ages of signals are counted from here.
    pub taken_at: Timestamp,
    /// Which shard of the operator took it.
    pub shard: u16,
    /// The served models.
    pub models: BTreeMap<ModelId, Model>,
    /// The pools of accelerators.
    pub pools: BTreeMap<PoolId, Pool>,
    /// The training runs that borrow accelerators.
    pub runs: BTreeMap<RunId, TrainingRun>,
}

impl Snapshot {
    /// A picture of nothing.
    pub const fn empty(taken_at: Timestamp, shard: u16) -> Self {
        Self {
            taken_at,
            shard,
            models: BTreeMap::new(),
            pools: BTreeMap::new(),
            runs: BTreeMap::new(),
        }
    }

    /// The name of the decision that is made from this picture.
    pub const fn decision_id(&self) -> DecisionId {
        DecisionId::new(self.taken_at, self.shard)
    }

    /// The variant of this name, if it and its model are in the picture.
    pub fn variant(&self, id: &VariantId) -> Option<&Variant> {
        self.models.get(id.model())?.variants.get(id.name())
    }

    /// Every variant with its full name, in order.
    pub fn variants(&self) -> impl Iterator<Item = (VariantId, &Variant)> {
        self.models.iter().flat_map(|(model_id, model)| {
            model.variants.iter().map(move |(name, variant)| {
                (VariantId::new(model_id.clone(), name.clone()), variant)
            })
        })
    }
}
