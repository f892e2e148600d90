//! What a world is made of before it begins.

use super::engine::Speed;
use super::faults::Fault;
use super::start::StartParts;
use crate::cold_start::ColdStart;
use crate::seconds::Seconds;
use crate::traffic::Trace;
use flyball_core::ids::{AcceleratorId, ModelId, PoolId, VariantName};
use flyball_core::snapshot::{Capacity, Objectives, Purchase, ScalingBounds};
use flyball_core::units::{Gpus, Price, Timestamp};
use flyball_estimator::reading::{Paces, PredictedReplica};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A world before it begins.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Random seed.
    pub seed: u64,
    /// The date of its first moment.
    pub start: Timestamp,
    /// How long it lasts. Requests that are still inside then are waited for, but nothing is
    /// decided or paid any more.
    pub length: Seconds,
    /// What comes before is not scored.
    pub scored_from: Seconds,
    /// The served models. Names must rise, because a snapshot sorts them and orders go by place.
    pub models: Vec<ModelSetup>,
    /// The pools of accelerators.
    pub pools: Vec<PoolSetup>,
    /// How it is measured.
    pub metrics: MetricsSetup,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// How long a pod that is told to end may take to finish its requests.
    pub grace: Seconds,
    /// Which of the pods that serve goes first when replicas are taken away by number.
    pub victim: Victim,
    /// How its parts are seen and come and go.
    pub habits: Habits,
}

/// Which pod Kubernetes removes among those that serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The one that serves for the shortest time, as ReplicaSets do.
    Youngest,
    /// Any.
    Random,
}

/// A model before the world begins.
#[derive(Clone, Debug)]
pub struct ModelSetup {
    /// Its name.
    pub id: ModelId,
    /// How fast it should answer.
    pub objectives: Objectives,
    /// How few and how many replicas it may have.
    pub bounds: ScalingBounds,
    /// The ways to run it. The first is the one that is scaled by number.
    pub variants: Vec<VariantSetup>,
    /// What users ask.
    pub trace: Arc<Trace>,
    /// How long a request is held while no replica can take it, before it is refused.
    pub hold: Seconds,
    /// Requests that a replica is given at once; the rest waits in one queue before all of them.
    /// `None` hands every request on at once, as most routers do.
    pub admit: Option<u32>,
}

/// A way to run a model, before the world begins.
#[derive(Clone, Debug)]
pub struct VariantSetup {
    /// Its name.
    pub name: VariantName,
    /// The place of its pool in [`Setup::pools`].
    pub pool: usize,
    /// Accelerators that one replica uses.
    pub gpus_per_replica: u32,
    /// What policies are told that one replica can do.
    pub capacity: Capacity,
    /// How long its tokens take, as policies are told.
    pub paces: Option<Paces>,
    /// What it is made of, where the performance model knows that.
    pub predicted: Option<PredictedReplica>,
    /// How long one takes to start.
    pub cold_start: StartParts,
    /// How fast one computes.
    pub speed: Speed,
    /// How the replicas that are there at first, and those ordered by number, are paid for.
    pub purchase: Purchase,
    /// Replicas that serve when the world begins.
    pub initial: u32,
}

/// A pool of accelerators before the world begins.
#[derive(Clone, Debug)]
pub struct PoolSetup {
    /// Its name.
    pub id: PoolId,
    /// The kind of accelerator.
    pub accelerator: AcceleratorId,
    /// Accelerators on one node.
    pub gpus_per_node: u32,
    /// Nodes that are there at first.
    pub nodes: BTreeMap<Purchase, u32>,
    /// Whether more can be had.
    pub can_grow: bool,
    /// The most accelerators that may be reserved, as people and policies are told.
    pub limit: Option<Gpus>,
    /// The most nodes that there can be, from each time on. None delivered above it.
    pub stock: Vec<(Seconds, u32)>,
    /// How long a node takes to come.
    pub node_supply: ColdStart,
    /// How long a node that was delivered stays when nothing runs on it.
    pub idle_node: Seconds,
    /// What an accelerator costs.
    pub prices: BTreeMap<Purchase, Price>,
}

/// How the world is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MetricsSetup {
    /// Time between two scrapes.
    pub every: Seconds,
    /// Time from a scrape until somebody can read it.
    pub delay: Seconds,
    /// Rates are means over so long.
    pub window: Seconds,
    /// A signal older than this is stale.
    pub max_age: Seconds,
}

impl MetricsSetup {
    /// A scrape every 5 s, read 1 s later, rates over 30 s, stale after a minute.
    ///
    /// llm-d's guide scrapes its gateway every 5 s; two missed rates in a row are noise, and a
    /// minute is not.
    pub const DEFAULT: Self = Self {
        every: Seconds(5.0),
        delay: Seconds(1.0),
        window: Seconds(30.0),
        max_age: Seconds(60.0),
    };
}

/// What parts of a real cluster do and an ideal one does not: how they are seen, and how they come and go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Habits {
    /// Gateways tell what they count by themselves, this often; `None` where it is scraped like all else.
    pub report_every: Option<Seconds>,
    /// Engines are read beside gateways, and not only in their place.
    pub engines_beside: bool,
    /// What a replica can do is predicted from its parts and the requests that came; otherwise told.
    pub predicts: bool,
    /// Gateways keep requests back that engines have no room to read, and learn how many that are.
    pub keeps_back: bool,
    /// Percentiles of latency are those of histograms, over half a minute, of requests that have ended.
    pub histograms: bool,
    /// The part of prompt tokens that gateways think no cache has, whatever caches have; `None` where they do not tell.
    pub uncached: Option<f64>,
    /// The least time that a pod takes to end that has served.
    pub pre_stop: Seconds,
    /// When the policy is asked first, at the latest.
    pub first_tick: Seconds,
    /// When engines are scraped first.
    pub first_scrape: Seconds,
}

impl Habits {
    /// Everything is seen at once, and goes at once. The policy is asked first when a scrape or two can be read.
    pub const IDEAL: Self = Self {
        report_every: None,
        engines_beside: false,
        predicts: false,
        keeps_back: false,
        histograms: false,
        uncached: None,
        pre_stop: Seconds::ZERO,
        first_tick: Seconds(10.0),
        first_scrape: Seconds::ZERO,
    };

    /// As Flyball's operator and gateways do it, with Prometheus beside them: gateways tell every second.
    pub const FLYBALL: Self = Self {
        report_every: Some(Seconds(1.0)),
        engines_beside: true,
        predicts: true,
        keeps_back: true,
        histograms: true,
        ..Self::IDEAL
    };
}
