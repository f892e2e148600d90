//! Each rule fires on a broken decision, and none fires on a lawful one.

use super::*;
use crate::decision::{Action, Bound, Previous, PreviousTarget};
use crate::ids::ReplicaId;
use crate::interval::{Interval, Origin};
use crate::snapshot::{Demand, Freshness, Purchase, ReplicaState};
use crate::testing::*;
use crate::units::{Currency, Gpus, Money, Replicas, Requests};
use proptest::prelude::*;
use std::path::Path;

/// One pool of 8 GPUs and one model with 2 ready replicas, 1 finished draining; 1 to 4 allowed.
fn world() -> SnapshotBuilder {
    snapshot().pool(pool("h100").gpus(8)).model(qwen())
}

fn qwen() -> ModelBuilder {
    model("a/qwen").between(1, 4).variant(variant("x", "h100").ready(2).draining(1))
}

fn target(snapshot: &Snapshot, replicas: u32) -> Decision {
    let mut decision = hold(snapshot, &Previous::none());
    decision.models[0].targets[0].replicas = Replicas::new(replicas);
    decision
}

fn acting(snapshot: &Snapshot, action: Action) -> Decision {
    let mut decision = hold(snapshot, &Previous::none());
    decision.models[0].targets[0].actions.push(action);
    decision
}

fn replica(n: u32) -> ReplicaId {
    ReplicaId::new("a", &format!("qwen-x-{n}")).unwrap()
}

fn broken(snapshot: &Snapshot, decision: &Decision) -> Vec<Invariant> {
    let mut all: Vec<_> = check(snapshot, &Previous::none(), decision)
        .into_iter()
        .map(|violation| violation.invariant)
        .collect();
    all.dedup();
    all
}

#[test]
fn holding_and_lawful_changes_break_nothing() {
    let snapshot = world().build();
    for replicas in 1..=4 {
        assert_eq!(broken(&snapshot, &target(&snapshot, replicas)), []);
    }
    let drain = acting(&snapshot, Action::Drain { replica: replica(0) });
    assert_eq!(broken(&snapshot, &drain), []);
    let delete = acting(&snapshot, Action::Delete { replica: replica(2) });
    assert_eq!(broken(&snapshot, &delete), []);
}

#[test]
fn inv_01_more_than_is_allocatable() {
    let only = [Invariant::ReservedWithinAllocatable];
    let full = world().pool(pool("h100").gpus(8)).run("ml/ft", "h100", 6).build();
    assert_eq!(broken(&full, &target(&full, 3)), only);
    let violation = &check(&full, &Previous::none(), &target(&full, 3))[0];
    let text = "INV-01: pool h100: 9 GPUs reserved, was 8 GPUs, allocatable 8 GPUs";
    assert_eq!(violation.to_string(), text);

    let unknown = world().pool(pool("h100").unknown()).build();
    assert_eq!(broken(&unknown, &target(&unknown, 3)), only);
    assert_eq!(broken(&unknown, &target(&unknown, 2)), []);
    let unseen = snapshot().model(qwen()).build();
    assert_eq!(broken(&unseen, &target(&unseen, 3)), only);
    // Nodes were lost: holding is not making it worse. A pool that grows has no such end.
    let lost = world().pool(pool("h100").gpus(1)).build();
    assert_eq!(broken(&lost, &target(&lost, 2)), []);
    let growing = world().pool(pool("h100").gpus(1).can_grow()).build();
    assert_eq!(broken(&growing, &target(&growing, 4)), []);
}

#[test]
fn inv_02_scaling_down_on_signals_that_cannot_be_trusted() {
    let only = [Invariant::NoScaleDownBlind];
    let fresh = qwen().build().demand;
    let stale = Demand { backlog: seen_long_ago(crate::units::Tokens::ZERO), ..fresh };
    for demand in [Demand::UNKNOWN, stale] {
        let blind = world().model(qwen().demand(demand)).build();
        assert_eq!(broken(&blind, &target(&blind, 1)), only);
        assert_eq!(broken(&blind, &target(&blind, 2)), []);
        assert_eq!(broken(&blind, &target(&blind, 3)), []);
        let drain = acting(&blind, Action::Drain { replica: replica(0) });
        assert_eq!(broken(&blind, &drain), only);
        let finish = acting(&blind, Action::Delete { replica: replica(2) });
        assert_eq!(broken(&blind, &finish), []);
    }
}

