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

use super::args::ReplayArgs;
use super::ground::{Ground, Subject};

/// What Kubernetes gives a pod that is told to end, if nobody sets another time.
const GRACE: Seconds = Seconds(30.0);

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
    let room = subject.capacity.prediction.held.and_then(Tokens::from_sample);
    let rate = |tokens: f64| {
        let value = TokensPerSecond::from_sample(subject.capacity.prediction.rate * tokens)?;
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
