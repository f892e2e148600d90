//! Test objects with readable steps, for this crate and every crate that tests against it.
//!
//! ```text
//! use flyball_core::testing::{model, pool, snapshot, variant};
//!
//! let snapshot = snapshot()
//!     .pool(pool("h100").gpus(8).limit(16).price_usd_cents(688))
//!     .model(model("team-a/qwen").between(1, 4).variant(variant("tp1", "h100").ready(2)))
//!     .build();
//! assert_eq!(snapshot.models.len(), 1);
//! ```
//!
//! What a step does not say is unremarkable: demand is fresh and zero, capacity is known, the
//! mode is Act, nothing is pinned. Names that are not valid panic, because a test is wrong then.
//! Not for production: other crates ask for the feature `testing` in their `dev-dependencies`.

mod builders;

pub use builders::{ModelBuilder, PoolBuilder, SnapshotBuilder, VariantBuilder};

use crate::decision::{
    Bound, Decision, Expected, ModelDecision, Previous, Receipt, RunAction, RunDecision, Target,
};
use crate::ids::{AcceleratorId, VariantId};
use crate::interval::{Interval, Origin};
use crate::reason::Reason;
use crate::snapshot::{
    Capacity, Demand, Mode, Model, Objectives, Observed, Pool, Purchase, ScalingBounds, Snapshot,
    Sources, Variant,
};
use crate::units::{Gpus, Micros, Replicas, Timestamp, Tokens, TokensPerSecond};
use std::collections::BTreeMap;

/// When test snapshots are taken, in seconds after the epoch, unless a test says otherwise.
const TAKEN_AT: u64 = 1_000;

/// So many seconds after the epoch.
pub const fn at(seconds: u64) -> Timestamp {
    Timestamp::from_micros(Micros::from_seconds(seconds).get())
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
        accelerator: AcceleratorId::new("h100").expect("an accelerator name"),
        allocatable: [(Purchase::OnDemand, seen(Gpus::ZERO))].into(),
        held_by_others: Gpus::ZERO,
        shares: BTreeMap::new(),
        can_grow: false,
        supply: None,
        take_back: None,
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
        blocked: false,
        bounds: ScalingBounds { min: Replicas::ZERO, max: Replicas::new(100), may_sleep: false },
        objectives: Objectives {
            first_token: Some(Micros::from_millis(500)),
            between_tokens: Some(Micros::from_millis(40)),
            attainment_per_million: 990_000,
        },
        demand: Demand {
            prefill: seen(TokensPerSecond::ZERO),
            decode: seen(TokensPerSecond::ZERO),
            resident: seen(Tokens::ZERO),
            burst: Observed::Missing,
            backlog: seen(Tokens::ZERO),
            sources: Sources::default(),
        },
        misses: Observed::Missing,
        unreachable: None,
        variants: BTreeMap::new(),
    };
    ModelBuilder { id: id.to_owned(), model }
}

/// A variant with one GPU per replica and no replicas.
pub fn variant(name: &str, pool: &str) -> VariantBuilder {
    let variant = Variant {
        pool: pool.parse().expect("a pool name"),
        gpus_per_replica: Gpus::new(1),
        capacity: capacity(10_000, 1_000, 100_000),
        cold_start: None,
        replicas: BTreeMap::new(),
        slow: BTreeMap::new(),
    };
    VariantBuilder { name: name.to_owned(), variant, replicas: Vec::new() }
}

/// A capacity known without error: tokens read and generated per second, and tokens held.
pub fn capacity(prefill: u64, decode: u64, resident: u64) -> Capacity {
    let rate = |tokens| Interval::exact(TokensPerSecond::new(tokens), Origin::Stated).ok();
    let resident = Interval::exact(Tokens::new(resident), Origin::Stated).ok();
    Capacity { prefill: rate(prefill), decode: rate(decode), resident, ..Capacity::UNKNOWN }
}

/// A decision that changes nothing.
pub fn hold(snapshot: &Snapshot, previous: &Previous) -> Decision {
    let models = snapshot.models.iter().map(|(id, model)| {
        let targets = model.variants.keys().map(|name| {
            let variant = VariantId::new(id.clone(), name.clone());
            let replicas = previous.baseline(snapshot, &variant);
            let (spares, actions) = (Replicas::ZERO, Vec::new());
            Target { variant, unconstrained: replicas, replicas, spares, actions }
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
    let runs = snapshot.runs.keys().map(|id| RunDecision {
        run: id.clone(),
        gpus: previous.run_baseline(snapshot, id),
        reason: Reason::Steady,
        action: RunAction::Hold,
    });
    let (models, runs) = (models.collect(), runs.collect());
    Decision { id: snapshot.decision_id(), models, runs, pools: Vec::new() }
}
