//! Where accelerators come from, and the training that shares them.

use super::Observed;
use crate::closed::closed_enum;
use crate::ids::{AcceleratorId, Namespace, PoolId};
use crate::interval::Interval;
use crate::units::{Gpus, Micros, Price, Timestamp};
use std::collections::BTreeMap;

closed_enum! {
    /// How accelerators are paid for.
    pub enum Purchase {
        Reserved => "Paid for whether used or not.",
        OnDemand => "Paid for while used, and not preempted.",
        Spot => "Paid for while used, cheaper, and can be preempted at short notice.",
    }
}

/// A pool of like accelerators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// The kind of accelerator.
    pub accelerator: AcceleratorId,
    /// Accelerators on nodes that are there and can be used, by how they are paid for. The pool
    /// has none that are paid for in a way that is absent.
    pub allocatable: BTreeMap<Purchase, Observed<Gpus>>,
    /// Those of them that are in use by something that Flyball does not manage.
    pub held_by_others: Gpus,
    /// Whether a node autoscaler can add nodes.
    pub can_grow: bool,
    /// Time until an accelerator that is asked for is there, where accelerators are asked for and
    /// held apart from replicas. Absent where each replica brings its own, within its cold start.
    pub supply: Option<Interval<Micros>>,
    /// Time within which accelerators that are lent to training are free again. Absent where none are lent.
    pub take_back: Option<Micros>,
    /// The most that may be reserved, if there is a limit.
    pub limit: Option<Gpus>,
    /// What the pool's owner gives to namespaces.
    pub shares: BTreeMap<Namespace, Share>,
    /// What an accelerator costs by how it is paid for. An absent price is unknown, not free.
    pub prices: BTreeMap<Purchase, Price>,
}

/// What a namespace may have of a pool against others. Only this moves accelerators that are in use
/// from one namespace to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Accelerators that it gets back from those that have more than theirs.
    pub guaranteed: Gpus,
    /// It takes what is above a guarantee from namespaces of a lower priority.
    pub priority: i32,
}

impl Pool {
    /// What a namespace may have against others: nothing, where the owner says nothing.
    pub fn share_of(&self, namespace: &Namespace) -> Share {
        self.shares.get(namespace).copied().unwrap_or_default()
    }

    /// Accelerators however they are paid for: missing if any part is, or if there is no part at
    /// all, and else as old as the oldest part.
    pub fn total_allocatable(&self) -> Observed<Gpus> {
        let mut parts = self.allocatable.values().copied();
        let first = parts.next().unwrap_or(Observed::Missing);
        parts.fold(first, |total, part| total.join(part, Gpus::saturating_add))
    }

    /// Accelerators that models and training can have: all but those that others use.
    pub fn available(&self) -> Observed<Gpus> {
        self.total_allocatable().map(|gpus| gpus.saturating_sub(self.held_by_others))
    }
}

/// A training run that borrows accelerators of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainingRun {
    /// The pool.
    pub pool: PoolId,
    /// Whether decisions about it are carried out. What one that does not act holds is in use by others.
    pub acts: bool,
    /// Accelerators it holds.
    pub gpus: Gpus,
    /// The fewest it can work with; it is not lent less, except nothing.
    pub least: Gpus,
    /// The most it can use.
    pub most: Gpus,
    /// What an accelerator is worth to it for an hour, if its owner said so.
    pub value: Option<Price>,
    /// When it should be finished, if it matters.
    pub deadline: Option<Timestamp>,
    /// When it last saved its work.
    pub last_saved: Observed<Timestamp>,
}
