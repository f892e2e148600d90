//! The builders that the functions of [`super`] start.

use super::{at, seen};
use crate::ids::{ModelId, ReplicaId, VariantName};
use crate::snapshot::{
    Capacity, Demand, Mode, Model, Observed, Pool, Purchase, Replica, ReplicaState, Share,
    Snapshot, TrainingRun, Unreachable, Variant,
};
use crate::units::{Currency, Gpus, Micros, Money, Price, Replicas, Requests};
use std::collections::BTreeSet;

/// Builds a [`Snapshot`]; see [`super::snapshot`].
#[derive(Clone, Debug)]
pub struct SnapshotBuilder(pub(super) Snapshot);

impl SnapshotBuilder {
    /// Adds a pool.
    pub fn pool(mut self, pool: PoolBuilder) -> Self {
        self.0.pools.insert(pool.name.parse().expect("a pool name"), pool.pool);
        self
    }

    /// Adds a model.
    pub fn model(mut self, model: ModelBuilder) -> Self {
        self.0.models.insert(model.id(), model.build());
        self
    }

    /// Adds a training run, by `namespace/name`, that holds so many accelerators.
    pub fn run(mut self, id: &str, pool: &str, gpus: u32) -> Self {
        let run = TrainingRun {
            pool: pool.parse().expect("a pool name"),
            acts: true,
            gpus: Gpus::new(gpus),
            least: Gpus::ZERO,
            most: Gpus::new(gpus),
            value: None,
            deadline: None,
            last_saved: Observed::Missing,
        };
        self.0.runs.insert(id.parse().expect("a run name"), run);
        self
    }

    /// The snapshot.
    pub fn build(self) -> Snapshot {
        self.0
    }
}

/// Builds a [`Pool`]; see [`super::pool`].
#[derive(Clone, Debug)]
pub struct PoolBuilder {
    pub(super) name: String,
    pub(super) pool: Pool,
}

impl PoolBuilder {
    /// So many accelerators exist, on demand.
    pub fn gpus(self, gpus: u32) -> Self {
        self.allocatable(Purchase::OnDemand, seen(Gpus::new(gpus)))
    }

    /// Nobody knows how many accelerators exist on demand.
    pub fn unknown(self) -> Self {
        self.allocatable(Purchase::OnDemand, Observed::Missing)
    }

    /// So many accelerators exist that are paid for in this way.
    pub fn allocatable(mut self, purchase: Purchase, gpus: Observed<Gpus>) -> Self {
        self.pool.allocatable.insert(purchase, gpus);
        self
    }

    /// So many of its accelerators are in use by others.
    pub const fn held_by_others(mut self, gpus: u32) -> Self {
        self.pool.held_by_others = Gpus::new(gpus);
        self
    }

    /// A namespace is guaranteed so many accelerators, and has this priority.
    pub fn share(mut self, namespace: &str, guaranteed: u32, priority: i32) -> Self {
        let share = Share { guaranteed: Gpus::new(guaranteed), priority };
        self.pool.shares.insert(namespace.parse().expect("a namespace"), share);
        self
    }

    /// An autoscaler can add nodes.
    pub const fn can_grow(mut self) -> Self {
        self.pool.can_grow = true;
        self
    }

    /// At most so many accelerators may be reserved.
    pub const fn limit(mut self, gpus: u32) -> Self {
        self.pool.limit = Some(Gpus::new(gpus));
        self
    }

    /// What an accelerator costs for an hour, on demand.
    pub fn price_usd_cents(mut self, cents: u32) -> Self {
        let amount = Money::from_micros(i64::from(cents) * 10_000, Currency::USD);
        let price = Price::per_gpu_hour(amount).expect("a price that is not negative");
        self.pool.prices.insert(Purchase::OnDemand, price);
        self
    }

    /// What is lent of it is free again within so many seconds.
    pub const fn take_back(mut self, seconds: u64) -> Self {
        self.pool.take_back = Some(Micros::from_seconds(seconds));
        self
    }

    /// The pool.
    pub fn build(self) -> Pool {
        self.pool
    }
}

/// Builds a [`Model`]; see [`super::model`].
#[derive(Clone, Debug)]
pub struct ModelBuilder {
    pub(super) id: String,
    pub(super) model: Model,
}

