//! A served model: what its owner asks for, what its users ask of it, and what runs.

use super::{Freshness, Observed, Purchase};
use crate::closed::closed_enum;
use crate::ids::{NodeName, PoolId, ReplicaId, VariantName};
use crate::interval::{Interval, Origin};
use crate::pooling::Pooling;
use crate::units::{Gpus, Micros, Replicas, Requests, Timestamp, Tokens, TokensPerSecond};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

closed_enum! {
    /// Whether decisions are carried out.
    pub enum Mode {
        Recommend => "Decisions are shown and not applied.",
        Act => "Decisions are applied.",
    }
}

/// A served model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Whether decisions are carried out.
    pub mode: Mode,
    /// The number of replicas a person set, if one did.
    pub pinned: Option<Replicas>,
    /// Whether a person stopped all changes.
    pub frozen: bool,
    /// Whether decisions cannot be carried out: another controller sets its replicas too, or there
    /// is no workload of it.
    pub blocked: bool,
    /// How few and how many replicas it may have over all variants.
    pub bounds: ScalingBounds,
    /// How fast it should answer.
    pub objectives: Objectives,
    /// What its users ask of it.
    pub demand: Demand,
    /// How many of its requests missed an objective so far.
    pub misses: Observed<Misses>,
    /// The objective that no number of replicas reaches, if there is one.
    pub unreachable: Option<Unreachable>,
    /// The ways to run it.
    pub variants: BTreeMap<VariantName, Variant>,
}

impl Model {
    /// Whether what is decided for it is carried out. Of a pool, one that does not act has what its
    /// replicas use and nothing else: what is only shown takes nothing from anybody.
    pub fn acts(&self) -> bool {
        self.mode == Mode::Act && !self.frozen && !self.blocked
    }
}

/// How few and how many replicas a model may have over all its variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScalingBounds {
    /// At least this many while awake.
    pub min: Replicas,
    /// At most this many.
    pub max: Replicas,
    /// Whether it may have none at all when nobody uses it.
    pub may_sleep: bool,
}

/// How fast a model should answer. An absent objective is not judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Objectives {
    /// Time to the first token.
    pub first_token: Option<Micros>,
    /// Time between tokens.
    pub between_tokens: Option<Micros>,
    /// How many of a million requests must meet the objectives. Integer, so that 99.9 % is exact.
    pub attainment_per_million: u32,
}

closed_enum! {
    /// What an objective is about.
    pub enum Objective {
        FirstToken => "Time to the first token.",
        BetweenTokens => "Time between tokens.",
    }
}

/// An objective that no number of replicas reaches: a request that is alone on one takes longer already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// What it is about.
    pub objective: Objective,
    /// What the objective is.
    pub limit: Micros,
    /// What a request takes that is alone on a replica.
    pub takes: Micros,
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, takes, .. } = self;
        match self.objective {
            Objective::FirstToken => write!(
                f,
                "a long prompt alone on a replica takes {takes} to its first token; the objective \
                 is {limit}"
            ),
            Objective::BetweenTokens => write!(
                f,
                "a token of a request alone on a replica takes {takes}; the objective is {limit}"
            ),
        }
    }
}

closed_enum! {
    /// The signals that demand is made of.
    pub enum Signal {
        Prefill => "The rate of arriving prompt tokens.",
        Decode => "The rate of generated tokens.",
        Resident => "The tokens of running requests in engine memory.",
        Backlog => "The tokens of queued work.",
    }
}

/// What users ask of a model, in tokens of work and not in requests: one request may be a
/// thousand times the work of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The rate of arriving prompt tokens.
    pub prefill: Observed<TokensPerSecond>,
    /// The rate of generated tokens.
    pub decode: Observed<TokensPerSecond>,
    /// The tokens of running requests in engine memory.
    pub resident: Observed<Tokens>,
    /// The rate of prompt tokens in the busiest seconds of the last half minute. Not needed to decide.
    pub burst: Observed<TokensPerSecond>,
    /// The tokens of queued work. One source that sees work wait is enough to act on it,
    /// whoever else is silent; that nothing waits, all must say.
    pub backlog: Observed<Tokens>,
    /// Who tells of it.
    pub sources: Sources,
}

/// Gateways and engines that tell of a model's demand.
///
/// What a silent one said last is still counted: it may be cut off and not gone. So the sums are what is
/// known at least, good enough to add capacity on and never to give any away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Those that reported lately.
    pub reporting: u32,
    /// Those that should tell and do not.
    pub silent: u32,
}

impl Sources {
    /// Whether some tell and some do not.
    pub const fn is_partial(self) -> bool {
        self.reporting > 0 && self.silent > 0
    }
}

impl Demand {
    /// Demand of which nothing is known.
    pub const UNKNOWN: Self = Self {
        prefill: Observed::Missing,
        decode: Observed::Missing,
        resident: Observed::Missing,
        burst: Observed::Missing,
        backlog: Observed::Missing,
        sources: Sources { reporting: 0, silent: 0 },
    };

    /// Each signal with how far it can be trusted.
    pub const fn signals(&self) -> [(Signal, Freshness); 4] {
        [
            (Signal::Prefill, self.prefill.freshness()),
            (Signal::Decode, self.decode.freshness()),
            (Signal::Resident, self.resident.freshness()),
            (Signal::Backlog, self.backlog.freshness()),
        ]
    }

