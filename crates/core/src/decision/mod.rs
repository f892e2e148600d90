//! What to do, and why: the only output of deciding.
//!
//! A [`Decision`] says for each model how many replicas each variant should have, the steps to get
//! there, the [`Reason`], the [`Bound`] that won, and a [`Receipt`] of what was considered; and for
//! each training run how many accelerators it should have. It is made the same way whether it is
//! carried out, only shown, or simulated; who receives it does what it says or does not.
//! [`Previous`] is the part of past decisions that the next one needs.
//!
//! Nothing here decides, and nothing here can be serialised. Start at [`Decision`], then
//! `previous.rs`.

mod previous;

pub use previous::{Previous, PreviousTarget};

use crate::closed::closed_enum;
use crate::ids::{DecisionId, ModelId, PoolId, ReplicaId, RunId, VariantId};
use crate::interval::Interval;
use crate::reason::Reason;
use crate::snapshot::{Freshness, Purchase, Signal, Unreachable};
use crate::units::{Gpus, Micros, MilliReplicas, Money, Replicas, Requests, Timestamp};
use std::cmp::Ordering;

/// What to do for all models and training runs of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Its name.
    pub id: DecisionId,
    /// One entry per model, in the order in which they got accelerators.
    pub models: Vec<ModelDecision>,
    /// One entry per training run.
    pub runs: Vec<RunDecision>,
    /// One entry per pool whose accelerators are held apart from replicas.
    pub pools: Vec<PoolDecision>,
}

/// What to do for one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelDecision {
    /// The model.
    pub model: ModelId,
    /// Why.
    pub reason: Reason,
    /// Which bound set the number of replicas.
    pub bound: Bound,
    /// What each variant should have.
    pub targets: Vec<Target>,
    /// What is expected to come of it.
    pub expected: Expected,
    /// What was considered.
    pub receipt: Receipt,
}

/// How many replicas one variant should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The variant.
    pub variant: VariantId,
    /// What demand asks for, before pools, budgets and steps cut it down.
    pub unconstrained: Replicas,
    /// What it should have. Replicas that drain are not counted.
    pub replicas: Replicas,
    /// Replicas beyond that, because so many of those that are there do not serve.
    pub spares: Replicas,
    /// The steps to get there, in order.
    pub actions: Vec<Action>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask for more replicas.
    Start {
        /// How many.
        count: Replicas,
        /// How their accelerators are paid for.
        purchase: Purchase,
    },
    /// Send a replica no new requests and let it finish those it has.
    Drain {
        /// Which.
        replica: ReplicaId,
    },
    /// Remove a replica that has no requests.
    Delete {
        /// Which.
        replica: ReplicaId,
    },
    /// Remove a replica that does not come up, and start another in its place.
    Replace {
        /// Which.
        replica: ReplicaId,
    },
}

closed_enum! {
    /// What set the number of replicas: of all that pulled up or held down, the one that won.
    pub enum Bound {
        NeedNow => "Current demand.",
        LookAhead => "The demand expected before a new replica could be ready.",
        Replay => "The law with the best result on replayed traffic.",
        Calendar => "A minimum from the calendar.",
        Minimum => "The configured minimum.",
        Maximum => "The configured maximum.",
        Pin => "The manually set number.",
        Freeze => "A freeze.",
        Staleness => "A stale or missing signal.",
        BreakEven => "The time a replica must run to pay for its start.",
        Step => "The limit on the size of a step, or on the time before a reversal.",
        Budget => "The remaining budget.",
        PoolLimit => "The limit of the pool.",
        Capacity => "The available accelerators.",
        Rule => "An invariant that the decision would have violated.",
    }
}

impl Bound {
    /// Whether this bound may hold a model below what its owner asks for at least.
    pub const fn can_starve(self) -> bool {
        matches!(self, Self::Step | Self::Budget | Self::PoolLimit | Self::Capacity)
    }
}

/// How many accelerators one training run should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDecision {
    /// The run.
    pub run: RunId,
    /// What it should have.
    pub gpus: Gpus,
    /// Why.
    pub reason: Reason,
    /// Which way that is from what it had before; see [`RunAction::between`].
    pub action: RunAction,
}

closed_enum! {
    /// Which way a training run is resized.
    pub enum RunAction {
        Grow => "The run gets more accelerators.",
        Shrink => "The run returns accelerators.",
        Hold => "The run keeps its accelerators.",
    }
}

impl RunAction {
    /// The way from one number of accelerators to another.
    pub fn between(before: Gpus, after: Gpus) -> Self {
        match after.cmp(&before) {
            Ordering::Greater => Self::Grow,
            Ordering::Less => Self::Shrink,
            Ordering::Equal => Self::Hold,
        }
    }
}

/// How many accelerators a pool should hold, used or not.
///
/// A replica that finds one starts in the time of a swap, and models rarely peak together, so that
/// a few held for all of them do what many held by each would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolDecision {
    /// The pool.
    pub pool: PoolId,
    /// What it should hold.
    pub hold: Gpus,
}

/// What is expected to come of a decision. `None` is "unknown", not nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// What an hour of the target costs.
    pub hourly_cost: Option<Interval<Money>>,
    /// Requests in an hour that will miss an objective.
    pub hourly_misses: Option<Interval<Requests>>,
}

/// What was considered, so that a person can check the decision and a replay can judge it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// The signals and how far each was trusted.
    pub signals: Vec<(Signal, Freshness)>,
    /// Replicas that each bound alone would allow.
    pub candidates: Vec<(Bound, Replicas)>,
    /// What a horizontal pod autoscaler would have asked for, if that can be told.
    pub hpa_would_want: Option<Replicas>,
    /// The numbers behind the candidates, where the demand could be judged.
    pub work: Option<Work>,
    /// The objective that no number of replicas reaches: nothing was weighed for it.
    pub unreachable: Option<Unreachable>,
    /// Replicas that count as a part of one because they are slow, in millionths.
    pub slow: Vec<(ReplicaId, u32)>,
    /// The law in use, if past traffic was replayed to choose it.
    pub law: Option<ChosenLaw>,
}

/// The law that decides for a model, and what each would have cost on its past traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenLaw {
    /// Its name.
    pub name: String,
    /// Since when it decides; `None` from the beginning.
    pub since: Option<Timestamp>,
    /// How much traffic was replayed.
    pub replayed: Micros,
    /// What each law would have cost.
    pub tried: Vec<TriedLaw>,
}

/// What a law would have cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriedLaw {
    /// Its name.
    pub name: String,
    /// Time that replicas would have been paid for, all together.
    pub replica_time: Micros,
    /// Requests that would have missed, of a million.
    pub missed_per_million: u32,
}

/// The numbers behind a decision. Replicas are counted as the largest variant's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Ready replicas.
    pub ready: Replicas,
    /// Replicas that were asked for and do not serve yet.
    pub coming: Replicas,
    /// What the work of this moment takes, with the backlog.
    pub need_now: MilliReplicas,
    /// What the work is expected to take at most once a replica asked for now serves.
    pub look_ahead: MilliReplicas,
    /// How likely that is enough, in millionths.
    pub quantile_per_million: u32,
    /// How long a replica takes to serve, as learnt.
    pub cold_start: Micros,
    /// How long after that the look-ahead looks.
    pub hold: Micros,
    /// Capacity as measured, in millionths of what was predicted.
    pub capacity_per_million: u32,
    /// What one replica costs for an hour, if known.
    pub hourly_price: Option<Money>,
}
