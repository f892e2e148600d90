//! Each rule fires on a broken decision, and none fires on a lawful one.
//!
//! Examples are here, one or more per rule; `random.rs` looks for what they forgot.

mod random;

use super::*;
use crate::decision::{Action, Bound, Previous, PreviousTarget, Work};
use crate::ids::ReplicaId;
use crate::interval::{Interval, Origin};
use crate::snapshot::{Capacity, Demand, Observed, Purchase, ReplicaState, Sources};
use crate::testing::*;
use crate::units::{Currency, Gpus, Micros, MilliReplicas, Money, Replicas, Requests, Tokens};
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
    let target = &mut decision.models[0].targets[0];
    (target.replicas, target.unconstrained) = (Replicas::new(replicas), Replicas::new(replicas));
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
    let text = "INV-01: pool h100: 9 GPUs reserved, was 8 GPUs, available 8 GPUs";
    assert_eq!(violation.to_string(), text);

    let others = world().pool(pool("h100").gpus(8).held_by_others(5)).build();
    assert_eq!(broken(&others, &target(&others, 3)), []);
    assert_eq!(broken(&others, &target(&others, 4)), only);
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
fn inv_01_and_05_count_what_training_is_given() {
    let resized = |snapshot: &Snapshot, gpus| {
        let mut decision = hold(snapshot, &Previous::none());
        decision.runs[0].gpus = Gpus::new(gpus);
        decision
    };
    let full = world().run("ml/ft", "h100", 6).build();
    assert_eq!(broken(&full, &resized(&full, 7)), [Invariant::ReservedWithinAllocatable]);
    let limited = world().pool(pool("h100").limit(8).can_grow()).run("ml/ft", "h100", 6).build();
    assert_eq!(broken(&limited, &resized(&limited, 7)), [Invariant::PoolLimitRespected]);
    let unseen = snapshot().run("ml/ft", "h100", 6).build();
    assert_eq!(broken(&unseen, &resized(&unseen, 7)), [Invariant::ReservedWithinAllocatable]);
    assert_eq!(broken(&unseen, &resized(&unseen, 5)), []);

    // What a run gives back, a model may have in the same decision, but not both of them later,
    // even while the run still holds it.
    let mut given = resized(&full, 4);
    given.models[0].targets[0].replicas = Replicas::new(4);
    assert_eq!(broken(&full, &given), []);
    let previous = Previous::none().after(&given);
    given.runs[0].gpus = Gpus::new(6);
    let violations = check(&full, &previous, &given);
    assert_eq!(violations.len(), 1);
    assert_eq!(violations[0].invariant, Invariant::ReservedWithinAllocatable);
}

#[test]
fn inv_01_adds_up_all_purchases_and_trusts_none_without_the_rest() {
    let mixed = |spot| world().pool(pool("h100").gpus(1).allocatable(Purchase::Spot, spot)).build();
    let known = mixed(seen(Gpus::new(2)));
    assert_eq!(broken(&known, &target(&known, 3)), []);
    assert_eq!(broken(&known, &target(&known, 4)), [Invariant::ReservedWithinAllocatable]);
    let unknown = mixed(Observed::Missing);
    assert_eq!(broken(&unknown, &target(&unknown, 3)), [Invariant::ReservedWithinAllocatable]);
}

#[test]
fn inv_02_scaling_down_without_knowing_what_a_replica_can_do() {
    let only = [Invariant::NoScaleDownBlind];
    let known = capacity(10, 10, 10);
    for capacity in [Capacity::UNKNOWN, Capacity { resident: None, ..known }] {
        let kind = variant("x", "h100").ready(2).capacity(capacity);
        let blind = world().model(model("a/qwen").between(0, 4).variant(kind)).build();
        assert_eq!(broken(&blind, &target(&blind, 1)), only);
        assert_eq!(broken(&blind, &target(&blind, 2)), []);
        assert_eq!(broken(&blind, &target(&blind, 3)), []);
        let drain = acting(&blind, Action::Drain { replica: replica(0) });
        assert_eq!(broken(&blind, &drain), only);
    }
    // A variant that runs nothing carries nothing; one that is to take over must be known.
    let spare = variant("y", "h100").capacity(Capacity::UNKNOWN);
    let idle = world().model(qwen().variant(spare)).build();
    assert_eq!(broken(&idle, &target(&idle, 1)), []);
    let mut switched = target(&idle, 1);
    switched.models[0].targets[1].replicas = Replicas::new(1);
    assert_eq!(broken(&idle, &switched), only);
}

