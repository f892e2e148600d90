//! Small stories with numbers worked out by hand.

use crate::worlds::Loop;
use flyball_core::decision::Action;
use flyball_core::decision::{Bound, Previous};
use flyball_core::reason::Reason;
use flyball_core::snapshot::{Capacity, Purchase, Sources};
use flyball_core::testing::{capacity, model, pool, seen, snapshot, variant};
use flyball_core::units::{Requests, Tokens, TokensPerSecond};
use flyball_governor::explain::explain;
use flyball_governor::{Memory, Policy, decide};

fn reading(tokens: u64) -> flyball_core::snapshot::Demand {
    flyball_core::snapshot::Demand {
        prefill: seen(TokensPerSecond::new(tokens)),
        decode: seen(TokensPerSecond::ZERO),
        resident: seen(Tokens::ZERO),
        burst: flyball_core::snapshot::Observed::Missing,
        backlog: seen(Tokens::ZERO),
        sources: Sources::default(),
    }
}

#[test]
fn a_step_in_load_is_answered_at_once_and_in_full() {
    let mut world = Loop::new(100, 10, Policy::default());
    for _ in 0..400 {
        world.tick(8.0);
    }
    let before = world.target();
    for _ in 0..3 {
        world.tick(24.0);
    }
    assert!(before <= 11, "{before}");
    // Three ticks after the jump the order for all of it is out.
    assert!(world.target() >= 24, "{}", world.target());
}

/// The first look of a service that just begins sees next to nothing. Taken for a day of it, the misses of
/// ten minutes were those of weeks, and five times the replicas that were needed were kept for hours.
#[test]
fn a_quiet_beginning_does_not_make_misses_dear() {
    let after = |quiet: usize| {
        let mut world = Loop::new(60, 4, Policy::default());
        for (ticks, work) in [(quiet, 0.01), (24, 4.0), (36, 8.0), (24, 4.0)] {
            for _ in 0..ticks {
                world.tick(work);
            }
        }
        assert!(world.misses.missed.get() > 1_000, "{:?}", world.misses);
        world.target()
    };
    let (usual, quiet) = (after(0), after(3));
    // The beginning itself was a jump, against which something is kept.
    assert!(quiet < 2 * usual, "{usual} and {quiet}");
}