    /// How far the whole can be trusted: as far as its worst signal, and no further than as stale while a
    /// source is silent.
    pub fn freshness(&self) -> Freshness {
        let best = if self.sources.silent > 0 { Freshness::Stale } else { Freshness::Fresh };
        self.signals().into_iter().fold(best, |worst, (_, freshness)| worst.max(freshness))
    }
}

/// Requests that were judged since counting began, and those of them that missed an objective or
/// were refused. Both only grow; who reads them takes differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misses {
    /// Requests that were judged.
    pub requests: Requests,
    /// Those of them that missed.
    pub missed: Requests,
}

/// One way to run a model: a pool, a layout, and what is known about its speed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Where its replicas run.
    pub pool: PoolId,
    /// Accelerators that one replica uses.
    pub gpus_per_replica: Gpus,
    /// Work one replica can do within the objectives.
    pub capacity: Capacity,
    /// Time from asking for a replica until it serves, if known.
    pub cold_start: Option<Interval<Micros>>,
    /// What runs now.
    pub replicas: BTreeMap<ReplicaId, Replica>,
    /// Replicas that are clearly slower than the others: what each does, in millionths of what one of those does.
    pub slow: BTreeMap<ReplicaId, u32>,
}

/// The work one replica can do within the objectives, in the units of [`Demand`]. `None` is "unknown".
///
/// It reads and writes at these rates at the same time, as the requests that came so far ask for both.
/// Where it is known how much of its time is reading, more of the one leaves less for the other and the
/// two are added up; else whichever runs out first is what limits it. Memory always limits alone.
///
/// Each part stands alone, so that a known part can still call for more replicas while another is
/// unknown. Giving replicas away takes all parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// The rate of prompt tokens it can read.
    pub prefill: Option<Interval<TokensPerSecond>>,
    /// The rate of tokens it can generate.
    pub decode: Option<Interval<TokensPerSecond>>,
    /// The tokens it can hold in memory for running requests.
    pub resident: Option<Interval<Tokens>>,
    /// Of a million parts of its work at these rates, those that are reading.
    pub reading_per_million: Option<u32>,
    /// What each of very many replicas carries over these rates, in millionths, if known: see [`Pooling`].
    pub pooled_per_million: Option<u32>,
    /// What was measured over what was told before, in millionths, if anything was measured.
    pub measured_per_million: Option<u32>,
}

impl Capacity {
    /// A capacity of which nothing is known.
    pub const UNKNOWN: Self = Self {
        prefill: None,
        decode: None,
        resident: None,
        reading_per_million: None,
        pooled_per_million: None,
        measured_per_million: None,
    };

    /// Whether it is no more than what a replica was seen to do: it may carry any number of times that.
    pub fn is_at_least(&self) -> bool {
        [self.prefill, self.decode].iter().flatten().any(|part| part.origin() == Origin::Assumed)
    }

    /// Whether all of it is known.
    pub const fn is_known(&self) -> bool {
        self.prefill.is_some() && self.decode.is_some() && self.resident.is_some()
    }

    /// How much more a fleet carries.
    pub fn pooling(&self) -> Pooling {
        self.pooled_per_million.map_or(Pooling::NONE, |part| Pooling::new(f64::from(part) / 1e6))
    }
}

impl Variant {
    /// Replicas in this state.
    pub fn count(&self, state: ReplicaState) -> Replicas {
        self.replicas.values().filter(|replica| replica.state == state).map(|_| ONE).sum()
    }

    /// Replicas that serve or will serve: all but those that drain.
    pub fn live(&self) -> Replicas {
        let live = |replica: &&Replica| replica.state != ReplicaState::Draining;
        self.replicas.values().filter(live).map(|_| ONE).sum()
    }
}

const ONE: Replicas = Replicas::new(1);

closed_enum! {
    /// Where a replica is in its life.
    pub enum ReplicaState {
        Pending => "It was requested and has no node yet.",
        Starting => "It has a node and is not ready yet.",
        Ready => "It serves requests.",
        Unready => "It is no longer ready; it may still finish requests.",
        Failed => "It has a node and fails to start: it crashes, or lacks something.",
        Lost => "Its node does not answer.",
        Leaving => "It serves, and its node will be removed.",
        Draining => "It gets no new requests and finishes those in flight.",
    }
}

/// One copy of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Where it is in its life.
    pub state: ReplicaState,
    /// When it entered that state.
    pub since: Timestamp,
    /// Requests it is working on.
    pub in_flight: Observed<Requests>,
    /// The nodes it runs on, once it has any: a large model spans several.
    pub nodes: BTreeSet<NodeName>,
    /// How its accelerators are paid for, if known.
    pub purchase: Option<Purchase>,
}

impl Replica {
    /// Whether it can be deleted without killing a request.
    ///
    /// A replica that never served has none. One that drains must be seen, freshly, to have none.
    pub fn is_safe_to_delete(&self) -> bool {
        match self.state {
            ReplicaState::Pending | ReplicaState::Starting | ReplicaState::Failed => true,
            ReplicaState::Ready
            | ReplicaState::Unready
            | ReplicaState::Lost
            | ReplicaState::Leaving => false,
            ReplicaState::Draining => self.in_flight.fresh().is_some_and(|count| count.is_zero()),
        }
    }
}
