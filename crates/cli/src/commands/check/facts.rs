//! What was found out about a cluster, before anybody judges it.
//!
//! Every fact says how it was missed if it was missed: an absent thing, a refused question and a
//! time-out lead to different advice, and none of them is a zero.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::codes::Code;

/// One fact, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found<T> {
    Known(T),
    /// The server answered: there is no such thing.
    Absent,
    /// The server answered: you may not know. Its words.
    Denied(String),
    /// No answer in this time.
    TimedOut(Duration),
    /// The question could not be asked or the answer not be read.
    Failed(String),
    /// Nobody asked: the check is not selected, or the API server was not reached before.
    Skipped,
}

impl<T> Found<T> {
    pub(crate) fn known(&self) -> Option<&T> {
        match self {
            Found::Known(value) => Some(value),
            _ => None,
        }
    }

    /// The same reason for not knowing, about something else. `None` if it is known.
    pub(crate) fn missed<U>(&self) -> Option<Found<U>> {
        Some(match self {
            Found::Known(_) => return None,
            Found::Absent => Found::Absent,
            Found::Denied(words) => Found::Denied(words.clone()),
            Found::TimedOut(limit) => Found::TimedOut(*limit),
            Found::Failed(words) => Found::Failed(words.clone()),
            Found::Skipped => Found::Skipped,
        })
    }
}

/// Everything the checks look at.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// The API server's address, as configured.
    pub(crate) address: String,
    /// Where permissions were asked about; everywhere if not set.
    pub(crate) namespace: Option<String>,
    pub(crate) server: Found<Server>,
    pub(crate) clock: Found<ClockSample>,
    /// The answers to the questions of each permission check, in their order.
    pub(crate) access: BTreeMap<Code, Vec<Found<bool>>>,
    pub(crate) kueue: Part,
    pub(crate) jobset: Part,
    pub(crate) metrics: Metrics,
    pub(crate) prometheus: Found<Prometheus>,
    /// Nodes that advertise accelerators, and how many there are of all.
    pub(crate) fleet: Found<Fleet>,
}

impl Facts {
    /// Nothing is known yet.
    pub(crate) fn unasked(address: String) -> Facts {
        Facts {
            address,
            namespace: None,
            server: Found::Skipped,
            clock: Found::Skipped,
            access: BTreeMap::new(),
            kueue: Part { served: Found::Skipped, controller: Found::Skipped },
            jobset: Part { served: Found::Skipped, controller: Found::Skipped },
            metrics: Metrics { served: Found::Skipped, answers: Found::Skipped },
            prometheus: Found::Skipped,
            fleet: Found::Skipped,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// As the server spells it, `v1.36.1`.
    pub(crate) version: String,
    /// Major and minor, as in 1.36; nothing if they cannot be read.
    pub(crate) release: Option<(u32, u32)>,
    /// One request on an open connection.
    pub(crate) latency: Duration,
}

/// One reading of the server's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClockSample {
    /// The server's `Date`, cut to whole seconds by the protocol.
    pub(crate) server: Timestamp,
    /// Our clock when the request left.
    pub(crate) sent: Timestamp,
    pub(crate) round_trip: Duration,
}

/// A part with its own API and a controller behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Versions of its API that the server offers.
    pub(crate) served: Found<Vec<String>>,
    pub(crate) controller: Found<Controller>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Controller {
    /// `namespace/name` of the Deployment.
    pub(crate) place: String,
    pub(crate) version: Option<String>,
    pub(crate) available: bool,
}

/// `metrics.k8s.io`, which another server answers for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Metrics {
    pub(crate) served: Found<Vec<String>>,
    /// Whether that server answers; if not, what the API server says about it.
    pub(crate) answers: Found<Result<(), String>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prometheus {
    /// `namespace/service`, or the address that was given.
    pub(crate) place: String,
    pub(crate) reply: Found<Reply>,
}

/// What came from where Prometheus should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Prometheus answers queries, and this is its version.
    Ready(String),
    /// Nobody is there to answer. The words of the API server.
    NoOne(String),
    /// Something answers, and it is not Prometheus.
    Other,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fleet {
    pub(crate) nodes_total: usize,
    pub(crate) nodes: Vec<AcceleratorNode>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AcceleratorNode {
    pub(crate) name: String,
    /// `nvidia.com/gpu` and the like.
    pub(crate) resource: String,
    /// Nothing if what the node says about them cannot be read, which is not none.
    pub(crate) devices: Option<Devices>,
    /// `NVIDIA-H100-80GB-HBM3`, from a label.
    pub(crate) model: Option<String>,
    pub(crate) pool: Option<String>,
    pub(crate) ready: bool,
    /// Somebody told the scheduler to put nothing new there.
    pub(crate) cordoned: bool,
}

/// Devices of one resource on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Devices {
    /// How many the node has.
    pub(crate) capacity: u32,
    /// Those the scheduler may give away.
    pub(crate) allocatable: u32,
}

impl Devices {
    /// Devices the node has and does not give away.
    pub(crate) fn withheld(self) -> u32 {
        self.capacity.saturating_sub(self.allocatable)
    }
}
