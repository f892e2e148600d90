//! Plays the world under every policy, and judges each.

use std::cell::Cell;
use std::rc::Rc;

use flyball_simulator::cluster::{self, ClusterRun};
use flyball_simulator::policy::ScalingPolicy;
use flyball_simulator::scenario::{Finding, ScenarioVerdict};

use super::answer::{ExpectationView, SimulatedView, Simulation};
use super::backtest::answer::{DecisionView, ModelView, tidy};
use super::backtest::clock::Clock;
use super::backtest::collect::{self, Played};
use super::backtest::policies::{Named, Scaled};
use super::backtest::recorded::Recorded;
use super::backtest::replay::parallel;
use super::handed_on::Persisted;
use super::world::World;
use crate::output::Progress;

const HOUR: f64 = 3_600.0;

/// Every policy in a world of its own.
pub(super) fn all(world: &World, policies: &[Named], progress: &Progress) -> Simulation {
    let runs = parallel(policies.len(), progress, "simulate", |place| {
        let longest = Rc::new(Cell::new(None));
        let policy: Box<dyn ScalingPolicy> = match policies[place].is_governor() {
            true => Box::new(Persisted::new(Rc::clone(&longest))),
            false => policies[place].make(),
        };
        let mut recorded = Recorded::new(policy);
        let run = cluster::run(&world.setup, &mut recorded);
        Came { run, decisions: recorded.decisions, learnt_bytes: longest.get() }
    });
    let setup = &world.setup;
    let first = runs.first().map(|came| &came.run);
    let models = models(world, first);
    let allowed = setup.models.iter().map(|model| model.objectives.attainment_per_million);
    let both = policies.iter().zip(runs);
    let policies: Vec<SimulatedView> =
        both.map(|(policy, came)| one(world, &models, policy, came)).collect();
    Simulation {
        scenario: world.scenario.name().to_owned(),
        about: world.scenario.about().to_owned(),
        seed: setup.seed,
        span_seconds: (setup.length - setup.scored_from).get(),
        allowed_missed: tidy(1.0 - f64::from(allowed.max().unwrap_or(1_000_000)) / 1e6),
        models,
        policies,
        minutes: false,
        took: Default::default(),
        page: None,
        clock: Clock::default(),
    }
}

/// What came of one policy.
struct Came {
    run: ClusterRun,
    decisions: Vec<DecisionView>,
    learnt_bytes: Option<usize>,
}

fn one(world: &World, models: &[ModelView], policy: &Named, came: Came) -> SimulatedView {
    let Came { run, decisions, learnt_bytes } = came;
    let ScenarioVerdict { findings, broken } = world.scenario.judge(&world.setup, &run);
    let replica_seconds: f64 = run.outcome.models.iter().map(|model| model.replica_seconds).sum();
    let played = Played {
        name: policy.name.clone(),
        clairvoyant: false,
        outcomes: vec![run.outcome],
        decisions,
    };
    SimulatedView {
        came: collect::policy(&played, None, models, None),
        replica_hours: tidy(replica_seconds / HOUR),
        learnt_bytes,
        expectations: findings.iter().map(expectation).collect(),
        broken,
        notes: policy.notes.clone(),
    }
}

fn expectation(finding: &Finding) -> ExpectationView {
    ExpectationView {
        what: finding.what.clone(),
        value: tidy(finding.value),
        min: finding.range.0,
        max: finding.range.1,
        holds: finding.holds(),
        origin: finding.origin.clone(),
    }
}

fn models(world: &World, run: Option<&ClusterRun>) -> Vec<ModelView> {
    let scaled: Vec<Scaled> = world.scaled();
    let one = |(place, model): (usize, &cluster::ModelSetup)| {
        let carries = scaled[place].facts.replica_per_second;
        let requests = run.map_or(0.0, |run| run.outcome.models[place].requests);
        ModelView {
            name: model.id.to_string(),
            traffic: "as the scenario says".to_owned(),
            requests: tidy(requests),
            replica_capacity: tidy(carries),
            each_of_eight: tidy(carries),
            capacity_from: "predicted from the speed of its engine".to_owned(),
            gpus_per_replica: model.variants.first().map_or(1, |one| one.gpus_per_replica),
        }
    };
    world.setup.models.iter().enumerate().map(one).collect()
}
