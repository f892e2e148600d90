//! Test objects with readable steps, for this crate and every crate that tests against it.
//!
//! ```
//! use flyball_core::testing::{model, pool, snapshot, variant};
//!
//! let snapshot = snapshot()
//!     .pool(pool("h100").gpus(8).limit(16).price_usd_cents(688))
//!     .model(model("team-a/qwen").between(1, 4).variant(variant("tp1", "h100").ready(2)))
//!     .build();
//! assert_eq!(snapshot.models.len(), 1);
//! ```
//!
//! What a step does not say is unremarkable: demand is fresh and zero, the mode is Act, nothing
//! is pinned. Names that are not valid panic, because a test is wrong then. Not for production.

use crate::decision::{Bound, Decision, Expected, ModelDecision, Previous, Receipt, Target};
use crate::ids::{ModelId, ReplicaId, VariantId, VariantName};
use crate::reason::Reason;
use crate::snapshot::{
    Demand, Mode, Model, Objectives, Observed, Pool, Purchase, Replica, ReplicaState,
    ScalingBounds, Snapshot, TrainingRun, Variant,
};
use crate::units::{
    Currency, Gpus, Millis, Money, Price, Replicas, Requests, Timestamp, Tokens, TokensPerSecond,
};
use std::collections::BTreeMap;

/// When test snapshots are taken, in seconds after the epoch, unless a test says otherwise.
const TAKEN_AT: u64 = 1_000;

/// So many seconds after the epoch.
pub const fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(Millis::from_seconds(seconds).get())
}

/// Seen just now.
pub const fn seen<T>(value: T) -> Observed<T> {
    Observed::Fresh { value, at: at(TAKEN_AT) }
}

/// Seen too long ago.
pub const fn seen_long_ago<T>(value: T) -> Observed<T> {
    Observed::Stale { value, at: at(0) }
}

/// An empty world.
pub const fn snapshot() -> SnapshotBuilder {
    SnapshotBuilder(Snapshot::empty(at(TAKEN_AT), 0))
}

/// A pool with no accelerators that cannot grow.
pub fn pool(name: &str) -> PoolBuilder {
    let pool = Pool {
        accelerator: name.to_owned(),
        allocatable: seen(Gpus::ZERO),
        can_grow: false,
        limit: None,
        prices: BTreeMap::new(),
    };
    PoolBuilder { name: name.to_owned(), pool }
}

/// A model, by `namespace/name`, with no variants and between 0 and 100 replicas.
pub fn model(id: &str) -> ModelBuilder {
    let model = Model {
        mode: Mode::Act,
        pinned: None,
        frozen: false,
        bounds: ScalingBounds { min: Replicas::ZERO, max: Replicas::new(100), may_sleep: false },
        objectives: Objectives {
            first_token: Some(Millis::new(500)),
            between_tokens: Some(Millis::new(40)),
            attainment_per_million: 990_000,
        },
        demand: Demand {
            prefill: seen(TokensPerSecond::ZERO),
            decode: seen(TokensPerSecond::ZERO),
            resident: seen(Tokens::ZERO),
            backlog: seen(Tokens::ZERO),
        },
        variants: BTreeMap::new(),
    };
    ModelBuilder { id: id.to_owned(), model }
}

/// A variant with one GPU per replica and no replicas.
pub fn variant(name: &str, pool: &str) -> VariantBuilder {
    VariantBuilder { name: name.to_owned(), pool: pool.to_owned(), gpus: 1, replicas: Vec::new() }
}

/// A decision that changes nothing.
pub fn hold(snapshot: &Snapshot, previous: &Previous) -> Decision {
    let models = snapshot.models.iter().map(|(id, model)| {
        let targets = model.variants.keys().map(|name| {
            let variant = VariantId::new(id.clone(), name.clone());
            let replicas = previous.baseline(snapshot, &variant);
            Target { variant, wanted: replicas, replicas, actions: Vec::new() }
        });
        ModelDecision {
            model: id.clone(),
            reason: Reason::Steady,
            bound: Bound::NeedNow,
            targets: targets.collect(),
            expected: Expected::default(),
            receipt: Receipt::default(),
        }
    });
    Decision { id: snapshot.decision_id(), models: models.collect() }
}

/// Builds a [`Snapshot`]; see [`snapshot`].
#[derive(Clone, Debug)]
pub struct SnapshotBuilder(Snapshot);

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
            gpus: Gpus::new(gpus),
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

/// Builds a [`Pool`]; see [`pool`].
#[derive(Clone, Debug)]
pub struct PoolBuilder {
    name: String,
    pool: Pool,
}

impl PoolBuilder {
    /// So many accelerators exist.
    pub const fn gpus(mut self, gpus: u32) -> Self {
        self.pool.allocatable = seen(Gpus::new(gpus));
        self
    }

    /// Nobody knows how many accelerators exist.
    pub const fn unknown(mut self) -> Self {
        self.pool.allocatable = Observed::Missing;
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
}

/// Builds a [`Model`]; see [`model`].
#[derive(Clone, Debug)]
pub struct ModelBuilder {
    id: String,
    model: Model,
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

    /// What its users ask of it.
    pub const fn demand(mut self, demand: Demand) -> Self {
        self.model.demand = demand;
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

/// Builds a [`Variant`]; see [`variant`].
#[derive(Clone, Debug)]
pub struct VariantBuilder {
    name: String,
    pool: String,
    gpus: u32,
    replicas: Vec<(ReplicaState, Observed<Requests>)>,
}

impl VariantBuilder {
    /// One replica uses so many accelerators.
    pub const fn gpus_per_replica(mut self, gpus: u32) -> Self {
        self.gpus = gpus;
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
            (id, Replica { state, since: at(0), in_flight, node: None, purchase: None })
        });
        Variant {
            pool: self.pool.parse().expect("a pool name"),
            gpus_per_replica: Gpus::new(self.gpus),
            capacity: None,
            cold_start: None,
            replicas: replicas.collect(),
        }
    }
}
