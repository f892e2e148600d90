//! What training borrows: models first, whole runs, and nothing that comes and goes.

use flyball_core::decision::{Decision, Previous, RunAction};
use flyball_core::ids::PoolId;
use flyball_core::invariants::check;
use flyball_core::reason::Reason;
use flyball_core::snapshot::{Observed, Snapshot};
use flyball_core::testing::{at, model, pool, seen, snapshot, variant};
use flyball_core::units::{Currency, Gpus, Micros, Money, Price, Replicas, TokensPerSecond};
use flyball_governor::policy::Lending;
use flyball_governor::{Memory, Policy, decide};

/// A pool of eight with a model that has so many replicas, and no more than those to have.
fn world(replicas: u32) -> Snapshot {
    let kind = variant("x", "h100").ready(replicas as usize);
    snapshot().pool(pool("h100").gpus(8)).model(model("a/m").pinned(replicas).variant(kind)).build()
}

/// Adds a run that needs so many, all or nothing, and holds them or nothing.
fn run(world: &mut Snapshot, id: &str, needs: u32, holds: bool) {
    let mut more = snapshot().run(id, "h100", needs).build();
    for (id, mut run) in std::mem::take(&mut more.runs) {
        run.least = Gpus::new(needs);
        if !holds {
            run.gpus = Gpus::ZERO;
        }
        world.runs.insert(id, run);
    }
}

fn lending(keep_free: u32, settle_seconds: u64) -> Policy {
    let (keep_free, settle) = (Gpus::new(keep_free), Micros::from_seconds(settle_seconds));
    let lending = Lending { on: true, keep_free, settle };
    Policy { pools: [(shared(), lending)].into(), ..Policy::default() }
}

/// The name of the pool.
fn shared() -> PoolId {
    "h100".parse().expect("a name")
}

fn lent(decision: &Decision) -> Vec<u32> {
    decision.runs.iter().map(|run| run.gpus.get()).collect()
}

fn once(world: &Snapshot, policy: &Policy) -> Vec<u32> {
    let (decision, _) = decide(world, policy, &Previous::none(), Memory::new());
    assert_eq!(check(world, &Previous::none(), &decision), []);
    lent(&decision)
}

#[test]
fn a_run_gets_all_that_it_needs_or_nothing_and_what_is_kept_free_is_not_lent() {
    let mut world = world(3);
    run(&mut world, "ml/four", 4, false);
    assert_eq!(once(&world, &lending(1, 0)), [4]);
    assert_eq!(once(&world, &lending(2, 0)), [0], "three are not enough");
    world.runs.values_mut().for_each(|run| run.gpus = Gpus::new(4));
    assert_eq!(once(&world, &lending(2, 0)), [0], "what is kept free is taken back");
    let off = Lending { on: false, ..Lending::default() };
    let off = Policy { pools: [("h100".parse().unwrap(), off)].into(), ..Policy::default() };
    world.runs.values_mut().for_each(|run| run.gpus = Gpus::ZERO);
    assert_eq!(once(&world, &off), [0]);
}

#[test]
fn who_has_a_loan_keeps_it_and_who_has_a_deadline_comes_first() {
    let mut world = world(3);
    run(&mut world, "ml/a", 4, false);
    run(&mut world, "ml/b", 4, true);
    for (id, saved) in [("ml/a", Observed::Missing), ("ml/b", seen(at(0)))] {
        world.runs.get_mut(&id.parse().unwrap()).unwrap().last_saved = saved;
    }
    assert_eq!(once(&world, &lending(0, 0)), [0, 4]);
    world.runs.get_mut(&"ml/a".parse().unwrap()).unwrap().deadline = Some(at(9_000));
    assert_eq!(once(&world, &lending(0, 0)), [4, 0]);
}

#[test]
fn what_is_worth_twice_as_much_by_the_hour_comes_first_and_little_more_takes_from_nobody() {
    let price = |dollars: i64| {
        let amount = Money::from_micros(dollars * 1_000_000, Currency::USD);
        Some(Price::per_gpu_hour(amount).unwrap())
    };
    let mut world = world(3);
    run(&mut world, "ml/a", 4, false);
    run(&mut world, "ml/b", 4, true);
    let mut worth = |a, b| {
        for (id, value) in [("ml/a", a), ("ml/b", b)] {
            world.runs.get_mut(&id.parse().unwrap()).unwrap().value = value;
        }
        once(&world, &lending(0, 0))
    };
    assert_eq!(worth(price(9), price(4)), [4, 0]);
    assert_eq!(worth(price(5), price(4)), [0, 4], "it has the loan");
    assert_eq!(worth(price(1), None), [4, 0], "nobody says what the other is worth");
    assert_eq!(worth(price(0), None), [0, 4]);
    world.runs.get_mut(&"ml/b".parse().unwrap()).unwrap().deadline = Some(at(9_000));
    assert_eq!(once(&world, &lending(0, 0)), [0, 4]);
}

