//! Whose accelerators: what namespaces take from each other, and what only the pool's owner can say.

use flyball_core::decision::{Bound, Decision, Previous};
use flyball_core::invariants::check;
use flyball_core::snapshot::{Demand, Snapshot};
use flyball_core::testing::{ModelBuilder, PoolBuilder, at, model, pool, seen, snapshot, variant};
use flyball_core::units::{Currency, Money, Tokens, TokensPerSecond};
use flyball_governor::policy::{Aim, ModelPolicy};
use flyball_governor::{Memory, Policy, decide};

/// Wants more than any pool here has.
fn busy(id: &str) -> ModelBuilder {
    let demand = model(id).build().demand;
    model(id).demand(Demand {
        prefill: seen(TokensPerSecond::new(400_000)),
        decode: seen(TokensPerSecond::ZERO),
        resident: seen(Tokens::ZERO),
        burst: flyball_core::snapshot::Observed::Missing,
        backlog: seen(Tokens::ZERO),
        ..demand
    })
}

fn with(id: &str, ready: usize, most: u32) -> ModelBuilder {
    busy(id).variant(variant("x", "h100").ready(ready)).between(1, most)
}

fn h100(gpus: u32) -> PoolBuilder {
    pool("h100").gpus(gpus).price_usd_cents(200)
}

fn world(h100: PoolBuilder, models: impl IntoIterator<Item = ModelBuilder>) -> Snapshot {
    models.into_iter().fold(snapshot().pool(h100), |world, model| world.model(model)).build()
}

fn counts(decision: &Decision) -> Vec<u32> {
    decision.models.iter().map(|model| model.targets[0].replicas.get()).collect()
}

fn decided(world: &Snapshot, policy: &Policy) -> Decision {
    let (decision, _) = decide(world, policy, &Previous::none(), Memory::new());
    assert_eq!(check(world, &Previous::none(), &decision), []);
    decision
}

fn gets(h100: PoolBuilder, models: impl IntoIterator<Item = ModelBuilder>) -> Vec<u32> {
    counts(&decided(&world(h100, models), &Policy::default()))
}

/// The first has six of eight. The second has two, and its owner does what an owner can to get more:
/// a minimum, a pin, misses that cost a fortune.
fn greedy(h100: PoolBuilder, second: ModelBuilder) -> Decision {
    let world = world(h100, [with("a/first", 6, 6), second]);
    let fortune = Money::from_micros(1_000_000_000_000, Currency::USD);
    let dear = ModelPolicy { aim: Aim::MissCosts(fortune), ..ModelPolicy::default() };
    let policy = Policy {
        models: [("b/second".parse().expect("a name"), dear)].into(),
        ..Policy::default()
    };
    decided(&world, &policy)
}

#[test]
fn nothing_that_a_tenant_sets_takes_from_another_namespace() {
    let floor = || with("b/second", 2, 500).between(500, 500);
    for second in [with("b/second", 2, 500), floor(), floor().pinned(500)] {
        let decision = greedy(h100(8), second);
        assert_eq!(counts(&decision), [6, 2], "{decision:?}");
        assert_eq!(decision.models[0].targets[0].actions, []);
        assert_eq!(decision.models[1].bound, Bound::Capacity);
    }
    // In its own namespace it is obeyed.
    let own = gets(h100(8), [with("b/first", 6, 6), with("b/second", 2, 500).between(500, 500)]);
    assert_eq!(own, [1, 7]);
}

#[test]
fn the_pool_says_who_takes_and_what_stays() {
    let counts = |h100: PoolBuilder| counts(&greedy(h100, with("b/second", 2, 500)));
    assert_eq!(counts(h100(8).share("b", 0, 1)), [0, 8], "a higher priority takes all");
    assert_eq!(counts(h100(8).share("a", 0, 1)), [6, 2]);
    assert_eq!(counts(h100(8).share("b", 5, 0)), [3, 5], "what is guaranteed comes back");
    assert_eq!(counts(h100(8).share("b", 5, -1)), [3, 5], "also to a lower priority");
    assert_eq!(counts(h100(8).share("a", 4, 0).share("b", 0, 1)), [4, 4], "and is never taken");
    assert_eq!(counts(h100(8).share("a", 6, 0).share("b", 6, 1)), [6, 2], "more than there is");
}

#[test]
fn the_lowest_priority_gives_first() {
    let three = || [with("a/m", 3, 3), with("b/m", 3, 3), with("c/m", 0, 3)];
    let h100 = || h100(6).share("a", 0, -1).share("c", 0, 1);
    assert_eq!(gets(h100(), three()), [0, 3, 3]);
    assert_eq!(gets(h100().share("a", 2, -1), three()), [2, 1, 3], "but not what it is guaranteed");
}

#[test]
fn what_is_free_goes_below_guarantees_first_then_by_priority_then_to_who_has_least() {
    let three = || [with("a/m", 1, 9), with("b/m", 0, 9), with("c/m", 0, 9)];
    assert_eq!(gets(h100(7), three()), [3, 2, 2], "evenly, however dear the misses of one are");
    assert_eq!(gets(h100(7).share("c", 0, 1), three()), [0, 0, 7]);
    assert_eq!(gets(h100(7).share("b", 4, 0), three()), [1, 5, 1]);
}

#[test]
fn a_replica_that_is_too_large_does_not_keep_what_is_free_from_smaller_ones() {
    let large = || busy("b/large").variant(variant("x", "h100").gpus_per_replica(4)).between(1, 2);
    assert_eq!(gets(h100(7), [with("a/small", 4, 6), large()]), [6, 0]);
    assert_eq!(gets(h100(8), [with("a/small", 4, 6), large()]), [4, 1], "it had least");
}

#[test]
fn who_is_starved_gets_what_another_of_its_namespace_hardly_needs() {
    let tokens = |model: ModelBuilder, tokens: u64| {
        let demand = busy("a/any").build().demand;
        model.demand(Demand { prefill: seen(TokensPerSecond::new(tokens)), ..demand })
    };
    let idle = tokens(with("a/idle", 9, 20), 10_000);
    let starved = tokens(with("a/starved", 1, 20), 60_000);
    let counts = gets(h100(10), [idle, starved]);
    assert!(counts[1] >= 6 && counts[0] >= 1, "{counts:?}");
}

#[test]
fn nothing_is_taken_for_replicas_that_do_not_come() {
    // A quota keeps every further pod of the second from being made.
    let world_of = |second: usize, first: usize, time: u64| {
        let h100 = h100(8).share("b", 0, 1);
        let models = [with("a/first", first, 6), with("b/second", second, 5)];
        let mut world = world(h100, models);
        world.taken_at = at(time);
        world
    };
    let (mut previous, mut memory) = (Previous::none(), Memory::new());
    let mut seen = Vec::new();
    // The first gives way within a look, the second never comes.
    let mut first = 6;
    for time in [1_000, 1_015, 1_090, 1_105, 1_400, 4_000] {
        let world = world_of(2, first, time);
        let (decision, learnt) = decide(&world, &Policy::default(), &previous, memory);
        assert_eq!(check(&world, &previous, &decision), []);
        previous = previous.after(&decision);
        memory = learnt;
        let now = counts(&decision);
        first = now[0] as usize;
        seen.push(now);
    }
    assert_eq!(seen[..2], [[3, 5], [3, 5]]);
    for later in &seen[2..] {
        assert_eq!(later, &[6, 2], "{seen:?}");
    }
}
