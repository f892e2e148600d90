//! Random worlds: a lawful decision breaks nothing, and no decision makes the check panic.

use super::*;
use crate::decision::RunAction;
use crate::snapshot::Freshness;
use proptest::prelude::*;

/// A model as random numbers; see [`random_world`].
#[derive(Clone, Debug)]
struct RandomModel {
    replicas: [usize; 2],
    gpus: [u32; 2],
    bounds: (u32, u32),
    pinned: Option<u32>,
    frozen: bool,
    may_sleep: bool,
    capacity_known: bool,
    freshness: usize,
    recommendation: [u32; 2],
}

fn random_model() -> impl Strategy<Value = RandomModel> {
    let numbers = ([0_usize..5, 0..5], [1_u32..5, 1..5], (0_u32..5, 0_u32..8));
    let orders = (prop::option::weighted(0.3, 0_u32..8), prop::bool::weighted(0.2), any::<bool>());
    let known = prop::bool::weighted(0.8);
    (numbers, orders, known, 0_usize..4, [0_u32..9, 0..9]).prop_map(
        |(
            (replicas, gpus, (min, more)),
            (pinned, frozen, may_sleep),
            capacity_known,
            freshness,
            recommendation,
        )| {
            let bounds = (min, min + more);
            RandomModel {
                replicas,
                gpus,
                bounds,
                pinned,
                frozen,
                may_sleep,
                capacity_known,
                freshness,
                recommendation,
            }
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
            let kind = if random.capacity_known { kind } else { kind.capacity(Capacity::UNKNOWN) };
            served = served.variant(kind.ready(random.replicas[v]).draining(1));
        }
        served = random.pinned.map_or(served.clone(), |replicas| served.pinned(replicas));
        served = if random.frozen { served.frozen() } else { served };
        served = if random.may_sleep { served.may_sleep() } else { served };
        let fresh = served.clone().build().demand;
        let silent = Sources { reporting: 1, silent: 1 };
        world = world.model(match Freshness::ALL.get(random.freshness) {
            Some(Freshness::Fresh) => served,
            Some(Freshness::Stale) => {
                served.demand(Demand { backlog: seen_long_ago(Tokens::ZERO), ..fresh })
            }
            Some(Freshness::Missing) => served.demand(Demand::UNKNOWN),
            None => served.demand(Demand { sources: silent, ..fresh }),
        });
    }
    world.build()
}

/// The simplest lawful decider: takes recommendations and gives way to every rule in turn.
fn lawful(snapshot: &Snapshot, recommendations: &[RandomModel], run: u32) -> Decision {
    let mut decision = hold(snapshot, &Previous::none());
    // Training only gives back here, and what it gives back is free for models at once.
    let before = decision.runs[0].gpus;
    decision.runs[0].gpus = Gpus::new(run).min(before);
    decision.runs[0].action = RunAction::between(before, decision.runs[0].gpus);
    let shared = "shared".parse().unwrap();
    let room = &snapshot.pools[&shared];
    for (index, recommendation) in recommendations.iter().enumerate() {
        let id = decision.models[index].model.clone();
        let model = &snapshot.models[&id];
        if model.frozen {
            continue;
        }
        let held: Vec<u32> =
            decision.models[index].targets.iter().map(|t| t.replicas.get()).collect();
        let (floor, ceiling) =
            recommendation.pinned.map_or(recommendation.bounds, |pin| (pin, pin));
        let over = held.iter().sum::<u32>() > ceiling;
        let blind = model.demand.freshness() != Freshness::Fresh || !recommendation.capacity_known;
        // What each variant cannot go below, then as much of the recommendation as the ceiling leaves.
        let mut give: Vec<u32> = match (blind, over) {
            (true, false) => held.clone(),
            (true, true) => vec![0, ceiling],
            (false, _) => vec![0, 0],
        };
        for (v, recommended) in recommendation.recommendation.into_iter().enumerate() {
            let left = ceiling - give.iter().sum::<u32>();
            give[v] += recommended.saturating_sub(give[v]).min(left);
        }
        give[1] += floor.saturating_sub(give.iter().sum());
        // The shared pool gives nothing it does not have; the cloud takes what it can.
        let reserved = |decision: &Decision| {
            let changes = Changes::new(snapshot, &Previous::none(), decision);
            changes.reserved(&shared)
        };
        for (target, gets) in decision.models[index].targets.iter_mut().zip(&give) {
            (target.replicas, target.unconstrained) = (Replicas::new(*gets), Replicas::new(*gets));
        }
        let most = room.total_allocatable().last_seen().copied().unwrap_or(Gpus::ZERO);
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
        run in 0_u32..4,
    ) {
        let snapshot = random_world(&models, gpus, limit);
        let decision = lawful(&snapshot, &models, run);
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