#[test]
fn models_get_back_what_is_lent_and_it_is_lent_again_once_things_have_settled() {
    let policy = lending(0, 300);
    let mut world = world(2);
    run(&mut world, "ml/ft", 4, false);
    let (mut previous, mut memory) = (Previous::none(), Memory::new());
    let mut step = |world: &mut Snapshot, now: u64, pinned: u32| {
        world.taken_at = at(now);
        world.models.values_mut().next().unwrap().pinned = Some(Replicas::new(pinned));
        let (decision, learnt) = decide(world, &policy, &previous, std::mem::take(&mut memory));
        assert_eq!(check(world, &previous, &decision), []);
        previous = previous.after(&decision);
        memory = learnt;
        let run = decision.runs[0].clone();
        (run.gpus.get(), run.action, run.reason)
    };
    assert_eq!(step(&mut world, 1_000, 2), (4, RunAction::Grow, Reason::Lent));
    assert_eq!(step(&mut world, 1_015, 2), (4, RunAction::Hold, Reason::Steady));
    assert_eq!(step(&mut world, 1_030, 5), (0, RunAction::Shrink, Reason::TakenBack));
    assert_eq!(step(&mut world, 1_045, 2).0, 0, "a moment ago it was taken back");
    assert_eq!(step(&mut world, 1_329, 2).0, 0);
    assert_eq!(step(&mut world, 1_330, 2), (4, RunAction::Grow, Reason::Lent));
}

#[test]
fn nothing_is_lent_where_a_model_has_too_few() {
    // It needs more than the pool has; what a replica of two cannot use is no reason to lend.
    let kind = variant("x", "h100").gpus_per_replica(3).ready(1);
    let mut world =
        snapshot().pool(pool("h100").gpus(8)).model(model("a/m").pinned(3).variant(kind)).build();
    run(&mut world, "ml/two", 2, false);
    assert_eq!(once(&world, &lending(0, 0)), [0]);
    world.models.values_mut().next().unwrap().pinned = Some(Replicas::new(2));
    assert_eq!(once(&world, &lending(0, 0)), [2]);
}

#[test]
fn what_is_shown_for_a_run_takes_nothing_and_counts_what_it_holds_as_its_own() {
    let mut world = world(2);
    run(&mut world, "ml/acts", 4, false);
    run(&mut world, "ml/shown", 2, true);
    world.runs.get_mut(&"ml/shown".parse().unwrap()).unwrap().acts = false;
    world.pools.values_mut().next().unwrap().held_by_others = Gpus::new(2);
    assert_eq!(once(&world, &lending(0, 0)), [4, 2]);
    assert_eq!(once(&world, &lending(1, 0)), [0, 2], "one is kept free, and three are no four");
}

#[test]
fn a_pool_that_grows_or_is_not_seen_lends_nothing() {
    let mut world = world(2);
    run(&mut world, "ml/ft", 2, false);
    let shared = world.pools.values_mut().next().unwrap();
    shared.can_grow = true;
    assert_eq!(once(&world, &lending(0, 0)), [0]);
    let shared = world.pools.values_mut().next().unwrap();
    shared.can_grow = false;
    shared.allocatable.values_mut().for_each(|gpus| *gpus = Observed::Missing);
    assert_eq!(once(&world, &lending(0, 0)), [0]);
}

#[test]
fn where_a_loan_may_have_to_come_back_models_look_so_much_further_ahead() {
    let rate = |tokens| seen(TokensPerSecond::new(tokens));
    let started = |take_back: Option<u64>| {
        let shared = pool("h100").gpus(20);
        let shared = take_back.map_or(shared.clone(), |seconds| shared.take_back(seconds));
        let kind = variant("x", "h100").ready(3);
        let mut world =
            snapshot().pool(shared).model(model("a/m").between(1, 20).variant(kind)).build();
        world.models.values_mut().next().unwrap().demand.prefill = rate(20_000);
        let (decision, _) = decide(&world, &Policy::default(), &Previous::none(), Memory::new());
        decision.models[0].receipt.work.unwrap().cold_start
    };
    let more = started(Some(45)).saturating_sub(started(None));
    assert_eq!(more, Micros::from_seconds(45));
}