#[test]
fn inv_02_follows_an_order_and_no_further() {
    let ordered = world().model(qwen().between(0, 1).demand(Demand::UNKNOWN)).build();
    assert_eq!(broken(&ordered, &target(&ordered, 1)), []);
    assert_eq!(broken(&ordered, &target(&ordered, 0)), [Invariant::NoScaleDownBlind]);
}

#[test]
fn inv_02_keeps_a_target_that_replicas_have_not_reached() {
    let blind = world().model(qwen().demand(Demand::UNKNOWN)).build();
    let last = PreviousTarget { replicas: Replicas::new(4), since: at(0) };
    let previous = Previous { targets: [("a/qwen/x".parse().unwrap(), last)].into() };
    let violations = check(&blind, &previous, &target(&blind, 2));
    assert_eq!(violations.len(), 1);
    assert_eq!(violations[0].invariant, Invariant::NoScaleDownBlind);
}

#[test]
fn inv_03_outside_the_owners_bounds() {
    let only = [Invariant::ReplicasWithinBounds];
    let snapshot = world().build();
    assert_eq!(broken(&snapshot, &target(&snapshot, 5)), only);
    assert_eq!(broken(&snapshot, &target(&snapshot, 0)), only);
    let sleepy = world().model(qwen().may_sleep()).build();
    assert_eq!(broken(&sleepy, &target(&sleepy, 0)), []);
    let pinned = world().model(qwen().pinned(6)).build();
    assert_eq!(broken(&pinned, &target(&pinned, 6)), []);
    assert_eq!(broken(&pinned, &target(&pinned, 4)), only);
    let pinned_sleepy = world().model(qwen().may_sleep().pinned(6)).build();
    assert_eq!(broken(&pinned_sleepy, &target(&pinned_sleepy, 0)), only);
    // Fewer than asked for is lawful only when the decision says what stopped it.
    let mut starved = target(&pinned, 4);
    starved.models[0].bound = Bound::Capacity;
    assert_eq!(broken(&pinned, &starved), []);
}

#[test]
fn inv_04_a_negative_cost() {
    let snapshot = world().build();
    let mut decision = hold(&snapshot, &Previous::none());
    let amounts = [-1, 0, 1].map(|micros| Money::from_micros(micros, Currency::USD));
    let [low, point, high] = amounts;
    let cost = Interval::new(low, point, high, Origin::Modelled).unwrap();
    decision.models[0].expected.hourly_cost = Some(cost);
    assert_eq!(broken(&snapshot, &decision), [Invariant::NothingNegative]);
}

#[test]
fn inv_05_beyond_the_limit_of_a_pool() {
    let limited = world().pool(pool("h100").gpus(8).limit(3).can_grow()).build();
    assert_eq!(broken(&limited, &target(&limited, 3)), []);
    assert_eq!(broken(&limited, &target(&limited, 4)), [Invariant::PoolLimitRespected]);
    let lowered = world().pool(pool("h100").gpus(8).limit(1)).build();
    assert_eq!(broken(&lowered, &target(&lowered, 2)), []);
}

#[test]
fn inv_06_named_twice_or_not_at_all_or_unknown() {
    let only = [Invariant::EachVariantOnce];
    let snapshot = world().build();
    let lawful = hold(&snapshot, &Previous::none());

    let mut twice = lawful.clone();
    let again = twice.models[0].targets[0].clone();
    twice.models[0].targets.push(again);
    assert_eq!(broken(&snapshot, &twice), only);

    let mut model_twice = lawful.clone();
    model_twice.models.push(lawful.models[0].clone());
    assert_eq!(broken(&snapshot, &model_twice), only);

    let mut forgotten = lawful.clone();
    forgotten.models.clear();
    assert_eq!(broken(&snapshot, &forgotten), only);

    let mut unknown = lawful.clone();
    unknown.models[0].targets[0].variant = "a/qwen/other".parse().unwrap();
    assert_eq!(broken(&snapshot, &unknown), only);

    let stranger = acting(&snapshot, Action::Drain { replica: replica(9) });
    assert_eq!(broken(&snapshot, &stranger), only);
}

