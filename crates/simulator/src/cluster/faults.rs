//! What goes wrong in a world, and when.

use crate::network::Script;
use crate::seconds::Seconds;
use flyball_core::snapshot::Capacity;
use flyball_estimator::reading::Paces;
use std::ops::Range;

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// A pool gets no new nodes.
    StockOut {
        /// The pool.
        pool: usize,
        /// When.
        during: Range<Seconds>,
    },
    /// Nodes that are paid for as spot are taken away.
    Reclaim {
        /// The pool.
        pool: usize,
        /// When the notice comes.
        at: Seconds,
        /// How many nodes; all, if there are fewer.
        nodes: u32,
        /// How long after the notice they go.
        notice: Seconds,
    },
    /// Nodes vanish at once, however they are paid for.
    NodeLoss {
        /// The pool.
        pool: usize,
        /// When.
        at: Seconds,
        /// How many nodes.
        nodes: u32,
    },
    /// Replicas that get their node never become ready: a failed accelerator, an image that crashes.
    BadStarts {
        /// The pool.
        pool: usize,
        /// When.
        during: Range<Seconds>,
    },
    /// Nothing new is scraped; what was read last stays readable and grows old.
    StaleMetrics {
        /// When.
        during: Range<Seconds>,
    },
    /// Scrapes find no value.
    MissingMetrics {
        /// When.
        during: Range<Seconds>,
    },
    /// Scrapes find values that are not numbers.
    NotANumber {
        /// When.
        during: Range<Seconds>,
    },
    /// The clock of whoever decides jumps. The world's own time does not.
    ClockJump {
        /// When.
        at: Seconds,
        /// By how many seconds; back if negative.
        by: f64,
    },
    /// What policies are told that a replica can do is wrong.
    StatedCapacity {
        /// When.
        during: Range<Seconds>,
        /// What they are told.
        stated: StatedCapacity,
    },
    /// Engines compute so many times as fast as they were built to: a card that is throttled, a neighbour.
    EngineSlows {
        /// When.
        during: Range<Seconds>,
        /// How many times as fast.
        factor: f64,
        /// So many of each model's replicas that serve at its beginning, the oldest first; all that there are
        /// and will be if `None`.
        replicas: Option<u32>,
    },
    /// Nobody hears a gateway: only what engines count is read.
    NoGateway {
        /// When.
        during: Range<Seconds>,
    },
    /// The process that decides is replaced by one that has only what was handed on.
    OperatorRestart {
        /// When.
        at: Seconds,
    },
    /// The network between clients and engines breaks by a script; each request is a connection, in
    /// order of arrival. Only the first such fault of a world counts.
    Network {
        /// The script.
        script: Script,
    },
}

/// What policies are told of the capacity of a replica.
#[derive(Clone, Debug, PartialEq)]
pub enum StatedCapacity {
    /// The prediction of an engine that is so many times as fast.
    Times(f64),
    /// Nothing at all.
    Nothing,
    /// This, of each model's variants in their order.
    Exactly(Vec<Vec<(Capacity, Option<Paces>)>>),
}

impl Fault {
    /// From its beginning to its end; the end of something that happens at once is its beginning.
    pub fn during(&self) -> Range<Seconds> {
        match self {
            Self::StockOut { during, .. }
            | Self::BadStarts { during, .. }
            | Self::StaleMetrics { during }
            | Self::MissingMetrics { during }
            | Self::NotANumber { during }
            | Self::StatedCapacity { during, .. }
            | Self::EngineSlows { during, .. }
            | Self::NoGateway { during } => during.clone(),
            Self::Reclaim { at, notice, .. } => *at..*at + *notice,
            Self::NodeLoss { at, .. }
            | Self::ClockJump { at, .. }
            | Self::OperatorRestart { at } => *at..*at,
            // Its rules have their own times.
            Self::Network { .. } => Seconds::ZERO..Seconds::ZERO,
        }
    }
}