#[test]
fn a_decision_is_explained_in_three_sentences_with_its_numbers() {
    let mut world = Loop::new(100, 10, Policy::default());
    for _ in 0..400 {
        world.tick(8.0);
    }
    world.tick(12.0);
    let decision = world.tick(12.0);
    let text = explain(&decision.models[0]);
    assert_eq!(text.matches(". ").count(), 2, "{text}");
    for part in ["a/m", "replicas", "USD per hour", "an HPA at 75 % would set 16 replicas"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn work_that_the_first_pool_has_no_room_for_goes_to_the_next_variant() {
    let shared = variant("cheap", "shared").ready(2);
    let cloud = variant("dear", "cloud");
    let world = snapshot()
        .pool(pool("shared").gpus(3).price_usd_cents(100))
        .pool(pool("cloud").can_grow().price_usd_cents(300))
        .model(model("a/m").variant(shared).variant(cloud).demand(reading(45_000)))
        .build();
    let (decision, _) = decide(&world, &Policy::default(), &Previous::none(), Memory::new());
    let targets = &decision.models[0].targets;
    let count = |n: usize| targets[n].replicas.get();
    assert_eq!(count(0), 3);
    assert!(count(0) + count(1) >= 5, "{targets:?}");
    assert_eq!(decision.models[0].reason, Reason::VariantSwitched);
    assert!(matches!(targets[1].actions[0], Action::Start { purchase: Purchase::OnDemand, .. }));
}

#[test]
fn accelerators_go_where_they_avoid_the_most_misses_and_training_gets_the_rest() {
    let busy = model("a/busy").variant(variant("x", "h100").ready(2)).demand(reading(58_000));
    let calm = model("a/calm").variant(variant("x", "h100").ready(2)).demand(reading(12_000));
    let mut world = snapshot()
        .pool(pool("h100").gpus(8).price_usd_cents(200))
        .model(busy)
        .model(calm)
        .run("ml/ft", "h100", 4)
        .build();
    let (decision, _) = decide(&world, &Policy::default(), &Previous::none(), Memory::new());
    let count = |n: usize| decision.models[n].targets[0].replicas.get();
    // Six are needed at 58,000 tokens a second, and training gives them up. The calm one needs
    // one and a fifth; it keeps at least one.
    assert!(
        count(0) >= 6 && count(1) >= 1 && count(0) + count(1) == 8,
        "{} {}",
        count(0),
        count(1)
    );
    assert_eq!(decision.runs[0].gpus.get(), 0);
    assert_eq!(decision.runs[0].reason, Reason::TakenBack);

    // Quiet again, elsewhere: what is free is lent.
    let run = world.runs.values_mut().next().unwrap();
    run.most = flyball_core::units::Gpus::new(8);
    for model in world.models.values_mut() {
        model.demand = reading(12_000);
    }
    let (decision, _) = decide(&world, &Policy::default(), &Previous::none(), Memory::new());
    assert_eq!(decision.runs[0].gpus.get(), 4, "{:?}", decision.runs);
}

#[test]
fn a_variant_of_unknown_capacity_is_not_given_work() {
    let world = snapshot()
        .pool(pool("h100").can_grow())
        .model(
            model("a/m")
                .variant(variant("known", "h100").capacity(capacity(5_000, 1_000, 100_000)))
                .variant(variant("unknown", "h100").capacity(Capacity::UNKNOWN))
                .demand(reading(20_000)),
        )
        .build();
    let (decision, _) = decide(&world, &Policy::default(), &Previous::none(), Memory::new());
    let targets = &decision.models[0].targets;
    assert!(targets[0].replicas.get() >= 4);
    assert_eq!(targets[1].replicas.get(), 0);
}

#[test]
fn a_model_that_nobody_uses_sleeps_and_a_request_wakes_it() {
    let idle = model("a/m").between(1, 9).may_sleep().variant(variant("x", "h100").ready(1));
    let mut world = snapshot().pool(pool("h100").can_grow()).model(idle.demand(reading(0))).build();
    let (policy, mut previous, mut memory) = (Policy::default(), Previous::none(), Memory::new());
    let mut slept_after = None;
    for n in 0..100 {
        world.taken_at = flyball_core::testing::at(1_000 + n * 15);
        let (decision, next) = decide(&world, &policy, &previous, memory);
        (previous, memory) = (previous.after(&decision), next);
        if decision.models[0].targets[0].replicas.is_zero() {
            slept_after = Some(n * 15);
            assert_eq!(decision.models[0].reason, Reason::Sleeping);
            break;
        }
    }
    // Twice the assumed cold start of 180 s.
    assert_eq!(slept_after, Some(360));
    let model = world.models.values_mut().next().unwrap();
    model.variants.values_mut().next().unwrap().replicas.clear();
    model.demand.backlog = seen(Tokens::new(500));
    world.taken_at = flyball_core::testing::at(1_000 + 3_000);
    let (decision, _) = decide(&world, &policy, &previous, memory);
    assert_eq!(decision.models[0].reason, Reason::Waking);
    assert_eq!(decision.models[0].targets[0].replicas.get(), 1);
    assert_ne!(decision.models[0].bound, Bound::Freeze);
}

#[test]
fn an_owner_reads_that_it_is_the_minimum_or_the_maximum_that_holds() {
    let decided = |min, max, tokens| {
        let world = snapshot()
            .pool(pool("h100").can_grow().price_usd_cents(200))
            .model(
                model("a/m")
                    .variant(variant("x", "h100").ready(2))
                    .between(min, max)
                    .demand(reading(tokens)),
            )
            .build();
        let (decision, _) = decide(&world, &Policy::default(), &Previous::none(), Memory::new());
        let model = decision.models.into_iter().next().unwrap();
        let target: u32 = model.targets.iter().map(|target| target.replicas.get()).sum();
        (target, model.bound, model.reason)
    };
    assert_eq!(decided(5, 9, 10_000), (5, Bound::Minimum, Reason::ScaledUp));
    assert_eq!(decided(2, 9, 100), (2, Bound::Minimum, Reason::Steady));
    assert_eq!(decided(1, 3, 90_000), (3, Bound::Maximum, Reason::LimitReached));
}

/// Two models in a pool of eight: the first acts and has six. The second has two and wants five.
fn beside(second: flyball_core::testing::ModelBuilder) -> flyball_core::decision::Decision {
    let first = model("a/first").variant(variant("x", "h100").ready(6)).demand(reading(12_000));
    let second =
        second.variant(variant("x", "h100").ready(2)).between(5, 9).demand(reading(30_000));
    let world = snapshot()
        .pool(pool("h100").gpus(8).price_usd_cents(200))
        .model(first)
        .model(second)
        .build();
    let (decision, memory) = decide(&world, &Policy::default(), &Previous::none(), Memory::new());
    let previous = Previous::none().after(&decision);
    let (again, _) = decide(&world, &Policy::default(), &previous, memory);
    let first =
        |decision: &flyball_core::decision::Decision| decision.models[0].targets[0].replicas;
    assert_eq!(first(&again), first(&decision));
    decision
}

#[test]
fn what_is_only_shown_takes_nothing_from_anybody() {
    let acts = beside(model("a/second"));
    assert_eq!(acts.models[0].targets[0].replicas.get(), 3, "one that acts would get them");
    let second = || model("a/second");
    for second in [second().recommend(), second().blocked(), second().frozen()] {
        let decision = beside(second);
        let [first, second] = [&decision.models[0], &decision.models[1]].map(|m| &m.targets[0]);
        assert_eq!((first.replicas.get(), first.actions.len()), (6, 0), "{decision:?}");
        // Nothing is free, and the recommendation does not pretend that it were.
        assert_eq!(second.replicas.get(), 2);
    }
    let shown = beside(model("a/second").recommend());
    assert_eq!(shown.models[1].targets[0].unconstrained.get(), 5);
    assert_eq!(shown.models[1].bound, Bound::Capacity);
}

#[test]
fn what_is_shown_is_what_others_leave_free_and_reserves_none_of_it() {
    let kind = |ready| variant("x", "h100").ready(ready);
    let shown = |id| model(id).recommend().variant(kind(1)).demand(reading(60_000));
    let acting = |tokens| model("a/acts").variant(kind(2)).demand(reading(tokens));
    let mut world = snapshot()
        .pool(pool("h100").gpus(10).price_usd_cents(200))
        .model(acting(12_000))
        .model(shown("a/one"))
        .model(shown("a/two"))
        .build();
    let policy = Policy::default();
    let (decision, memory) = decide(&world, &policy, &Previous::none(), Memory::new());
    let count = |decision: &flyball_core::decision::Decision, n: usize| {
        decision.models[n].targets[0].replicas.get()
    };
    assert_eq!(count(&decision, 0), 2);
    assert_eq!(count(&decision, 1) + count(&decision, 2), 8, "both share what is free");
    // What was shown is no claim: whoever acts gets all but what really runs.
    let previous = Previous::none().after(&decision);
    world.models.insert("a/acts".parse().unwrap(), acting(200_000).build());
    world.taken_at = flyball_core::testing::at(1_015);
    let (decision, _) = decide(&world, &policy, &previous, memory);
    assert_eq!(count(&decision, 0), 8, "{decision:?}");
    assert_eq!((count(&decision, 1), count(&decision, 2)), (1, 1));
}

#[test]
fn replicas_that_start_are_tried_before_fewer_are_recommended() {
    let mut world = Loop::new(300, 3, Policy::default());
    let mut tick = |work: f64| {
        world.tick(work);
        world.misses.requests = Requests::new(world.misses.requests.get() + 100);
        (world.target(), world.ready() as u32)
    };
    for _ in 0..800 {
        tick(5.8);
    }
    tick(6.6);
    let (most, _) = tick(6.6);
    assert_eq!(most, 8);
    let held: Vec<(u32, u32)> = (0..60).map(|_| tick(5.8)).collect();
    // Fewer must be recommended for 60 s and a third of a start, ten looks, of which none counts before all have served.
    let tried = held.iter().filter(|level| **level == (most, most)).count();
    assert_eq!(tried, 11, "{held:?}");
    assert_eq!(held[59], (7, 7), "what is not needed goes in the end");
}