impl ModelBuilder {
    /// Adds a variant.
    pub fn variant(mut self, variant: VariantBuilder) -> Self {
        let name = VariantName::new(&variant.name).expect("a variant name");
        self.model.variants.insert(name, variant.build(&self.id));
        self
    }

    /// The fewest and most replicas it may have.
    pub const fn between(mut self, min: u32, max: u32) -> Self {
        (self.model.bounds.min, self.model.bounds.max) = (Replicas::new(min), Replicas::new(max));
        self
    }

    /// It may have no replicas when nobody uses it.
    pub const fn may_sleep(mut self) -> Self {
        self.model.bounds.may_sleep = true;
        self
    }

    /// A person set the number of replicas.
    pub const fn pinned(mut self, replicas: u32) -> Self {
        self.model.pinned = Some(Replicas::new(replicas));
        self
    }

    /// A person froze it.
    pub const fn frozen(mut self) -> Self {
        self.model.frozen = true;
        self
    }

    /// Decisions cannot be carried out: another controller sets its replicas too.
    pub const fn blocked(mut self) -> Self {
        self.model.blocked = true;
        self
    }

    /// Decisions are shown and not carried out.
    pub const fn recommend(mut self) -> Self {
        self.model.mode = Mode::Recommend;
        self
    }

    /// What its users ask of it.
    pub const fn demand(mut self, demand: Demand) -> Self {
        self.model.demand = demand;
        self
    }

    /// No number of replicas reaches this objective.
    pub const fn unreachable(mut self, unreachable: Unreachable) -> Self {
        self.model.unreachable = Some(unreachable);
        self
    }

    /// The model.
    pub fn build(self) -> Model {
        self.model
    }

    fn id(&self) -> ModelId {
        self.id.parse().expect("a model name")
    }
}

/// Builds a [`Variant`]; see [`super::variant`].
#[derive(Clone, Debug)]
pub struct VariantBuilder {
    pub(super) name: String,
    pub(super) variant: Variant,
    pub(super) replicas: Vec<(ReplicaState, Observed<Requests>)>,
}

impl VariantBuilder {
    /// One replica uses so many accelerators.
    pub const fn gpus_per_replica(mut self, gpus: u32) -> Self {
        self.variant.gpus_per_replica = Gpus::new(gpus);
        self
    }

    /// What one replica can do.
    pub const fn capacity(mut self, capacity: Capacity) -> Self {
        self.variant.capacity = capacity;
        self
    }

    /// Adds replicas that wait for a node.
    pub fn pending(self, count: usize) -> Self {
        self.replicas(count, ReplicaState::Pending, Observed::Missing)
    }

    /// Adds replicas that start.
    pub fn starting(self, count: usize) -> Self {
        self.replicas(count, ReplicaState::Starting, Observed::Missing)
    }

    /// Adds replicas that serve, with one request each.
    pub fn ready(self, count: usize) -> Self {
        self.replicas(count, ReplicaState::Ready, seen(Requests::new(1)))
    }

    /// Adds replicas that drain and have finished.
    pub fn draining(self, count: usize) -> Self {
        self.replicas(count, ReplicaState::Draining, seen(Requests::ZERO))
    }

    /// Adds replicas in this state with so many requests each.
    pub fn replicas(
        mut self,
        count: usize,
        state: ReplicaState,
        in_flight: Observed<Requests>,
    ) -> Self {
        self.replicas.extend(std::iter::repeat_n((state, in_flight), count));
        self
    }

    /// The variant of this model (`namespace/name`); its replicas are `<model>-<variant>-<n>`.
    pub fn build(self, model: &str) -> Variant {
        let model: ModelId = model.parse().expect("a model name");
        let replicas = self.replicas.into_iter().enumerate().map(|(n, (state, in_flight))| {
            let name = format!("{}-{}-{n}", model.name(), self.name);
            let id = ReplicaId::new(model.namespace().as_str(), &name).expect("a replica name");
            let nodes = BTreeSet::new();
            (id, Replica { state, since: at(0), in_flight, nodes, purchase: None })
        });
        Variant { replicas: replicas.collect(), ..self.variant }
    }
}
