//! Replicas that do not come up, stop serving, or lose their node.

use flyball_core::decision::{Action, Decision, Previous, Target};
use flyball_core::ids::ReplicaId;
use flyball_core::invariants::check;
use flyball_core::snapshot::{Observed, Purchase, Replica, ReplicaState, Snapshot};
use flyball_core::testing::{
    PoolBuilder, VariantBuilder, at, model, pool, seen, snapshot, variant,
};
use flyball_core::units::{Requests, Tokens, TokensPerSecond};
use flyball_governor::{Memory, Policy, decide};
use std::collections::BTreeSet;

/// A model that has asked for four for long, with this demand in replicas; it is two hours later.
struct World {
    now: Snapshot,
    previous: Previous,
    memory: Memory,
}

impl World {
    fn new(pool: PoolBuilder, kind: VariantBuilder, demand: u64) -> Self {
        let mut now =
            snapshot().pool(pool).model(model("a/m").between(1, 20).variant(kind)).build();
        let model = now.models.values_mut().next().expect("a model");
        model.demand.prefill = seen(TokensPerSecond::new(demand * 10_000));
        now.taken_at = at(7_200);
        let last = flyball_core::decision::PreviousTarget::new(
            flyball_core::units::Replicas::new(4),
            at(0),
        );
        let previous = Previous {
            targets: [("a/m/x".parse().expect("a name"), last)].into(),
            ..Previous::none()
        };
        Self { now, previous, memory: Memory::new() }
    }

    fn decide(&mut self) -> Target {
        let memory = std::mem::take(&mut self.memory);
        let (decision, memory) = decide(&self.now, &Policy::default(), &self.previous, memory);
        let broken = check(&self.now, &self.previous, &decision);
        assert!(broken.is_empty(), "{broken:?}");
        self.previous = self.previous.after(&decision);
        self.memory = memory;
        let Decision { models, .. } = decision;
        models.into_iter().next().expect("a model").targets.remove(0)
    }

    fn replicas(&mut self) -> &mut std::collections::BTreeMap<ReplicaId, Replica> {
        let model = self.now.models.values_mut().next().expect("a model");
        &mut model.variants.values_mut().next().expect("a variant").replicas
    }

    /// What the decision asks for comes and does not serve; what it deletes goes.
    fn carry_out(&mut self, target: &Target, state: ReplicaState) {
        let now = self.now.taken_at;
        for (n, action) in target.actions.iter().enumerate() {
            let count = match action {
                Action::Start { count, .. } => count.get(),
                Action::Replace { replica } | Action::Delete { replica } => {
                    self.replicas().remove(replica);
                    u32::from(matches!(action, Action::Replace { .. }))
                }
                Action::Drain { .. } => 0,
            };
            for c in 0..count {
                let name = format!("new-{}-{n}-{c}", now.as_millis());
                let (in_flight, nodes) = (Observed::Missing, BTreeSet::new());
                let replica = Replica { state, since: now, in_flight, nodes, purchase: None };
                self.replicas().insert(ReplicaId::new("a", &name).expect("a name"), replica);
            }
        }
    }

    fn pass(&mut self, seconds: u64) {
        self.now.taken_at = at(self.now.taken_at.as_millis() / 1_000 + seconds);
    }
}

fn cloud() -> PoolBuilder {
    pool("h100").can_grow().price_usd_cents(200)
}

fn starts(target: &Target) -> u32 {
    let starts = target.actions.iter().map(|action| match action {
        Action::Start { count, purchase: Purchase::OnDemand } => count.get(),
        _ => 0,
    });
    starts.sum()
}

fn has(target: &Target, is_so: impl Fn(&Action) -> bool) -> usize {
    target.actions.iter().filter(|action| is_so(action)).count()
}

const fn drains(action: &Action) -> bool {
    matches!(action, Action::Drain { .. })
}

const fn replaces(action: &Action) -> bool {
    matches!(action, Action::Replace { .. })
}

fn sick(kind: VariantBuilder, count: usize, state: ReplicaState) -> VariantBuilder {
    kind.replicas(count, state, seen(Requests::ZERO))
}

#[test]
fn one_that_has_been_starting_for_two_hours_does_not_hold_up_the_others() {
    let mut world = World::new(cloud(), variant("x", "h100").ready(3).starting(1), 8);
    let target = world.decide();
    let desired = target.replicas.get();
    assert!((8..=12).contains(&desired), "{target:?}");
    assert_eq!(target.spares.get(), 1, "beside the one that does not come");
    assert_eq!(starts(&target), desired - 3);
}

#[test]
fn one_that_waits_for_a_node_holds_back_what_nobody_could_provide_but_not_for_good() {
    let mut world = World::new(cloud(), variant("x", "h100").ready(3).pending(1), 8);
    assert_eq!(world.decide().replicas.get(), 4);
    // The back-off is one long start: 180 s, as nothing is known.
    world.pass(180);
    assert!(world.decide().replicas.get() >= 8);
}

#[test]
fn an_image_that_does_not_run_buys_no_second_fleet() {
    let mut world = World::new(cloud(), variant("x", "h100").ready(4), 3);
    for (n, replica) in world.replicas().values_mut().enumerate() {
        if n > 0 {
            replica.state = ReplicaState::Failed;
        }
    }
    for _ in 0..500 {
        let target = world.decide();
        world.carry_out(&target, ReplicaState::Failed);
        let (there, desired) = (world.replicas().len() as u32, target.replicas.get());
        assert!(there <= desired + desired.div_ceil(4), "{there} of {desired}");
        world.pass(15);
    }
}

