//! A cluster in virtual time: nodes, replicas, requests, metrics, and what goes wrong with them.
//!
//! A [`Setup`] says what there is, what traffic comes and what breaks. [`run`] plays it event by
//! event, asks a policy as often as that wants to be asked, carries out its orders as Kubernetes
//! would, and gives back a [`Run`]: the score, every decision, and every rule that was broken.
//! Rules are checked after every event.
//!
//! It does not know how an engine computes (that is [`ReplicaEngine`]), nor how a policy decides,
//! and a policy sees of it only what [`crate::policy::Sight`] shows.
//!
//! Start at `setup.rs`, then `world.rs`, which holds the state and the loop. One file per subject:
//! `nodes` (accelerators and where they come from), `replicas` (their lives), `requests` (from
//! arrival to answer), `gate` (which engine has room for another), `links` (the network between), `speed` (engines that
//! slow down), `metrics`, `histogram`, `engines`, `told` and `observe` (what is seen of it all), `orders` (what is done),
//! `checks` (what must hold), `account` (the score), `fuzz` (small random worlds by the thousand).

mod account;
mod checks;
mod engine;
mod engines;
mod faults;
mod fuzz;
mod gate;
mod histogram;
mod links;
mod metrics;
mod nodes;
mod observe;
mod orders;
mod queue;
mod replicas;
mod requests;
mod setup;
mod speed;
mod stages;
mod start;
#[cfg(test)]
mod tests;
mod told;
mod world;

pub use account::{AnsweredBy, ClusterRun, ReplicaCounts, ReplicaHistory};
pub use checks::BrokenInvariant;
pub use engine::{
    Changed, EngineLoad, EngineWork, Happening, LinearEngine, ReplicaEngine, Speed, StepSpeed,
};
pub use faults::{Fault, StatedCapacity};
pub use fuzz::{Failure, Stats, capacity_of, fuzz, random_world};
pub use observe::{LogEntry, snapshots};
pub use setup::{Habits, MetricsSetup, ModelSetup, PoolSetup, Setup, VariantSetup, Victim};
pub use stages::{Spacing, StageTokens, Stages, TrafficStage};
pub use start::StartParts;
pub use told::stated;
pub use world::run;