#[test]
fn inv_02_scaling_down_on_signals_that_cannot_be_trusted() {
    let only = [Invariant::NoScaleDownBlind];
    let fresh = qwen().build().demand;
    let stale = Demand { backlog: seen_long_ago(Tokens::ZERO), ..fresh };
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
    let last = PreviousTarget::new(Replicas::new(4), at(0));
    let previous =
        Previous { targets: [("a/qwen/x".parse().unwrap(), last)].into(), ..Previous::none() };
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
    let only = [Invariant::EachNamedOnce];
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

    let trained = world().run("ml/ft", "h100", 2).build();
    let lawful = hold(&trained, &Previous::none());
    let mut forgotten = lawful.clone();
    forgotten.runs.clear();
    assert_eq!(broken(&trained, &forgotten), only);
    let mut twice = lawful.clone();
    twice.runs.push(lawful.runs[0].clone());
    assert_eq!(broken(&trained, &twice), only);
    assert_eq!(broken(&snapshot, &lawful), only);

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
fn inv_09_scaling_down_while_a_source_is_silent() {
    // INV-02 reads the same silence off the signals: both must see it, each for itself.
    let both = [Invariant::NoScaleDownBlind, Invariant::NoScaleDownWhileSilent];
    let partly_silent = |reporting, silent| {
        let demand = Demand { sources: Sources { reporting, silent }, ..qwen().build().demand };
        world().model(qwen().demand(demand)).build()
    };
    assert_eq!(broken(&partly_silent(3, 0), &target(&partly_silent(3, 0), 1)), []);
    for silent_world in [partly_silent(1, 1), partly_silent(0, 1)] {
        assert_eq!(broken(&silent_world, &target(&silent_world, 1)), both);
        assert_eq!(broken(&silent_world, &target(&silent_world, 2)), []);
        assert_eq!(broken(&silent_world, &target(&silent_world, 3)), []);
        let drain = acting(&silent_world, Action::Drain { replica: replica(0) });
        assert_eq!(broken(&silent_world, &drain), both);
    }
}

#[test]
fn inv_10_work_is_seen_to_wait_and_the_model_sleeps_on() {
    let only = [Invariant::WaitingWorkWakes];
    let asleep = |backlog| {
        let fresh = qwen().build().demand;
        let demand = Demand { backlog, sources: Sources { reporting: 1, silent: 1 }, ..fresh };
        let kind = variant("x", "h100");
        model("a/qwen").between(0, 4).may_sleep().variant(kind).demand(demand)
    };
    let waiting = asleep(seen(Tokens::new(1)));
    let snapshot = world().model(waiting.clone()).build();
    assert_eq!(broken(&snapshot, &target(&snapshot, 0)), only);
    assert_eq!(broken(&snapshot, &target(&snapshot, 1)), []);
    let mut starved = target(&snapshot, 0);
    starved.models[0].bound = Bound::Capacity;
    assert_eq!(broken(&snapshot, &starved), []);
    // Nothing waits, nobody knows, or a person said so.
    for quiet in [
        asleep(seen(Tokens::ZERO)),
        asleep(seen_long_ago(Tokens::new(1))),
        waiting.clone().frozen(),
        waiting.clone().pinned(0),
        waiting.between(0, 0),
    ] {
        let snapshot = world().model(quiet).build();
        assert_eq!(broken(&snapshot, &target(&snapshot, 0)), []);
    }
}

#[test]
fn inv_11_taking_for_a_model_that_does_not_act() {
    // Six and two of eight; the second gets three of the first's.
    let both = |second: ModelBuilder| {
        let first = model("a/first").variant(variant("x", "h100").ready(6));
        let second = second.variant(variant("x", "h100").ready(2));
        let world = snapshot().pool(pool("h100").gpus(8)).model(first).model(second).build();
        let mut decision = hold(&world, &Previous::none());
        decision.models[0].targets[0].replicas = Replicas::new(3);
        decision.models[1].targets[0].replicas = Replicas::new(5);
        (world, decision)
    };
    let second = || model("a/second");
    let (world, decision) = both(second());
    assert_eq!(broken(&world, &decision), []);
    let only = [Invariant::TakenOnlyByThoseThatAct];
    for second in [second().recommend(), second().blocked()] {
        let (world, mut decision) = both(second);
        assert_eq!(broken(&world, &decision), only);
        // The first gives them up by itself.
        decision.models[0].targets[0].unconstrained = Replicas::new(3);
        assert_eq!(broken(&world, &decision), []);
    }
    let (mut world, decision) = both(second());
    world.pools.values_mut().for_each(|pool| pool.can_grow = true);
    let mut more = decision;
    more.models[0].targets[0].replicas = Replicas::new(2);
    assert_eq!(broken(&world, &more), only, "four are taken for three");
}

#[test]
fn inv_01_counts_what_a_model_that_does_not_act_has_and_not_what_is_shown_for_it() {
    let shown = qwen().recommend().between(0, 20);
    let world = world().model(shown).run("ml/ft", "h100", 6).build();
    assert_eq!(broken(&world, &target(&world, 9)), []);
    let mut more = target(&world, 0);
    more.runs[0].gpus = Gpus::new(7);
    let only = [Invariant::ReservedWithinAllocatable];
    assert_eq!(broken(&world, &more), only, "its two replicas are still there");
}

#[test]
fn inv_12_taking_from_another_namespace_without_the_pools_word() {
    // Six and two of eight; the second gets three of the first's.
    let broken = |from: &str, h100: PoolBuilder, left: u32| {
        let first = model(from).variant(variant("x", "h100").ready(6));
        let second = model("b/second").variant(variant("x", "h100").ready(2));
        let world = snapshot().pool(h100.gpus(8)).model(first).model(second).build();
        let mut decision = hold(&world, &Previous::none());
        decision.models[0].targets[0].replicas = Replicas::new(left);
        decision.models[1].targets[0].replicas = Replicas::new(8 - left);
        broken(&world, &decision)
    };
    let only = [Invariant::TakenAcrossNamespacesByShare];
    assert_eq!(broken("a/first", pool("h100"), 3), only);
    assert_eq!(broken("b/first", pool("h100"), 3), [], "one namespace orders its own models");
    assert_eq!(broken("a/first", pool("h100").share("b", 0, 1), 3), [], "a higher priority");
    assert_eq!(broken("a/first", pool("h100").share("a", 0, 1), 3), only, "a lower one");
    assert_eq!(broken("a/first", pool("h100").share("b", 5, 0), 3), [], "what it is guaranteed");
    assert_eq!(broken("a/first", pool("h100").share("b", 2, 0), 3), only, "it has that already");
    let both = || pool("h100").share("a", 4, 0).share("b", 0, 1);
    assert_eq!(broken("a/first", both(), 4), []);
    assert_eq!(broken("a/first", both(), 3), only, "the first is guaranteed four");
}

#[test]
fn inv_13_a_write_that_takes_away_what_may_hold_requests() {
    let model = "a/qwen".parse().unwrap();
    let broken = |holding| removals(&model, [("qwen-x-0", holding)]);
    for holding in [Holding::NeverServed, Holding::Empty, Holding::LeftToItsGrace] {
        assert_eq!(broken(holding), []);
    }
    let violations = broken(Holding::MayHold);
    let text = "INV-13: model a/qwen: qwen-x-0 would be removed and may hold requests";
    assert_eq!(violations[0].to_string(), text);
}

#[test]
fn inv_14_counting_what_does_not_serve() {
    let only = [Invariant::OnlyServingCounts];
    let kind = variant("x", "h100").ready(2).replicas(1, ReplicaState::Lost, Observed::Missing);
    let lost = world().model(model("a/qwen").between(1, 4).variant(kind)).build();
    let counting = |ready, spares| {
        let mut decision = hold(&lost, &Previous::none());
        decision.models[0].receipt.work = Some(Work { ready: Replicas::new(ready), ..work() });
        decision.models[0].targets[0].spares = Replicas::new(spares);
        decision
    };
    assert_eq!(broken(&lost, &counting(2, 1)), []);
    assert_eq!(broken(&lost, &counting(3, 1)), only);
    assert_eq!(broken(&lost, &counting(2, 2)), only);
}

#[test]
fn inv_16_lending_while_a_model_has_too_few() {
    let lent = |short: bool, more: u32, acts: bool| {
        let world = world().pool(pool("h100").gpus(8)).model(qwen());
        let mut world = world.run("ml/ft", "h100", 2).build();
        world.runs.values_mut().for_each(|run| run.acts = acts);
        let mut decision = hold(&world, &Previous::none());
        decision.runs[0].gpus = Gpus::new(2 + more);
        let entry = &mut decision.models[0];
        entry.bound = Bound::Capacity;
        entry.targets[0].unconstrained =
            Replicas::new(entry.targets[0].replicas.get() + u32::from(short));
        broken(&world, &decision)
    };
    assert_eq!(lent(false, 1, true), []);
    assert_eq!(lent(true, 0, true), [], "what is lent already is taken back by room alone");
    assert_eq!(lent(true, 1, true), [Invariant::ModelsBeforeLoans]);
    assert_eq!(lent(true, 1, false), [], "what is only shown takes nothing");
}

fn work() -> Work {
    Work {
        ready: Replicas::ZERO,
        coming: Replicas::ZERO,
        need_now: MilliReplicas::ZERO,
        look_ahead: MilliReplicas::ZERO,
        quantile_per_million: 0,
        cold_start: Micros::ZERO,
        hold: Micros::ZERO,
        capacity_per_million: 0,
        hourly_price: None,
    }
}

#[test]
fn ids_rise_and_the_document_lists_them() {
    assert!(Invariant::ALL.is_sorted_by(|one, next| one.id() < next.id()));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/invariants.md");
    let text = std::fs::read_to_string(path).unwrap();
    let listed: Vec<_> = text.lines().filter(|line| line.starts_with("| INV-")).collect();
    let stated: Vec<_> = Invariant::ALL
        .iter()
        .map(|invariant| format!("| {} | {} |", invariant.id(), invariant.statement()))
        .collect();
    assert_eq!(listed, stated);
}
