//! A replay request by request: each goes through a router and through the steps of an engine, with
//! its batch and its cache.
//!
//! Needs single requests and a prediction of the engine's steps. For weeks of rates there is the
//! flow of `ground`.

use std::sync::Arc;

use flyball_core::ids::{AcceleratorId, PoolId, VariantName};
use flyball_core::interval::{Interval, Origin};
use flyball_core::snapshot::{Capacity, Objectives, Purchase};
use flyball_core::units::{Gpus, Tokens, TokensPerSecond};
use flyball_simulator::cluster::{
    Habits, MetricsSetup, ModelSetup, PoolSetup, Setup, StartParts, VariantSetup, Victim, run,
};
use flyball_simulator::cold_start::ColdStart;
use flyball_simulator::fluid::{FluidModel, FluidWorld};
use flyball_simulator::policy::ScalingPolicy;
use flyball_simulator::score::Outcome;
use flyball_simulator::seconds::Seconds;
use flyball_simulator::traffic::Trace;

use super::args::ReplayArgs;
use super::ground::{Ground, Subject};

/// More requests than this are replayed as a flow unless somebody insists: at some 100,000
/// requests per second and core, with several policies and seeds, it is a matter of seconds.
const SHORT: usize = 200_000;
/// What Kubernetes gives a pod that is told to end, if nobody sets another time.
const GRACE: Seconds = Seconds(30.0);

/// Whether all that is needed is there: single requests of every model, and its engine's steps.
pub(super) fn possible(ground: &Ground) -> bool {
    ground.subjects.iter().all(|one| one.trace.is_some() && one.capacity.speed.is_some())
}

/// Whether it is also quick.
pub(super) fn short(ground: &Ground) -> bool {
    let count = |subject: &Subject| subject.trace.as_ref().map_or(0, |trace| trace.requests.len());
    ground.subjects.iter().map(count).sum::<usize>() <= SHORT
}

/// Replays one policy. The world is the flow's: the same models, bounds and seed.
pub(super) fn play(
    ground: &Ground,
    args: &ReplayArgs,
    world: &FluidWorld,
    policy: &mut dyn ScalingPolicy,
) -> Outcome {
    let both = ground.subjects.iter().zip(&world.models);
    let models: Vec<ModelSetup> =
        both.filter_map(|(subject, model)| of_model(subject, model, args)).collect();
    let initial = models.iter().flat_map(|model| &model.variants).map(|one| one.initial).sum();
    let setup = Setup {
        seed: world.seed,
        start: world.start,
        length: ground.upto.map_or(ground.length, Seconds),
        scored_from: world.unscored,
        pools: vec![pool(args, world, initial)],
        models,
        metrics: MetricsSetup::DEFAULT,
        faults: Vec::new(),
        grace: GRACE,
        victim: Victim::Youngest,
        habits: Habits::IDEAL,
    };
    let mut outcome = run(&setup, policy).outcome;
    if args.pool.is_none() {
        // Nodes that are there at first never leave a world; here each replica has its own, and
        // is what is paid for.
        let seconds: f64 = outcome.models.iter().map(|model| model.replica_seconds).sum();
        outcome.gpu_seconds = seconds * f64::from(args.tensor);
    }
    outcome
}

fn of_model(subject: &Subject, model: &FluidModel, args: &ReplayArgs) -> Option<ModelSetup> {
    let speed = subject.capacity.speed.clone()?;
    let all = u64::from(speed.settings.blocks) * u64::from(speed.settings.block_tokens);
    let room = subject.capacity.told.held.and_then(Tokens::from_sample);
    let rate = |tokens: f64| {
        let value = TokensPerSecond::from_sample(subject.capacity.told.rate * tokens)?;
        Interval::exact(value, Origin::Modelled).ok()
    };
    let none = ColdStart::Constant(Seconds::ZERO);
    let variant = VariantSetup {
        name: VariantName::new("only").expect("a word is a name"),
        pool: 0,
        gpus_per_replica: args.tensor,
        capacity: Capacity {
            prefill: rate(subject.tokens.0),
            decode: rate(subject.tokens.1),
            resident: Interval::exact(room.unwrap_or(Tokens::new(all)), Origin::Modelled).ok(),
            reading_per_million: subject.capacity.reading_per_million,
            pooled_per_million: Some(subject.capacity.pooling.per_million()),
            measured_per_million: None,
        },
        paces: subject.capacity.paces,
        predicted: None,
        cold_start: StartParts {
            image: none.clone(),
            weights: none,
            warm_up: args.cold_start.clone(),
        },
        speed,
        purchase: Purchase::OnDemand,
        initial: model.initial.get(),
    };
    Some(ModelSetup {
        id: model.id.clone(),
        objectives: Objectives {
            first_token: Some(model.first_token_objective.to_micros()),
            between_tokens: Some(model.between_tokens_objective.to_micros()),
            attainment_per_million: model.attainment_per_million,
        },
        bounds: model.bounds,
        variants: vec![variant],
        trace: Arc::clone(subject.trace.as_ref()?),
        hold: model.patience,
        admit: None,
    })
}

/// Nodes of one replica each, which come with the order and go with the replica: what comes before
/// a replica serves is all in its cold start, as in the flow.
fn pool(args: &ReplayArgs, world: &FluidWorld, initial: u32) -> PoolSetup {
    let nodes = args.pool.map_or(initial, |gpus| gpus / args.tensor);
    PoolSetup {
        id: PoolId::new("pool").expect("a word is a name"),
        accelerator: AcceleratorId::new("gpu").expect("a word is a name"),
        gpus_per_node: args.tensor,
        nodes: [(Purchase::OnDemand, nodes)].into(),
        can_grow: args.pool.is_none(),
        limit: args.pool.map(Gpus::new),
        stock: Vec::new(),
        node_supply: ColdStart::Constant(Seconds::ZERO),
        idle_node: Seconds::ZERO,
        prices: world.price.map(|price| (Purchase::OnDemand, price)).into_iter().collect(),
    }
}

/// The requests between two moments, counted from the first.
pub(super) fn part(trace: &Trace, from: Seconds, to: Seconds) -> Trace {
    let requests = trace.requests.iter().filter(|one| one.at >= from && one.at < to);
    let gaps = trace.gaps.iter().filter(|gap| gap.end > from && gap.start < to);
    Trace {
        requests: requests
            .cloned()
            .map(|mut one| {
                one.at = one.at - from;
                one
            })
            .collect(),
        blocks: trace.blocks.clone(),
        block_tokens: trace.block_tokens,
        gaps: gaps
            .map(|gap| (gap.start - from).max(Seconds::ZERO)..gap.end.min(to) - from)
            .collect(),
    }
}

#[cfg(test)]
#[test]
fn a_part_of_a_trace_begins_at_zero() {
    use flyball_simulator::traffic::Request;
    let one = |at| Request { at: Seconds(at), prompt: 1, output: 1, blocks: 0..0, patience: None };
    let trace = Trace {
        requests: [0.0, 10.0, 20.0, 30.0].map(one).to_vec(),
        gaps: std::iter::once(Seconds(5.0)..Seconds(15.0)).collect(),
        ..Trace::default()
    };
    let cut = part(&trace, Seconds(10.0), Seconds(30.0));
    assert_eq!(cut.requests, [one(0.0), one(10.0)]);
    assert_eq!(cut.gaps.first(), Some(&(Seconds(0.0)..Seconds(5.0))));
}