#[test]
fn where_there_is_no_room_the_sick_one_makes_it() {
    let kind = sick(variant("x", "h100").ready(3), 1, ReplicaState::Failed);
    let mut world = World::new(pool("h100").gpus(4), kind, 4);
    let target = world.decide();
    assert_eq!((starts(&target), target.spares.get()), (0, 0), "{target:?}");
    assert_eq!(has(&target, replaces), 1);
    world.carry_out(&target, ReplicaState::Failed);
    world.pass(285);
    assert_eq!(has(&world.decide(), replaces), 0, "five minutes have not passed");
    world.pass(15);
    assert_eq!(has(&world.decide(), replaces), 1);
}

#[test]
fn what_failed_goes_when_enough_serve() {
    let kind = sick(variant("x", "h100").ready(4), 1, ReplicaState::Failed);
    let mut world = World::new(cloud(), kind, 4);
    let target = world.decide();
    if target.replicas.get() == 4 {
        assert_eq!(has(&target, |action| matches!(action, Action::Delete { .. })), 1);
        assert_eq!(target.spares.get(), 0, "it goes, and is not to be made up for");
    }
}

#[test]
fn a_lost_node_is_made_up_for_at_once_and_counts_again_when_it_returns() {
    let kind = variant("x", "h100").ready(2).replicas(2, ReplicaState::Lost, Observed::Missing);
    let mut world = World::new(cloud(), kind, 3);
    let target = world.decide();
    assert_eq!(target.replicas.get(), 4, "{target:?}");
    assert_eq!((starts(&target), target.spares.get()), (2, 2));
    assert_eq!(has(&target, drains), 0);
    world.carry_out(&target, ReplicaState::Pending);
    world.pass(15);
    let target = world.decide();
    assert_eq!((starts(&target), target.spares.get()), (0, 2), "once");
    for replica in world.replicas().values_mut().filter(|one| one.state == ReplicaState::Lost) {
        replica.state = ReplicaState::Ready;
    }
    world.pass(15);
    let target = world.decide();
    assert_eq!((target.replicas.get(), target.spares.get()), (4, 0));
    assert_eq!(has(&target, |action| matches!(action, Action::Delete { .. })), 2, "the new ones");
    assert_eq!(has(&target, drains), 0);
}

#[test]
fn a_lost_node_is_made_up_for_as_far_as_the_pool_has_room() {
    let kind = || variant("x", "h100").ready(2).replicas(2, ReplicaState::Lost, Observed::Missing);
    // Two of four are lost: their accelerators are not allocatable.
    let full = World::new(pool("h100").gpus(2), kind(), 3).decide();
    assert_eq!((starts(&full), full.spares.get()), (0, 0), "{full:?}");
    let room = World::new(pool("h100").gpus(3), kind(), 3).decide();
    assert_eq!((starts(&room), room.spares.get()), (1, 1), "{room:?}");
    let limited = World::new(cloud().limit(3), kind(), 3).decide();
    assert_eq!((starts(&limited), limited.spares.get()), (1, 1), "{limited:?}");
}

#[test]
fn a_replica_whose_node_leaves_is_drained_while_others_serve() {
    let two = variant("x", "h100").ready(3);
    let mut world = World::new(cloud(), sick(two, 1, ReplicaState::Leaving), 3);
    let target = world.decide();
    assert_eq!((starts(&target), has(&target, drains)), (1, 1), "{target:?}");
    assert_eq!(target.spares.get(), 0, "it is counted among those that drain");
    let alone = sick(variant("x", "h100"), 1, ReplicaState::Leaving);
    let mut world = World::new(cloud(), alone, 1);
    let target = world.decide();
    assert_eq!(has(&target, drains), 0, "nobody else serves");
    assert_eq!(target.spares.get(), 1);
}

#[test]
fn of_those_that_served_and_do_not_only_a_quarter_is_drained() {
    let unready = |age: u64| {
        let mut world = World::new(cloud(), variant("x", "h100").ready(4), 3);
        for replica in world.replicas().values_mut().take(3) {
            (replica.state, replica.since) = (ReplicaState::Unready, at(7_200 - age));
        }
        world.decide()
    };
    let soon = unready(119);
    assert_eq!((has(&soon, drains), soon.spares.get()), (0, 0), "it may come back: {soon:?}");
    let late = unready(120);
    assert_eq!(has(&late, drains), 1, "{late:?}");
    assert_eq!(has(&late, |action| matches!(action, Action::Delete { .. })), 0);
}

#[test]
fn signals_that_are_missing_do_not_keep_a_lost_node_from_being_made_up_for() {
    let kind = variant("x", "h100").ready(2).replicas(2, ReplicaState::Lost, Observed::Missing);
    let mut world = World::new(cloud(), kind, 3);
    let model = world.now.models.values_mut().next().unwrap();
    model.demand.decode = Observed::Missing;
    model.demand.backlog = seen(Tokens::ZERO);
    let target = world.decide();
    assert_eq!((target.replicas.get(), starts(&target)), (4, 2), "{target:?}");
}
