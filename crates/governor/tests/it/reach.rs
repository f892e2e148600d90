//! What no number of replicas mends, who is slow, and what nobody knows yet.

use crate::worlds::Loop;
use flyball_core::decision::{Action, Decision, Previous};
use flyball_core::reason::Reason;
use flyball_core::snapshot::{Capacity, Demand, Objective, Snapshot, Unreachable};
use flyball_core::testing::{at, model, pool, seen, snapshot, variant};
use flyball_core::units::{Micros, TokensPerSecond};
use flyball_governor::explain::explain;
use flyball_governor::{Memory, Policy, decide};

const UNREACHABLE: Unreachable = Unreachable {
    objective: Objective::BetweenTokens,
    limit: Micros::from_millis(40),
    takes: Micros::from_millis(55),
};

/// Four hours of uneven work, all of which misses: what is wanted in the end, and the last decision.
fn missing(unreachable: Option<Unreachable>) -> (u32, Decision) {
    let mut world = Loop::new(100, 5, Policy::default());
    let mut last = None;
    for tick in 0..960 {
        let work = 3.0 + f64::from(tick * 7 % 11) / 5.0;
        let mut seen = world.snapshot(work);
        for model in seen.models.values_mut() {
            model.unreachable = unreachable;
        }
        last = Some(world.decide(&seen));
        world.pass(work);
        world.misses.missed = world.misses.requests;
    }
    (world.target(), last.expect("it was decided"))
}

#[test]
fn misses_that_no_replica_mends_buy_none() {
    let (chased, _) = missing(None);
    let (left, decision) = missing(Some(UNREACHABLE));
    assert!(left < chased, "{left} and {chased}");
    assert_eq!(decision.models[0].receipt.unreachable, Some(UNREACHABLE));
    let text = explain(&decision.models[0]);
    assert!(text.contains("No number of replicas fixes this: a token of a request"), "{text}");
}

fn reading(tokens: u64) -> Demand {
    let decode = seen(TokensPerSecond::ZERO);
    let still = model("a/m").build().demand;
    Demand { prefill: seen(TokensPerSecond::new(tokens)), decode, ..still }
}

/// Ten replicas with work for nine and some more, of which one does this part of what the others do.
fn ten(slow: Option<u32>, work: u64) -> Snapshot {
    let ten = model("a/m").variant(variant("x", "h100").ready(10)).demand(reading(work));
    let mut world = snapshot().pool(pool("h100").can_grow()).model(ten).build();
    let kind = world.models.values_mut().flat_map(|one| one.variants.values_mut()).next();
    let kind = kind.expect("a variant");
    let id = kind.replicas.keys().nth(7).expect("ten").clone();
    kind.slow.extend(slow.map(|share| (id, share)));
    world
}

fn unconstrained(world: &Snapshot) -> u32 {
    let (decision, _) = decide(world, &Policy::default(), &Previous::none(), Memory::new());
    decision.models[0].targets[0].unconstrained.get()
}

#[test]
fn a_slow_replica_counts_as_a_part_of_one() {
    let usual = unconstrained(&ten(None, 95_000));
    assert_eq!(unconstrained(&ten(Some(1_000_000), 95_000)), usual);
    assert!(unconstrained(&ten(Some(100_000), 95_000)) > usual);
    let (decision, _) =
        decide(&ten(Some(100_000), 95_000), &Policy::default(), &Previous::none(), Memory::new());
    let text = explain(&decision.models[0]);
    assert!(text.contains("Replica m-x-7 is slow and counts as 10 % of one."), "{text}");
}

#[test]
fn the_slow_one_goes_first() {
    let goes = |slow: Option<u32>| {
        let (mut memory, mut previous) = (Memory::new(), Previous::none());
        for tick in 0..40 {
            let mut world = ten(slow, 30_000);
            world.taken_at = at(1_000 + 15 * tick);
            let (decision, learnt) = decide(&world, &Policy::default(), &previous, memory);
            (previous, memory) = (previous.after(&decision), learnt);
            let drained = decision.models[0].targets[0].actions.iter().find_map(|one| match one {
                Action::Drain { replica } => Some(replica.name().to_owned()),
                _ => None,
            });
            if drained.is_some() {
                return drained;
            }
        }
        None
    };
    assert_eq!(goes(Some(500_000)).as_deref(), Some("m-x-7"));
    assert_eq!(goes(None).as_deref(), Some("m-x-0"));
}

#[test]
fn what_a_replica_carries_may_not_be_known_while_every_signal_is() {
    let decided = |capacity: Option<Capacity>| {
        let kind = variant("x", "h100").ready(2);
        let kind = capacity.map_or(kind.clone(), |capacity| kind.capacity(capacity));
        let world = snapshot()
            .pool(pool("h100").can_grow())
            .model(model("a/m").variant(kind).demand(reading(20_000)))
            .build();
        let (decision, _) = decide(&world, &Policy::default(), &Previous::none(), Memory::new());
        decision.models.into_iter().next().expect("one model")
    };
    let unknown = decided(Some(Capacity::UNKNOWN));
    assert_eq!(unknown.reason, Reason::CapacityUnknown);
    assert_eq!(unknown.targets[0].replicas.get(), 2);
    let text = explain(&unknown);
    assert!(
        text.starts_with("The capacity of a replica of a/m is unknown. It stays at 2"),
        "{text}"
    );
    assert!(text.contains("the capacity of a replica must be measured under traffic"), "{text}");
    assert_ne!(decided(None).reason, Reason::CapacityUnknown);
}

#[test]
fn what_is_only_recommended_goes_down_after_the_load() {
    let (mut memory, mut previous) = (Memory::new(), Previous::none());
    let mut targets = Vec::new();
    for tick in 0..120 {
        // Five minutes of work for four, of which one is there and nobody starts the others.
        let work = if tick < 20 { 40_000 } else { 0 };
        let one = model("a/m").recommend().variant(variant("x", "h100").ready(1));
        let one = one.between(1, 10).demand(reading(work));
        let mut world = snapshot().pool(pool("h100").can_grow()).model(one).build();
        world.taken_at = at(1_000 + 15 * tick);
        let (decision, learnt) = decide(&world, &Policy::default(), &previous, memory);
        (previous, memory) = (previous.after(&decision), learnt);
        targets.push(decision.models[0].targets[0].replicas.get());
    }
    assert!(targets[19] >= 4, "{targets:?}");
    assert_eq!(targets[119], 1, "{targets:?}");
}