#[test]
fn inv_07_deleting_a_replica_that_may_hold_requests() {
    let only = [Invariant::NoRequestKilled];
    let snapshot = world().build();
    let ready = acting(&snapshot, Action::Delete { replica: replica(0) });
    assert_eq!(broken(&snapshot, &ready), only);
    for in_flight in [seen(Requests::new(1)), seen_long_ago(Requests::ZERO)] {
        let draining = variant("x", "h100").replicas(1, ReplicaState::Draining, in_flight);
        let busy = world().model(model("a/qwen").variant(draining)).build();
        let delete = acting(&busy, Action::Delete { replica: replica(0) });
        assert_eq!(broken(&busy, &delete), only);
    }
}

#[test]
fn inv_08_changing_a_frozen_model() {
    let only = [Invariant::FrozenUnchanged];
    let frozen = world().model(qwen().frozen()).build();
    assert_eq!(broken(&frozen, &target(&frozen, 3)), only);
    let start = Action::Start { count: Replicas::new(1), purchase: Purchase::OnDemand };
    assert_eq!(broken(&frozen, &acting(&frozen, start)), only);
}

#[test]
fn ids_count_up_and_the_document_lists_them() {
    for (index, invariant) in Invariant::ALL.iter().enumerate() {
        assert_eq!(invariant.id(), format!("INV-{:02}", index + 1));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/invariants.md");
    let text = std::fs::read_to_string(path).unwrap();
    let listed: Vec<_> = text.lines().filter(|line| line.starts_with("| INV-")).collect();
    let stated: Vec<_> = Invariant::ALL
        .iter()
        .map(|invariant| format!("| {} | {} |", invariant.id(), invariant.statement()))
        .collect();
    assert_eq!(listed, stated);
}

/// A model as random numbers; see [`random_world`].
#[derive(Clone, Debug)]
struct RandomModel {
    replicas: [usize; 2],
    gpus: [u32; 2],
    bounds: (u32, u32),
    pinned: Option<u32>,
    frozen: bool,
    may_sleep: bool,
    freshness: usize,
    wish: [u32; 2],
}

fn random_model() -> impl Strategy<Value = RandomModel> {
    let numbers = ([0_usize..5, 0..5], [1_u32..5, 1..5], (0_u32..5, 0_u32..8));
    let orders = (prop::option::weighted(0.3, 0_u32..8), prop::bool::weighted(0.2), any::<bool>());
    (numbers, orders, 0_usize..3, [0_u32..9, 0..9]).prop_map(
        |((replicas, gpus, (min, more)), (pinned, frozen, may_sleep), freshness, wish)| {
            let bounds = (min, min + more);
            RandomModel { replicas, gpus, bounds, pinned, frozen, may_sleep, freshness, wish }
        },
    )
}

fn random_world(models: &[RandomModel], gpus: u32, limit: Option<u32>) -> Snapshot {
    let mut shared = pool("shared").gpus(gpus);
    if let Some(limit) = limit {
        shared = shared.limit(limit);
    }
    let mut world =
        snapshot().pool(shared).pool(pool("cloud").can_grow()).run("ml/ft", "shared", 2);
    for (n, random) in models.iter().enumerate() {
        let mut served = model(&format!("a/m{n}")).between(random.bounds.0, random.bounds.1);
        for (v, pool) in ["shared", "cloud"].into_iter().enumerate() {
            let kind = variant(&format!("v{v}"), pool).gpus_per_replica(random.gpus[v]);
            served = served.variant(kind.ready(random.replicas[v]).draining(1));
        }
        served = random.pinned.map_or(served.clone(), |replicas| served.pinned(replicas));
        served = if random.frozen { served.frozen() } else { served };
        served = if random.may_sleep { served.may_sleep() } else { served };
        let fresh = served.clone().build().demand;
        world = world.model(match Freshness::ALL[random.freshness] {
            Freshness::Fresh => served,
            Freshness::Stale => served
                .demand(Demand { backlog: seen_long_ago(crate::units::Tokens::ZERO), ..fresh }),
            Freshness::Missing => served.demand(Demand::UNKNOWN),
        });
    }
    world.build()
}

/// The simplest lawful decider: takes wishes and gives way to every rule in turn.
fn lawful(snapshot: &Snapshot, wishes: &[RandomModel]) -> Decision {
    let mut decision = hold(snapshot, &Previous::none());
    let shared = "shared".parse().unwrap();
    let room = &snapshot.pools[&shared];
    for (index, wish) in wishes.iter().enumerate() {
        let id = decision.models[index].model.clone();
        let model = &snapshot.models[&id];
        if model.frozen {
            continue;
        }
        let held: Vec<u32> =
            decision.models[index].targets.iter().map(|t| t.replicas.get()).collect();
        let (floor, ceiling) = wish.pinned.map_or(wish.bounds, |pin| (pin, pin));
        let over = held.iter().sum::<u32>() > ceiling;
        let blind = model.demand.freshness() != Freshness::Fresh;
        // What each variant cannot go below, then as much of the wish as the ceiling leaves.
        let mut give: Vec<u32> = match (blind, over) {
            (true, false) => held.clone(),
            (true, true) => vec![0, ceiling],
            (false, _) => vec![0, 0],
        };
        for (v, wanted) in wish.wish.into_iter().enumerate() {
            let left = ceiling - give.iter().sum::<u32>();
            give[v] += wanted.saturating_sub(give[v]).min(left);
        }
        give[1] += floor.saturating_sub(give.iter().sum());
        // The shared pool gives nothing it does not have; the cloud takes what it can.
        let reserved = |decision: &Decision| {
            let changes = Change::all(snapshot, &Previous::none(), decision);
            change::reserved(snapshot, &shared, &changes)
        };
        decision.models[index].targets[0].replicas = Replicas::new(give[0]);
        decision.models[index].targets[1].replicas = Replicas::new(give[1]);
        let most = room.allocatable.last_seen().copied().unwrap_or(Gpus::ZERO);
        let most = room.limit.map_or(most, |limit| most.min(limit));
        let (before, after) = reserved(&decision);
        if after > before && after > most {
            let back = give[0].min(held[0]);
            decision.models[index].targets[0].replicas = Replicas::new(back);
            decision.models[index].bound = Bound::Capacity;
        }
    }
    decision
}

proptest! {
    #[test]
    fn a_decision_made_lawfully_breaks_nothing(
        models in prop::collection::vec(random_model(), 0..5),
        gpus in 0_u32..40,
        limit in prop::option::of(0_u32..40),
    ) {
        let snapshot = random_world(&models, gpus, limit);
        let decision = lawful(&snapshot, &models);
        let violations = check(&snapshot, &Previous::none(), &decision);
        prop_assert!(violations.is_empty(), "{violations:?}");
        // Deciding to hold afterwards is lawful too, unless a person's bounds say otherwise.
        let previous = Previous::none().after(&decision);
        let again = hold(&snapshot, &previous);
        for violation in check(&snapshot, &previous, &again) {
            prop_assert_eq!(violation.invariant, Invariant::ReplicasWithinBounds);
        }
    }

    #[test]
    fn the_check_never_panics_whatever_is_decided(
        models in prop::collection::vec(random_model(), 1..4),
        replicas: u32,
        actions in prop::collection::vec((any::<bool>(), 0_u32..8), 0..4),
    ) {
        let snapshot = random_world(&models, 8, None);
        let mut decision = target(&snapshot, replicas);
        for (delete, n) in actions {
            let replica = ReplicaId::new("a", &format!("m0-v0-{n}")).unwrap();
            let action =
                if delete { Action::Delete { replica } } else { Action::Drain { replica } };
            decision.models[0].targets[0].actions.push(action);
        }
        let _ = check(&snapshot, &Previous::none(), &decision);
    }
}
