//! What is decided while some of those who should tell of demand are silent.

use flyball_core::decision::{Bound, ModelDecision, Previous};
use flyball_core::invariants::check;
use flyball_core::reason::Reason;
use flyball_core::snapshot::{Capacity, Demand, Observed, Sources};
use flyball_core::testing::{
    ModelBuilder, at, model, pool, seen, seen_long_ago, snapshot, variant,
};
use flyball_core::units::{Tokens, TokensPerSecond};
use flyball_governor::{Memory, Policy, decide};

/// Two gateways told of this much; one of them is silent by now.
fn half_reported(prefill: u64, backlog: Observed<Tokens>) -> Demand {
    Demand {
        prefill: seen_long_ago(TokensPerSecond::new(prefill)),
        decode: seen_long_ago(TokensPerSecond::ZERO),
        resident: seen_long_ago(Tokens::ZERO),
        burst: flyball_core::snapshot::Observed::Missing,
        backlog,
        sources: Sources { reporting: 1, silent: 1 },
    }
}

fn decided(model: ModelBuilder) -> ModelDecision {
    let world = snapshot().pool(pool("h100").can_grow()).model(model).build();
    let (decision, _) = decide(&world, &Policy::default(), &Previous::none(), Memory::new());
    assert_eq!(check(&world, &Previous::none(), &decision), []);
    decision.models.into_iter().next().expect("one model")
}

fn target(model: ModelBuilder) -> u32 {
    decided(model).targets[0].replicas.get()
}

#[test]
fn work_that_one_gateway_sees_wait_wakes_a_model_though_another_is_silent() {
    let asleep = model("a/m").between(0, 9).may_sleep().variant(variant("x", "h100"));
    let woken = decided(asleep.clone().demand(half_reported(0, seen(Tokens::new(1)))));
    assert_eq!((woken.targets[0].replicas.get(), woken.reason), (1, Reason::Waking));
    // Work that the silent one told of may still wait there.
    let stale_work = half_reported(0, seen_long_ago(Tokens::new(7)));
    assert_eq!(target(asleep.clone().demand(stale_work)), 1);
    // That nothing waits, it has not said; but that is no reason to wake.
    for backlog in [seen_long_ago(Tokens::ZERO), Observed::Missing] {
        let left = decided(asleep.clone().demand(half_reported(0, backlog)));
        assert_eq!((left.targets[0].replicas.get(), left.bound), (0, Bound::Staleness));
    }
    // Nobody is heard: what was told last wakes nobody.
    let silent = Demand { sources: Sources { reporting: 0, silent: 2 }, ..stale_work };
    assert_eq!(target(asleep.demand(silent)), 0);
}

#[test]
fn a_model_of_unknown_capacity_wakes_with_one_replica() {
    let kind = variant("x", "h100").capacity(Capacity::UNKNOWN);
    let asleep = model("a/m").between(0, 9).may_sleep().variant(kind);
    assert_eq!(target(asleep.demand(half_reported(0, seen(Tokens::new(900_000))))), 1);
}

#[test]
fn more_work_than_there_are_replicas_for_adds_some_though_one_source_is_silent() {
    let two = model("a/m").between(1, 9).variant(variant("x", "h100").ready(2));
    let quiet = seen_long_ago(Tokens::ZERO);
    // A replica reads 10,000 tokens a second.
    assert_eq!(target(two.clone().demand(half_reported(35_000, quiet))), 4);
    assert_eq!(target(two.clone().demand(half_reported(15_000, quiet))), 2);
    assert_eq!(target(two.clone().demand(half_reported(100, quiet))), 2, "nothing goes down");
    // All are silent: what they told last adds nothing, and takes nothing.
    let silent =
        Demand { sources: Sources { reporting: 0, silent: 2 }, ..half_reported(35_000, quiet) };
    assert_eq!(target(two.demand(silent)), 2);
}

#[test]
fn what_a_dead_source_told_last_does_not_add_replicas_again_and_again() {
    let mut world = snapshot()
        .pool(pool("h100").can_grow())
        .model(
            model("a/m")
                .between(1, 90)
                .variant(variant("x", "h100").ready(2))
                .demand(half_reported(35_000, seen(Tokens::new(50)))),
        )
        .build();
    let (mut previous, mut memory) = (Previous::none(), Memory::new());
    for tick in 0..200 {
        world.taken_at = at(1_000 + 15 * tick);
        let (decision, next) = decide(&world, &Policy::default(), &previous, memory);
        (previous, memory) = (previous.after(&decision), next);
        assert_eq!(decision.models[0].targets[0].replicas.get(), 4);
    }
}
