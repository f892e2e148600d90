//! Looks at the cluster: what people want, what runs, what is asked of it.
//!
//! `jobs` and `runs` are about training runs, `loans` and `borrowed` about what they borrow. `watch` mirrors the API server, `prometheus` asks for series; both only read. `facts` holds what they
//! found at one moment, and `drain` holds the settings of workloads against what draining needs; `adopted` and `port` say
//! where engines of adopted workloads answer; `in_flight`, `replicas`,
//! `gateways` and `snapshot` turn it into readings, of which the estimator makes `core`'s Snapshot, and are pure; `seen` is
//! what is needed of a model beside that. `record` keeps those readings. When the API server is gone, the mirror stays as
//! it was.

mod adopted;
mod borrowed;
pub(crate) mod chunk;
pub mod demand;
mod drain;
mod facts;
mod failures;
mod gateways;
mod groups;
mod in_flight;
mod jobs;
mod loans;
mod mirror;
mod names;
mod nodes;
mod others;
mod port;
pub mod prometheus;
pub mod record;
mod replicas;
mod runs;
mod seen;
mod served;
mod snapshot;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod watch;
mod witnesses;

pub(crate) use drain::END_SECONDS;
pub use drain::{Drain, drain, drain_of};
pub(crate) use facts::GPU;
pub use facts::{AnswersAt, Facts, NodeFacts, PodFacts, Workload, WorkloadKey};
pub use failures::Failures;
pub use gateways::Gateways;
pub use in_flight::{ExpectedInFlight, InFlight, InFlightCounts};
pub use jobs::{GangKey, JobKind, JobObjects, JobWatches, JobsUnknown, WorkloadsOfRuns};
pub(crate) use loans::time_to_save;
pub use loans::{Borrower, LoanFacts, TakeBacks};
pub use names::{Names, SharedName};
pub use nodes::Outlook;
pub use replicas::ReplicaTrouble;
pub(crate) use replicas::purchase;
pub use runs::RunFacts;
pub use seen::SeenModel;
pub(crate) use seen::workload_key;
pub use snapshot::{ObservedCluster, ObservedMemory, observe, observe_and_note};
pub(crate) use watch::MADE_FROM;
#[cfg(test)]
pub(crate) use watch::of_deployment;
pub use watch::{Watches, watch};
pub use witnesses::Witnesses;
