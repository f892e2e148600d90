//! Where accelerators come from, and the training that shares them.

use super::Observed;
use crate::closed::closed_enum;
use crate::ids::PoolId;
use crate::units::{Gpus, Price, Timestamp};
use std::collections::BTreeMap;

closed_enum! {
    /// How accelerators are paid for.
    pub enum Purchase {
        Reserved => "Paid for whether used or not.",
        OnDemand => "Paid for while used, and not taken away.",
        Spot => "Paid for while used, cheaper, and can be taken away at short notice.",
    }
}

/// A pool of like accelerators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// The accelerator, by its name in the catalogue.
    pub accelerator: String,
    /// Accelerators on nodes that are there and can be used.
    pub allocatable: Observed<Gpus>,
    /// Whether a node autoscaler can add nodes.
    pub can_grow: bool,
    /// The most that may be reserved, if there is a limit.
    pub limit: Option<Gpus>,
    /// What an accelerator costs by how it is paid for. An absent price is unknown, not free.
    pub prices: BTreeMap<Purchase, Price>,
}

/// A training run that holds accelerators of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainingRun {
    /// The pool.
    pub pool: PoolId,
    /// Accelerators it holds.
    pub gpus: Gpus,
    /// When it should be finished, if it matters.
    pub deadline: Option<Timestamp>,
    /// When it last saved its work.
    pub last_saved: Observed<Timestamp>,
}
